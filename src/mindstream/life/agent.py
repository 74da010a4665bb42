"""Run the roles of a life in the tool loop (tools/call), without repeating steps whose results are in the log.

Each step has an id that gives its position (`12.3.1` is the first call requested by step 3 of turn 12). A step is a
model reply or a call. If the log has the result of the step with an id, the step is not done again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mindstream.errors import ModelError, ToolError
from mindstream.life.events import Replied
from mindstream.life.steps import Done, Steps
from mindstream.life.tools import LifeTool, OwnTool, Where
from mindstream.models.model import Call, Part, Piece, Request, ToolSpec
from mindstream.text.links import links
from mindstream.tools.call import Observation, addresses_of

AT_ONCE = 8
"""Maximum number of calls in one reply of a model; further calls are refused."""
NAMED, REFUSED = 3, 4
"""Number of times in a row that a model makes the same call. From NAMED times on, a remark in the result warns the
model; from REFUSED times on, the call is refused.
"""


@dataclass
class Repeats:
    """Count equal calls in a row."""

    last: tuple[str, str] = ("", "")
    times: int = 0

    def take(self, call: Call) -> int:
        """Count a call; return how many times it was made in a row, including this time."""
        key = (call.tool, call.arguments)
        self.times = self.times + 1 if key == self.last else 1
        self.last = key
        return self.times


Toolbox = Callable[[], Mapping[str, LifeTool]]
"""A function that returns the tools of a role by name; tools may be added during the work."""
LAST = {"en": "No more tools can be called. Answer now.", "zh": "不能再调用工具了，请现在回答。"}


@dataclass
class StepModel:
    """A model whose n-th reply is the step with the id `{id}.{n}` in the log.

    Args:
        reply_once: returns the reply of a step: from the log if it is there, else from the model.
    """

    name: str
    id: str
    reply_once: Callable[[str, Request], Awaitable[Replied]]
    step: int = 0

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.step += 1
        replied = await self.reply_once(f"{self.id}.{self.step}", request)
        if replied.error:
            raise ModelError(replied.error)
        yield Piece(replied.text)
        for n, wish in enumerate(replied.calls, 1):
            yield Call(wish.tool, wish.arguments, f"{replied.id}.{n}")


@dataclass
class StepCalls:
    """Makes a role's calls one after the other; a call whose result is in the log is not made again. A failure is
    returned as a result.

    Attributes:
        toolbox: returns the role's tools.
        tainted: whether the role has read third-party content.
        times_running: counts a call, and returns how many times it was made in a row, including this time.
        given: web addresses that may be fetched even if the role is tainted (tools/call.py).
    """

    steps: Steps
    role: str
    toolbox: Toolbox
    tainted: bool = False
    times_running: Callable[[Call], int] = field(default_factory=lambda: Repeats().take)
    given: frozenset[str] = frozenset()

    def specs(self) -> Sequence[ToolSpec]:
        return [tool.spec for tool in self.toolbox().values()]

    async def take_newer(self) -> str:
        return ""

    async def make(self, calls: Sequence[Call], offered: Sequence[ToolSpec]) -> Sequence[Observation]:
        names, results = [spec.name for spec in offered], list[Observation]()
        for number, call in enumerate(calls, 1):
            found = await self._make(call, number, names)
            if not self.tainted:
                self.given |= addresses_of(call.arguments)
            self.tainted = self.tainted or found.untrusted
            if getattr(self.toolbox().get(call.tool), "finds", False):
                self.given |= links([found.text])
            results.append(found)
        return results

    async def _make(self, call: Call, number: int, offered: Sequence[str]) -> Observation:
        times = self.times_running(call)
        tool = self.toolbox().get(call.tool) if call.tool in offered else None

        async def effect(row: int) -> Done:
            why = ""
            if number > AT_ONCE:
                why = f"Not made: at most {AT_ONCE} calls a reply."
            elif times >= REFUSED:
                why = f"Not made: this same call was made {times - 1} times running, and gave the same."
                why += " Do something else."
            elif tool is None:
                why = f"there is no tool {call.tool[:80]!r}; the tools are: {', '.join(offered) or 'none'}"
            if why or tool is None:
                return Done(Observation(why, failed=True))
            try:
                done = await tool(call, Where(call.id, self.role, self.tainted, row, self.given))
            except ToolError as error:
                done = Done(Observation(str(error), failed=True))
            if times >= NAMED:
                remark = f"(You have made this same call {times} times running. Do something else, or finish.)"
                done = replace(done, found=replace(done.found, text=f"{done.found.text}\n{remark}"))
            return done

        found = await self.steps.call(call.id, call, effect)
        if isinstance(tool, OwnTool) and tool.after and not found.failed:
            await tool.after(tool.checked(call))
        return found
