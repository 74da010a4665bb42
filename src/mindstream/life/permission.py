"""Permission to change the world: reading is free, acting is asked for; a yes is for that one call."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mindstream.life.events import PermissionAsked
from mindstream.life.state import LifeState
from mindstream.models.model import Call
from mindstream.tools.tool import Tool, traits_of


@dataclass(frozen=True, slots=True)
class Permits:
    """What may be done without a question.

    Attributes:
        tools: these may change the world, unless words of strangers may stand in their arguments.
        always: these may in any case: what they can reach was named by the person (a folder to write into).
    """

    tools: Collection[str] = ()
    always: Collection[str] = ()

    def allow(self, tool: Tool, tainted: bool) -> bool:
        """Tell whether a call needs no leave."""
        name = tool.spec.name
        return not traits_of(tool).changes or name in self.always or (name in self.tools and not tainted)


def decision_on(state: LifeState, call: Call) -> str:
    """Return the id of the wish for such a call that a person has answered and that was not made use of; "": none."""
    said = [id_ for id_, wish in state.decided.items() if (wish.tool, wish.arguments) == key_of(call)]
    return said[-1] if said else ""


def is_asked(state: LifeState, call: Call) -> bool:
    """Tell whether leave for such a call was asked for and not answered."""
    return any((wish.tool, wish.arguments) == key_of(call) for wish in state.wishes.values())


def key_of(call: Call) -> tuple[str, str]:
    return call.tool, call.arguments


def wish(id_: str, call: Call, tainted: bool) -> PermissionAsked:
    """Make the event that leave is asked for."""
    return PermissionAsked(id=id_, tool=call.tool, arguments=call.arguments, foreign=tainted)
