"""Permission for calls that change the world, or contain an address that no trusted source gave (see tools/call.py).

Each such call needs its own approval. Only a call without such an address needs none if `Permits` allows the tool.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mindstream.life.events import PermissionAsked
from mindstream.life.state import LifeState
from mindstream.models.model import Call
from mindstream.tools.call import Approve, Approver, approver, refuse
from mindstream.tools.tool import Tool, traits_of


@dataclass(frozen=True, slots=True)
class Permits:
    """The rules for which calls of tools that change the world need approval.

    Calls of other tools are not decided here. They need approval only if third-party content was read and the call
    contains an address that no trusted source gave.

    Attributes:
        tools: names of tools that need no approval, unless the arguments may contain third-party content.
        always: names of tools that need no approval even if the arguments may contain third-party content: a person has
            limited the scope of these tools, such as to a folder.
        approve: decides about every other call; if it returns False, the user is asked through the log of the life.
    """

    tools: Collection[str] = ()
    always: Collection[str] = ()
    approve: Approver = refuse

    @classmethod
    def of(cls, approve: Approve) -> Permits:
        """Return the permissions for a value of `approve=` (tools/call)."""
        return cls(approve=approver(approve)) if callable(approve) else cls(tools=approve)

    def allow(self, tool: Tool, tainted: bool) -> bool:
        """Return whether a call needs no approval for changing the world. Its web addresses are not checked here."""
        name = tool.spec.name
        return not traits_of(tool).changes or name in self.always or (name in self.tools and not tainted)


def decision_on(state: LifeState, call: Call) -> str:
    """Return the id of the newest approval request for the same call whose decision was not used yet; "": none."""
    return next((id_ for id_, wish in reversed(state.decided.items()) if _is_for(wish, call)), "")


def is_asked(state: LifeState, call: Call) -> bool:
    """Return whether approval of the same call was requested and not decided yet."""
    return any(_is_for(wish, call) for wish in state.wishes.values())


def _is_for(wish: PermissionAsked, call: Call) -> bool:
    return (wish.tool, wish.arguments) == (call.tool, call.arguments)
