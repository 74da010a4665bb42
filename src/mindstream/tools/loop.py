"""The one tool loop: ask what to do, do it, show what came of it, until there is an answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from mindstream.errors import ReplyInvalid
from mindstream.models.ask import act
from mindstream.models.model import Call, Message, Model
from mindstream.models.prompt import Prompt, fenced
from mindstream.tools.call import Observation, call_tool
from mindstream.tools.tool import Tool, is_in_run

R = TypeVar("R")

AT_ONCE, CALLS = 8, 24
"""So many calls of one reply are run, and so many of a whole run; the others are answered by saying so."""
SAME = 2
"""So often the same call is run; its result will hardly change."""


class Watcher(Protocol):
    """Who is told what the loop does."""

    async def recorded_result(self, call: Call) -> str | None:  # noqa: ARG002
        """Return what a call gave already, where it is not to be made again; None: it is to be made."""
        return None

    async def log_call(self, call: Call) -> None: ...

    async def log_observation(self, call: Call, found: Observation) -> None: ...

    async def take_newer(self) -> str:
        """Return what has come up since the loop began and should be minded; "" for nothing."""
        return ""


@dataclass
class ToolLog(Watcher):
    """A watcher that keeps what it was told: the calls, and (tool, text) of what each gave."""

    calls: list[Call] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)

    async def log_call(self, call: Call) -> None:
        self.calls.append(call)

    async def log_observation(self, call: Call, found: Observation) -> None:
        self.results.append((call.tool, found.text))


async def run_tool_loop(
    model: Model,
    prompt: Prompt[R],
    tools: Sequence[Tool],
    watcher: Watcher | None = None,
    *,
    steps: int = 6,
    tool_timeout_s: float = 30.0,
    role: str = "",
) -> R:
    """Put a prompt with tools until the model answers; each step's calls run at once.

    The tools are read anew at each step: a list that a tool adds to offers more (`tools/by_need.find_tools_tool`).

    Raises:
        ModelError: the model failed, or did not answer in so many steps.
    """
    watcher = watcher or ToolLog()
    turns: list[Message] = []
    allowance = _Allowance()
    for step in range(steps):
        if step and (news := await watcher.take_newer()):
            turns.append(Message("user", "Meanwhile the user said:\n" + fenced(news, "newest_utterances")))
        offered = tools if step < steps - 1 else ()  # at the last step there is nothing left but to answer
        if step and not offered:
            turns.append(Message("user", "No more tools can be called. Answer now."))
        done = await act(model, prompt, [tool.spec for tool in offered], turns, role)
        if not isinstance(done, tuple):
            return done
        words, wished = done
        calls = tuple(Call(call.tool, call.arguments, call.id or f"call_{step}_{n}") for n, call in enumerate(wished))
        refusals = allowance.take(calls)
        turns.append(Message("assistant", words, calls[: len(refusals)]))
        answering = (_answered(*each, offered, watcher, tool_timeout_s) for each in zip(calls, refusals, strict=False))
        turns.extend(await _all_or_none(answering))
    raise ReplyInvalid(f"{model.name} wanted more tools after {steps} steps of {prompt.label()!r}, and gave no answer")


@dataclass
class _Allowance:
    """What a run may still call."""

    left: int = CALLS
    made: Counter[tuple[str, str]] = field(default_factory=Counter)

    def take(self, calls: Sequence[Call]) -> list[str]:
        """Return for each call of a reply why it is not run, "" where it is; what no reply should hold is left out."""
        refusals = []
        for number, call in enumerate(calls[: 2 * AT_ONCE]):
            key = (call.tool, call.arguments)
            refusal = ""
            if number >= AT_ONCE:
                refusal = f"Not run: at most {AT_ONCE} calls a reply."
            elif not self.left:
                refusal = f"Not run: {CALLS} calls have been made, and no more can be. Answer with what there is."
            elif self.made[key] >= SAME:
                refusal = "Not run: the same call was made before, and its result is above."
            else:
                self.left -= 1
                self.made[key] += 1
            refusals.append(refusal)
        return refusals


async def _all_or_none(answering: Iterable[Coroutine[Any, Any, Message]]) -> list[Message]:
    """Return what comes of calls that go side by side; where a watcher raises, the others are broken off."""
    tasks = [asyncio.ensure_future(each) for each in answering]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def _answered(call: Call, refusal: str, tools: Sequence[Tool], watcher: Watcher, timeout_s: float) -> Message:
    if refusal:
        found = Observation(refusal, failed=True)
    elif not is_in_run(call, tools) and (known := await watcher.recorded_result(call)) is not None:
        found = Observation(known)
    else:
        await watcher.log_call(call)
        found = await call_tool(call, tools, timeout_s)
        await watcher.log_observation(call, found)
    return Message("tool", fenced(found.text, "result"), call_id=call.id, tool=call.tool)
