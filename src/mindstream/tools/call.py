"""How a model calls tools: the approval of a call, the call itself, and the loop of calls and replies.

Approval decides whether a tool that changes the world may be called (`approve=`):

    ChatBot.open(…, approve=["send_mail"])          # of tools that need approval, only these may be called
    Planner(…, approve=lambda request: request.tool != "pay" and not request.foreign)
    run_tool_loop(…, approve=ask_at_the_terminal)   # an async function

Chat bots, planners, lives and the tool loop use the same parameter. Tools that only read need no approval, except for
calls with an address that no trusted source gave. Once third-party content is in the context, fetching an address can
leak data: a document may instruct the model to fetch `https://its.host/?d=CONTENTS_OF_THE_MEMORY`. Trusted sources are
the user, a plan that was written before the content was read, and tools whose results name pages (`Traits.finds`).

A call is made within a time limit, and every failure becomes an observation. The loop asks the model, makes the calls
that it requests, and sends it the results, until it answers. A host makes the calls, and decides how: at the same time
(`run_tool_loop`), or one by one with durably stored results (the roles of a life, see life/agent.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence, Set
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from pydantic import JsonValue

from mindstream import redaction, tracing
from mindstream.errors import InputError, ReplyInvalid, ToolError
from mindstream.foreign_code import ForeignFailure, ForeignTask, Overdue
from mindstream.json_values import JsonObject, texts_in
from mindstream.models.model import Call, Message, Model, ToolSpec
from mindstream.models.prompt import Prompt, act, delimited
from mindstream.models.reply import first_json
from mindstream.moved import renamed
from mindstream.text.links import bare, links
from mindstream.together import together
from mindstream.tools.tool import Tool, Traits, is_in_run, run_in_thread, traits_of
from mindstream.tracing import fail, span, tell


@dataclass(frozen=True, kw_only=True)
class ToolRequest:
    """A call of a tool that needs approval.

    Attributes:
        tool: the name of the tool.
        arguments: the arguments as JSON text; `values` has them as a dictionary.
        foreign: the arguments may contain third-party content (a page, a file, a server's words).
        address: for a call that only reads: the address that makes approval necessary, because no trusted source gave
            it; for other calls "".
    """

    tool: str
    arguments: str
    foreign: bool = False
    address: str = ""

    @property
    def values(self) -> JsonObject:
        """The arguments by name; empty if they are not valid JSON (then the tool is not called)."""
        try:
            found: JsonObject = first_json(self.arguments, dict)
        except ReplyInvalid:
            return {}
        return found

    def __str__(self) -> str:
        return f"{self.tool}({', '.join(f'{name}={json.dumps(value)}' for name, value in self.values.items())})"


Approver: TypeAlias = Callable[[Any], Awaitable[bool]]
"""A function that decides whether a call may be made. Its argument is a `ToolRequest`, or, in a run of the planner, a
`Wish` with the step."""
Approve: TypeAlias = Collection[str] | Callable[[Any], bool | Awaitable[bool]]
"""A value of `approve=`: names of tools, or a function. The named tools may be called, unless the arguments contain
third-party content. The function, plain or async, decides about each call that needs approval."""


async def refuse(_: ToolRequest) -> bool:
    """Approve nothing: the default if there is no person to ask."""
    return False


def allow(tools: Collection[str], otherwise: Approver = refuse) -> Approver:
    """Approve calls of these tools unless their arguments have third-party content; ask `otherwise` about others."""

    async def approve(request: ToolRequest) -> bool:
        return (request.tool in tools and not request.foreign) or await otherwise(request)

    return approve


def check_approve(approve: Approve, tools: Sequence[Tool]) -> None:
    """Check a value of `approve=` against the tools.

    Raises:
        InputError: it is neither names of these tools nor a function.
    """
    if callable(approve):
        return
    if not isinstance(approve, Collection):
        raise InputError(f"approve= takes names of tools, or a function that decides about a call, not {approve!r}")
    names = [tool.spec.name for tool in tools]
    for name in (approve,) if isinstance(approve, str) else approve:
        if name not in names:
            raise InputError(f"approve= names {name!r}, which is none of the tools ({', '.join(names) or 'none'})")


def checked_decision(decided: object, what: str) -> bool:
    """Return the decision of an `approve=` function about `what`.

    Raises:
        InputError: the decision is neither True nor a value that counts as False. For example, the text "n" must not
            count as approval.
    """
    if decided and type(decided).__name__ not in ("bool", "bool_"):  # NumPy's type is called `bool_` or `bool`
        raise InputError(f"approve= returned {decided!r:.80} for {what}: expected True or False")
    return bool(decided)


def approver(approve: Approve) -> Approver:
    """Return an async function that decides as a value of `approve=` says, about one call at a time.

    A plain function runs in a thread, because it may wait for a person. The returned function raises InputError if the
    given function returns neither True nor a value that counts as False.
    """
    if isinstance(approve, str):
        approve = (approve,)
    decide = approve if callable(approve) else allow(approve)
    asking = asyncio.Lock()

    async def ask(request: ToolRequest) -> bool:
        with deciding():
            async with asking:
                if inspect.iscoroutinefunction(decide):
                    decided: object = await decide(request)
                else:
                    decided = await run_in_thread(partial(decide, request))  # it may wait for a person
                    decided = await decided if inspect.isawaitable(decided) else decided
        return checked_decision(decided, request.tool)

    return ask


@dataclass(eq=False)
class _Limit:
    """A time limit that is paused while people decide; `deciding`: the number of decisions that are awaited."""

    timeout: asyncio.Timeout
    deciding: int = 0
    left_s: float = 0.0

    def stop(self) -> None:
        if not self.deciding:
            self.left_s = (self.timeout.when() or 0.0) - asyncio.get_running_loop().time()
            self._reschedule(None)
        self.deciding += 1

    def go_on(self) -> None:
        self.deciding -= 1
        if not self.deciding:
            self._reschedule(asyncio.get_running_loop().time() + self.left_s)

    def _reschedule(self, when: float | None) -> None:
        with contextlib.suppress(RuntimeError):  # the limited code has ended
            self.timeout.reschedule(when)


_LIMITS: ContextVar[tuple[_Limit, ...]] = ContextVar("limits", default=())


@contextlib.asynccontextmanager
async def time_limit(seconds: float | None) -> AsyncIterator[asyncio.Timeout]:
    """Limit the duration of the block as `asyncio.timeout` does, without the time that persons take to decide."""
    if seconds is None:
        yield asyncio.timeout(None)
        return
    async with asyncio.timeout(seconds) as timeout:
        token = _LIMITS.set((*_LIMITS.get(), _Limit(timeout)))
        try:
            yield timeout
        finally:
            _LIMITS.reset(token)


@contextlib.contextmanager
def deciding() -> Iterator[None]:
    """Stop the time limits around this block (`time_limit`): a person decides in it."""
    limits = _LIMITS.get()
    for limit in limits:
        limit.stop()
    try:
        yield
    finally:
        for limit in limits:
            limit.go_on()


@dataclass(frozen=True, slots=True)
class ApprovedTool:
    """A tool that changes the world, called only if the call is approved."""

    inner: Tool
    approve: Approver
    is_foreign: Callable[[], bool]

    @property
    def spec(self) -> ToolSpec:
        return self.inner.spec

    @property
    def traits(self) -> Traits:
        return traits_of(self.inner)

    async def ask(self, call: Call) -> None:
        """Ask for approval of a call.

        Raises:
            ToolError: it was not approved.
        """
        if not await self.approve(ToolRequest(tool=call.tool, arguments=call.arguments, foreign=self.is_foreign())):
            raise ToolError(f"{call.tool} was not called: it changes the world, and the call was not approved")

    async def __call__(self, call: Call) -> str:
        await self.ask(call)
        return await self.inner(call)


def with_approval(
    tools: Sequence[Tool], approve: Approve, is_foreign: Callable[[], bool] = lambda: False
) -> tuple[Tool, ...]:
    """Return the tools; those that change the world need approval for each call.

    Args:
        is_foreign: returns whether third-party content was read, so that arguments may contain it.
    """
    decide = approver(approve)
    return tuple(ApprovedTool(each, decide, is_foreign) if traits_of(each).changes else each for each in tools)


MAX_RESULT = 8_000
"""Maximum number of characters of a tool's result; the rest is cut off."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of a call, or the reason of its failure; `untrusted`: the text is third-party content."""

    text: str
    failed: bool = False
    untrusted: bool = False


class UntrustedText(str):
    """A result that is third-party content, from a tool whose results are not always third-party content."""

    __slots__ = ()


async def call_tool(call: Call, tools: Sequence[Tool], timeout_s: float = 30.0) -> Observation:
    """Call the tool that a call names; a failure of the tool is returned, not raised."""
    tool = next((tool for tool in tools if tool.spec.name == call.tool), None)
    if tool is None:
        names = ", ".join(tool.spec.name for tool in tools) or "none"
        return Observation(f"there is no tool {call.tool[:80]!r}; the tools are: {names}", failed=True)
    return await observe_call(call, tool, timeout_s)


async def observe_call(call: Call, tool: Tool, timeout_s: float) -> Observation:
    """Call a tool; its failure is returned, not raised.

    The time that a person takes to approve the call does not count.

    Args:
        timeout_s: maximum duration in seconds, unless the tool has one of its own (`Traits.timeout_s`).
    """
    with span(tracing.EXECUTE_TOOL, call.tool, {tracing.TOOL: call.tool, tracing.ARGUMENTS: call.arguments}) as traced:
        traits = traits_of(tool)
        observation = await _observe(tool, call, traits.timeout_s or timeout_s)
        if traits.untrusted:
            observation = replace(observation, untrusted=True)
        if tracing.is_on:
            tell(traced, {tracing.RESULT: observation.text})
        if observation.failed:
            fail(traced, ToolError.__name__)
        return observation


async def _observe(tool: Tool, call: Call, timeout_s: float) -> Observation:
    try:
        if isinstance(tool, ApprovedTool):
            await ForeignTask(partial(tool.ask, call)).result()
            tool = tool.inner
        result = await ForeignTask(partial(tool, call)).result(timeout_s)
    except Overdue:
        return Observation(f"{call.tool} did not answer within {timeout_s:g} seconds", failed=True)
    except ForeignFailure as error:
        words = str(error) if isinstance(error.cause, ToolError) else f"{call.tool} failed: {error}"
        return Observation(words, failed=True)
    if not isinstance(result, str):
        return Observation(f"{call.tool} failed: it returned {type(result).__name__} instead of text", failed=True)
    return observe_text(result)


def observe_text(result: str) -> Observation:
    """Return the observation of a tool's text. The text is cut and redacted; `UntrustedText` is marked as untrusted."""
    return Observation(redaction.clean(cut(result)).text, untrusted=isinstance(result, UntrustedText))


def cut(text: str) -> str:
    """Return at most MAX_RESULT characters of a result, without characters that cannot be encoded."""
    kept = text[:MAX_RESULT]
    if not kept.isascii():
        kept = kept.encode("utf-8", "replace").decode()
    return kept if len(text) <= MAX_RESULT else f"{kept}\n… ({len(text) - MAX_RESULT} characters cut)"


_ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.\-]*:/*\S|\s*//", re.IGNORECASE)


def addresses_of(arguments: JsonValue) -> frozenset[str]:
    """Return the arguments of a call that are addresses (URLs), in the normal form of `text.links.bare`.

    A value that begins like an address counts as one address as a whole, because a tool would send all of it. A text
    that only contains an address, such as a question to a search engine or a model, does not count: it is not fetched.

    Args:
        arguments: values, or their JSON text as a model wrote it.
    """
    if isinstance(arguments, str):
        try:
            arguments = first_json(arguments, dict)
        except ReplyInvalid:
            return frozenset()  # without JSON arguments no tool is called
    return frozenset(bare(text.strip()) for text in texts_in(arguments) if _is_address(text))


def ungiven(tool: Tool, arguments: str, given: Set[str]) -> str:
    """Return an address in a call that is not in `given`: no trusted source gave it. "": there is no such address.

    The result is "" for tools with the trait `changes`, which need approval anyway, and for tools with the trait
    `concludes`, which only read their arguments.
    """
    if traits_of(tool).changes or traits_of(tool).concludes:
        return ""
    return min(addresses_of(arguments) - given, default="")


def refusal_of(address: str) -> str:
    """Return the message to the model about a call that was not approved because of its address."""
    return (
        f"not called: neither the user nor a search gave the address {address[:200]!r}, third-party content was read"
        " before, and the call was not approved. Use an address that was given."
    )


def _is_address(text: str) -> bool:
    return _ADDRESS.match(text) is not None or links([text]) == {bare(text.strip())}


__getattr__ = renamed(__name__, ForeignText="UntrustedText")


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
        """Make the calls of a reply, and return their results in order.

        If there are too many calls, the last ones may be dropped. Then there are fewer results than calls.
        """

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
    """Ask a model with tools until it answers. The calls of one reply run at the same time.

        answer = await run_tool_loop(model, Light(day="2026-11-24"), [moon], approve=["order"])

    `tools` is read at each step, so a tool can add other tools to it (`tool_search.find_tools_tool`).

    Args:
        tool_timeout_s: maximum duration in seconds of a call of a tool that has no timeout of its own.
        approve: decides about calls of tools that change the world: the names of tools that may be called, or a
            function that decides about each call (see `Approve`). None: every call is made.
        on_text: called with each piece of text as it arrives, also with text that comes before tool calls.

    Raises:
        ModelError: the model failed, or did not answer within `steps`.
    """
    decide = None if approve is None else approver(approve)
    host = _ConcurrentHost(tools, watcher or ToolLog(), tool_timeout_s, decide)
    return await run_loop(model, prompt, host, steps=steps, role=role, on_text=on_text)


async def watched_call(call: Call, tools: Sequence[Tool], watcher: Watcher, timeout_s: float = 30.0) -> Observation:
    """Call a tool, and report the call and its result to the watcher.

    If the watcher has a recorded result, return it and do not call the tool. A tool that changes the run itself
    (`FunctionTool.in_run`) is always called.
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
        found = await together(*(self._make(*each, tools) for each in zip(calls, refusals, strict=False)))
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
