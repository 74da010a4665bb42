"""Permission to change the world: reading is free, acting needs approval; an approval is for one call."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from mindstream.life.events import PermissionAsked
from mindstream.life.state import LifeState
from mindstream.models.model import Call
from mindstream.tools.approval import Approve, Approver, approver, refuse
from mindstream.tools.tool import Tool, traits_of


@dataclass(frozen=True, slots=True)
class Permits:
    """Actions without approval.

    Attributes:
        tools: these may change the world, unless their arguments may contain third-party content.
        always: these may in any case, because the person chose their scope (a folder to write into).
        approve: decides about every other call; False: the user of the life is asked, through its log.
    """

    tools: Collection[str] = ()
    always: Collection[str] = ()
    approve: Approver = refuse

    @classmethod
    def of(cls, approve: Approve) -> Permits:
        """Return the permissions for a value of `approve=` (tools/approval)."""
        return cls(approve=approver(approve)) if callable(approve) else cls(tools=approve)

    def allow(self, tool: Tool, tainted: bool) -> bool:
        """Return whether a call needs no approval."""
        name = tool.spec.name
        return not traits_of(tool).changes or name in self.always or (name in self.tools and not tainted)


def decision_on(state: LifeState, call: Call) -> str:
    """Return the id of a decided, unused request for such a call; "": there is none."""
    return next((id_ for id_, wish in reversed(state.decided.items()) if _is_for(wish, call)), "")


def is_asked(state: LifeState, call: Call) -> bool:
    """Return whether approval of such a call was requested and not decided."""
    return any(_is_for(wish, call) for wish in state.wishes.values())


def _is_for(wish: PermissionAsked, call: Call) -> bool:
    return (wish.tool, wish.arguments) == (call.tool, call.arguments)
