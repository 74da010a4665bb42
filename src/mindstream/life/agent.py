"""One role at work: ask what to do, do it, show what came of it, until there is an answer. Each step is done once.

The ground's tool loop (tools/loop) keeps what it does in its watcher's hands; here a step's id decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from mindstream.errors import ReplyInvalid, ToolError
from mindstream.life import guards
from mindstream.life.events import Replied, Wish
from mindstream.life.guards import Repeats
from mindstream.life.steps import Done, Steps
from mindstream.life.tools.own_tools import LifeTool, OwnTool, Where
from mindstream.models.fence import fenced
from mindstream.models.model import Call, Message, Model, Request
from mindstream.models.prompt import Prompt
from mindstream.tools.call import Observation

Toolbox = Callable[[], Mapping[str, LifeTool]]
"""The tools of a role, by name; they may become more while it works."""
LAST = {"en": "No more tools can be called. Answer now.", "zh": "不能再调用工具了，请现在回答。"}


@dataclass
class Caller:
    """Makes the calls that a role wishes, one after the other."""

    steps: Steps
    role: str
    toolbox: Toolbox
    times_running: Callable[[Call], int]
    """Counts a call: how often it was made running, this time included."""

    async def call(self, id_: str, number: int, wished: Wish, tainted: bool) -> Observation:
        """Return what a call gives; whatever goes wrong in it is said to the model."""
        call = Call(wished.tool, wished.arguments, id_)
        times = self.times_running(call)

        async def effect(row: int) -> Done:
            if why := guards.refusal(number, times):
                return Done(Observation(why, failed=True))
            tool = self.toolbox().get(call.tool)
            if tool is None:
                names = ", ".join(self.toolbox()) or "none"
                return Done(Observation(f"there is no tool {call.tool[:80]!r}; there are: {names}", failed=True))
            try:
                done = await tool(call, Where(id_, self.role, tainted, row))
            except ToolError as error:
                done = Done(Observation(str(error), failed=True))
            return replace(done, found=replace(done.found, text=guards.named(done.found.text, times)))

        found = await self.steps.call(id_, call, effect)
        tool = self.toolbox().get(call.tool)
        if isinstance(tool, OwnTool) and tool.after and not found.failed:
            await tool.after(tool.checked(call))
        return found


async def work(
    steps: Steps, id_: str, role: str, model: Model, prompt: Prompt[str], toolbox: Toolbox, most: int, *,
    tainted: bool, language: str,
) -> Observation:  # fmt: skip
    """Let M1 or M0 work until it answers; only that comes back. `most`: so often the model is asked.

    Raises:
        BudgetSpent: nothing is left for another call of a model.
    """
    caller = Caller(steps, role, toolbox, Repeats().take)
    turns: list[Message] = []
    for step in range(1, most + 1):
        specs = tuple(tool.spec for tool in toolbox().values()) if step < most else ()
        if step > 1 and not specs:
            turns.append(Message("user", LAST[language]))
        here = f"{id_}.{step}"
        replied = await steps.reply(here, role, model, Request(prompt, role, tuple(turns), specs))
        if replied.error:
            return Observation(f"{role} could not answer: {replied.error}", failed=True, foreign=tainted)
        if not replied.calls:
            return _answer(role, prompt, replied, tainted)
        turns.append(Message("assistant", replied.text, calls_of(replied)))
        for n, wished in enumerate(replied.calls, 1):
            found = await caller.call(f"{here}.{n}", n, wished, tainted)
            tainted = tainted or found.foreign
            turns.append(Message("tool", fenced(found.text, "result"), call_id=f"{here}.{n}", tool=wished.tool))
    return Observation(f"{role} gave no answer in {most} steps", failed=True, foreign=tainted)


def calls_of(replied: Replied) -> tuple[Call, ...]:
    """Return the calls of a reply, with their ids."""
    return tuple(Call(wish.tool, wish.arguments, f"{replied.id}.{n}") for n, wish in enumerate(replied.calls, 1))


def _answer(role: str, prompt: Prompt[str], replied: Replied, tainted: bool) -> Observation:
    try:
        return Observation(prompt.parse(replied.text), foreign=tainted)
    except ReplyInvalid:
        return Observation(f"{role} answered with no words", failed=True, foreign=tainted)
