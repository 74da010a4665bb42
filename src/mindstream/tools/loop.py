"""The tool loop: ask the model, make the calls that it requests, send it the results, until it answers.

A host makes the calls, and decides how: at the same time (`run_tool_loop`), or one by one with durably stored results
(the roles of a life, see life/agent.py).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from mindstream.errors import ReplyInvalid
from mindstream.models.model import Call, Message, Model, ToolSpec
from mindstream.models.prompt import Prompt, act, delimited
from mindstream.tools.approval import Approve, Approver, approver, with_approval
from mindstream.tools.call import Observation, call_tool
from mindstream.tools.tool import Tool, is_in_run

R = TypeVar("R")

MAX_PER_REPLY, MAX_CALLS = 8, 24
"""Maximum number of tool calls of one reply of the model, and of a whole run; further calls are refused."""
LAST = "No more tools can be called. Answer now."
MAX_SAME = 2
"""Maximum number of times that a run makes the same call (same tool and arguments), since the result will hardly
change."""


class Watcher(Protocol):
    """Observes the tool calls of a loop."""

    async def recorded_result(self, call: Call) -> str | None:  # noqa: ARG002
        """Return a result that replaces the call (an earlier result, or a refusal); None: the call is made."""
        return None

    async def log_call(self, call: Call) -> None: ...

    async def log_observation(self, call: Call, found: Observation) -> None: ...

    async def take_newer(self) -> str:
        """Return new messages since the loop began, which the model must consider; "" for none."""
        return ""


@dataclass
class ToolLog(Watcher):
    """A watcher that records the calls, and (tool, text) of each result."""

    calls: list[Call] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)

    async def log_call(self, call: Call) -> None:
        self.calls.append(call)

    async def log_observation(self, call: Call, found: Observation) -> None:
        self.results.append((call.tool, found.text))


class Host(Protocol):
    """Offers tools to the tool loop, and makes the calls that the model requests."""

    def specs(self) -> Sequence[ToolSpec]:
        """Return the specs of the tools that can be called now. The loop asks at each step."""

    async def make(self, calls: Sequence[Call], offered: Sequence[ToolSpec]) -> Sequence[Observation]:
        """Make the calls of a reply and return their results, in order. If there are too many calls, the last ones may
        be dropped, so that there are fewer results."""

    async def take_newer(self) -> str:
        """Return new messages since the loop began, which the model must consider; "" for none."""


def show_result(_: Call, text: str) -> str:
    """Return the text of a result as data between tags."""
    return delimited(text, "result")


async def run_loop(
    model: Model,
    prompt: Prompt[R],
    host: Host,
    *,
    steps: int,
    role: str = "",
    last: str = LAST,
    on_text: Callable[[str], None] | None = None,
    show: Callable[[Call, str], str] = show_result,
) -> R:
    """Ask a model with tools until it answers.

    Args:
        steps: maximum number of model calls; at the last one no tools are offered.
        last: the message to the model when no tools are offered any more.
        on_text: called with each piece of text as it arrives, also with text that comes before tool calls.
        show: formats a call's result as the model reads it.

    Raises:
        ModelError: the model failed, or did not answer within `steps`. Errors of the host are raised as they are.
    """
    turns: list[Message] = []
    for step in range(steps):
        if step and (news := await host.take_newer()):
            turns.append(Message("user", "Meanwhile the user said:\n" + delimited(news, "newest_utterances")))
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
            turns.append(Message("tool", show(call, found.text), call_id=call.id, tool=call.tool))
    raise ReplyInvalid(
        f"{model.name} gave no answer to the prompt {prompt.label()!r} within {steps} steps, but called tools in each"
    )


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
    """Ask a model with tools until it answers; the calls of one reply run at the same time.

        answer = await run_tool_loop(model, Light(day="2026-11-24"), [moon], approve=["order"])

    The sequence of tools is read at each step, so that a tool can add others to it (`tool_search.find_tools_tool`).

    Args:
        tool_timeout_s: maximum duration in seconds of a call of a tool that has no timeout of its own.
        approve: decides about calls of tools that change the world (see tools/approval.py): the names of those tools
            that may be called, or a function that decides about each call. None: every call is made.
        on_text: called with each piece of text as it arrives, also with text that comes before tool calls.

    Raises:
        ModelError: the model failed, or did not answer within `steps`.
    """
    decide = None if approve is None else approver(approve)
    host = _ConcurrentHost(tools, watcher or ToolLog(), tool_timeout_s, decide)
    return await run_loop(model, prompt, host, steps=steps, role=role, on_text=on_text)


async def watched_call(call: Call, tools: Sequence[Tool], watcher: Watcher, timeout_s: float = 30.0) -> Observation:
    """Call a tool, and report the call and its result to the watcher.

    If the watcher has a recorded result, that is returned and the tool is not called, except for tools that change the
    run itself (`FunctionTool.in_run`).
    """
    if not is_in_run(call, tools) and (known := await watcher.recorded_result(call)) is not None:
        return Observation(known)
    await watcher.log_call(call)
    found = await call_tool(call, tools, timeout_s)
    await watcher.log_observation(call, found)
    return found


@dataclass
class _ConcurrentHost:
    """Makes the calls of a reply at the same time, and refuses calls above MAX_PER_REPLY, MAX_CALLS or MAX_SAME."""

    tools: Sequence[Tool]
    watcher: Watcher
    timeout_s: float
    approve: Approver | None = None
    is_foreign: bool = False
    """Whether third-party content was read."""
    made: Counter[tuple[str, str]] = field(default_factory=Counter)

    def specs(self) -> Sequence[ToolSpec]:
        return [tool.spec for tool in self.tools] if self.made.total() < MAX_CALLS else []

    async def make(self, calls: Sequence[Call], offered: Sequence[ToolSpec]) -> Sequence[Observation]:
        tools: Sequence[Tool] = [tool for tool in self.tools if tool.spec in offered]
        if self.approve is not None:
            foreign = self.is_foreign
            tools = with_approval(tools, self.approve, lambda: foreign)
        refusals = [self._take(number, call) for number, call in enumerate(calls[: 2 * MAX_PER_REPLY])]
        found = await _all_or_none(self._make(*each, tools) for each in zip(calls, refusals, strict=False))
        self.is_foreign = self.is_foreign or any(each.untrusted for each in found)
        return found

    async def take_newer(self) -> str:
        return await self.watcher.take_newer()

    async def _make(self, call: Call, refusal: str, tools: Sequence[Tool]) -> Observation:
        if refusal:
            return Observation(refusal, failed=True)
        return await watched_call(call, tools, self.watcher, self.timeout_s)

    def _take(self, number: int, call: Call) -> str:
        """Return why a call is refused; otherwise count it and return "". `number`: its position in the reply, from
        0."""
        key = (call.tool, call.arguments)
        if number >= MAX_PER_REPLY:
            return f"Not run: at most {MAX_PER_REPLY} calls a reply."
        if self.made.total() >= MAX_CALLS:
            return f"Not run: {MAX_CALLS} calls have been made, which is the maximum. Answer with their results."
        if self.made[key] >= MAX_SAME:
            return "Not run: the same call was made before, and its result is above."
        self.made[key] += 1
        return ""


async def _all_or_none(answering: Iterable[Coroutine[Any, Any, Observation]]) -> list[Observation]:
    """Return the results of concurrent calls; if one raises an error (a watcher's), the others are cancelled."""
    tasks = [asyncio.ensure_future(each) for each in answering]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
