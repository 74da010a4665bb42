"""The one tool loop: ask what to do, do it, show what came of it, until there is an answer.

How calls are made is the host's: side by side (`run_tool_loop`), or each once for ever, as the roles of a life make
theirs (life/agent).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from mindstream.errors import ReplyInvalid
from mindstream.models.ask import act
from mindstream.models.model import Call, Message, Model, ToolSpec
from mindstream.models.prompt import Prompt, fenced
from mindstream.tools.approval import Approve, with_approval
from mindstream.tools.call import Observation, call_tool
from mindstream.tools.tool import Tool, is_in_run

R = TypeVar("R")

AT_ONCE, CALLS = 8, 24
"""So many calls of one reply are run, and so many of a whole run; the others are answered by saying so."""
LAST = "No more tools can be called. Answer now."
SAME = 2
"""So often the same call is run; its result will hardly change."""


class Watcher(Protocol):
    """Who is told what the loop does."""

    async def recorded_result(self, call: Call) -> str | None:  # noqa: ARG002
        """Return the result of a call that is not made: that of an earlier call, or a refusal; None: make it."""
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


class Host(Protocol):
    """Who offers tools to a loop, and makes its calls in its own way: at once, or one by one and each once for ever."""

    def specs(self) -> Sequence[ToolSpec]:
        """Return what can be called now; it is asked anew at each step."""

    async def make(self, calls: Sequence[Call], offered: Sequence[ToolSpec]) -> Sequence[Observation]:
        """Make the calls of a reply, and return what each gave; what a reply should not hold can be left out."""

    async def take_newer(self) -> str:
        """Return what has come up since the loop began and should be minded; "" for nothing."""


async def run_loop(
    model: Model,
    prompt: Prompt[R],
    host: Host,
    *,
    steps: int,
    role: str = "",
    last: str = LAST,
    on_text: Callable[[str], None] | None = None,
) -> R:
    """Put a prompt with tools until the model answers.

    Args:
        last: what the model is told before its last step, at which there is nothing left but to answer.
        on_text: gets the model's words as they come, those before a call of a tool too.

    Raises:
        ModelError: the model failed, or did not answer in so many steps; else what the host raises.
    """
    turns: list[Message] = []
    for step in range(steps):
        if step and (news := await host.take_newer()):
            turns.append(Message("user", "Meanwhile the user said:\n" + fenced(news, "newest_utterances")))
        offered = tuple(host.specs()) if step < steps - 1 else ()
        if step and not offered:
            turns.append(Message("user", last))
        done = await act(model, prompt, offered, turns, role, on_text)
        if not isinstance(done, tuple):
            return done
        words, wished = done
        if words.strip() and on_text is not None:
            on_text("\n\n")
        calls = tuple(Call(call.tool, call.arguments, call.id or f"call_{step}_{n}") for n, call in enumerate(wished))
        results = await host.make(calls, offered)
        turns.append(Message("assistant", words, calls[: len(results)]))
        for call, found in zip(calls, results, strict=False):
            turns.append(Message("tool", fenced(found.text, "result"), call_id=call.id, tool=call.tool))
    raise ReplyInvalid(f"{model.name} wanted more tools after {steps} steps of {prompt.label()!r}, and gave no answer")


async def run_tool_loop(
    model: Model,
    prompt: Prompt[R],
    tools: Sequence[Tool],
    watcher: Watcher | None = None,
    *,
    steps: int = 6,
    tool_timeout_s: float = 30.0,
    role: str = "",
    approve: Approve | None = None,
    on_text: Callable[[str], None] | None = None,
) -> R:
    """Put a prompt with tools until the model answers; each step's calls run at once.

    The tools are read anew at each step: a list that a tool adds to offers more (`tools/by_need.find_tools_tool`).

    Args:
        approve: the names of tools that may change the world, or a function that decides about each such call
            (tools/approval). None: all are called.
        on_text: gets the model's words as they come, those before a call of a tool too.

    Raises:
        ModelError: the model failed, or did not answer in so many steps.
    """
    if approve is not None:
        tools = with_approval(tools, approve)
    host = _AtOnce(tools, watcher or ToolLog(), tool_timeout_s)
    return await run_loop(model, prompt, host, steps=steps, role=role, on_text=on_text)


async def watched_call(call: Call, tools: Sequence[Tool], watcher: Watcher, timeout_s: float = 30.0) -> Observation:
    """Call a tool and tell the watcher; where that has recorded such a call, what it gave then is given."""
    if not is_in_run(call, tools) and (known := await watcher.recorded_result(call)) is not None:
        return Observation(known)
    await watcher.log_call(call)
    found = await call_tool(call, tools, timeout_s)
    await watcher.log_observation(call, found)
    return found


@dataclass
class _AtOnce:
    """Makes the calls of a reply side by side, as far as they are allowed."""

    tools: Sequence[Tool]
    watcher: Watcher
    timeout_s: float
    allowance: _Allowance = field(default_factory=lambda: _Allowance())

    def specs(self) -> Sequence[ToolSpec]:
        return [tool.spec for tool in self.tools]

    async def make(self, calls: Sequence[Call], offered: Sequence[ToolSpec]) -> Sequence[Observation]:
        tools = [tool for tool in self.tools if tool.spec in offered]
        refusals = self.allowance.take(calls)
        return await _all_or_none(self._make(*each, tools) for each in zip(calls, refusals, strict=False))

    async def take_newer(self) -> str:
        return await self.watcher.take_newer()

    async def _make(self, call: Call, refusal: str, tools: Sequence[Tool]) -> Observation:
        if refusal:
            return Observation(refusal, failed=True)
        return await watched_call(call, tools, self.watcher, self.timeout_s)


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


async def _all_or_none(answering: Iterable[Coroutine[Any, Any, Observation]]) -> list[Observation]:
    """Return what comes of calls that go side by side; where a watcher raises, the others are broken off."""
    tasks = [asyncio.ensure_future(each) for each in answering]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
