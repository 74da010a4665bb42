"""External tools (functions, MCP servers, a planner, documents) for M1, the role that does tasks, with approval and
idempotency keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mindstream.errors import ReplyInvalid
from mindstream.life import permission
from mindstream.life.events import PermissionAsked, PermissionUsed
from mindstream.life.permission import Permits
from mindstream.life.state import LifeState
from mindstream.life.steps import Done
from mindstream.life.tools.own_tools import Where
from mindstream.models.model import Call, ToolSpec
from mindstream.models.reply import first_json
from mindstream.tools.approval import ToolRequest
from mindstream.tools.call import Observation, call_tool, ungiven
from mindstream.tools.tool import Tool, key_argument, traits_of
from mindstream.tools.tool_search import ToolIndex

TIMEOUT_S = 60.0
HELD = (
    "not made yet: it changes the world, and a person was asked for leave. Go on with something else; you will be told."
)
HELD_ADDRESS = (
    "not made yet: neither the user nor a search gave this address, and third-party content was read before; the user"
    " was asked. Go on with something else; you will be told."
)
REFUSED = "not made: a person said no to this call"


@dataclass(frozen=True, slots=True)
class OutsideTools:
    """All external tools of a life; the tools that a task needs are searched when M1 does the task.

    Attributes:
        at_once: maximum number of tools that one search attaches to a task.
    """

    shelf: ToolIndex
    state: LifeState
    permits: Permits
    life: str
    at_once: int

    @property
    def has_more(self) -> bool:
        """Whether there are more available tools than one search attaches."""
        return len(self._ready()) > self.at_once

    async def find(self, need: str) -> list[OutsideTool]:
        """Return the available tools that fit a need best, at most `at_once`."""
        found = self._ready()
        if len(found) > self.at_once:
            ranked = await self.shelf.find(need, len(self.shelf.tools) - 1)
            found = [tool for tool in ranked if tool in found][: self.at_once]
        return [OutsideTool(tool, self.state, self.permits, self.life) for tool in found]

    def named(self, names: Sequence[str]) -> list[OutsideTool]:
        """Return the available tools with these names."""
        found = (tool for tool in self._ready() if tool.spec.name in names)
        return [OutsideTool(tool, self.state, self.permits, self.life) for tool in found]

    def _ready(self) -> list[Tool]:
        traits = [(tool, traits_of(tool).ready) for tool in self.shelf.tools]
        return [tool for tool, is_ready in traits if is_ready is None or is_ready()]


@dataclass(frozen=True, slots=True)
class OutsideTool:
    """An external tool that a role of a life can call."""

    tool: Tool
    state: LifeState
    permits: Permits
    life: str
    """The name of the mind. An idempotency key consists of this name, the time when the life began, and the id of the
    call."""

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    @property
    def finds(self) -> bool:
        """Whether the tool is a search tool: the pages that its results name may be fetched."""
        return traits_of(self.tool).finds

    async def __call__(self, call: Call, where: Where) -> Done:
        used: tuple[PermissionUsed, ...] = ()
        address = ungiven(self.tool, call.arguments, where.given) if where.tainted else ""
        if address or not self.permits.allow(self.tool, where.tainted):
            wish = permission.decision_on(self.state, call)
            request = ToolRequest(tool=call.tool, arguments=call.arguments, foreign=where.tainted, address=address)
            if not wish and not await self.permits.approve(request):
                asked = PermissionAsked(id=where.id, tool=call.tool, arguments=call.arguments, foreign=where.tainted)
                events = () if permission.is_asked(self.state, call) else (asked,)
                return Done(Observation(HELD_ADDRESS if address else HELD, failed=True), events=events)
            used = (PermissionUsed(id=wish),) if wish else ()
            if wish and not self.state.leave[wish]:
                return Done(Observation(REFUSED, failed=True), events=used)
        return Done(await call_tool(self._with_key(call, where.id), [self.tool], TIMEOUT_S), events=used)

    def _with_key(self, call: Call, id_: str) -> Call:
        """Return a call with an idempotency key, if its tool takes one. A call that is made again after a crash gets
        the same key."""
        if not (name := key_argument(self.tool)):
            return call
        try:
            given = first_json(call.arguments, dict) if call.arguments.strip() else {}
        except ReplyInvalid:
            return call
        return replace(
            call, arguments=json.dumps({**given, name: f"{self.life}-{self.state.began:.0f}-{id_}"}, ensure_ascii=False)
        )
