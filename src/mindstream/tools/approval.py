"""Approval of actions: decides whether a tool that changes the world may be called (`approve=`).

    ChatBot.open(…, approve=["send_mail"])          # of tools that need approval, only these may be called
    Planner(…, approve=lambda request: request.tool != "pay" and not request.foreign)
    run_tool_loop(…, approve=ask_at_the_terminal)   # an async function

Chat bots, planners, lives and the tool loop use the same parameter. Tools that only read need no approval, except for
calls with an address that no trusted source gave (see tools/call.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from mindstream.errors import InputError, ReplyInvalid, ToolError
from mindstream.json_values import JsonObject
from mindstream.models.model import Call, ToolSpec
from mindstream.models.reply import first_json
from mindstream.tools.tool import Tool, Traits, run_in_thread, traits_of


@dataclass(frozen=True, kw_only=True)
class ToolRequest:
    """A call of a tool that needs approval.

    Attributes:
        tool: the name of the tool.
        arguments: its arguments as JSON text; `values` has them as a dictionary.
        foreign: the arguments may contain third-party content (a page, a file, a server's words).
        address: for a call that only reads, the address that makes approval necessary, because no trusted source gave
            it; otherwise "".
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
"""A function that decides whether a call may be made; it gets a `ToolRequest`, or in a plan a `Wish` with the step."""
Approve: TypeAlias = Collection[str] | Callable[[Any], bool | Awaitable[bool]]
"""Values of `approve=`: the names of tools that may be called unless their arguments contain third-party content, or a
function, plain or async, that decides about each call."""


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
        InputError: it is neither True nor a value that counts as False: a text such as "n" must not count as approval.
    """
    if decided and type(decided).__name__ not in ("bool", "bool_"):  # NumPy's is called `bool_` or `bool`
        raise InputError(f"approve= returned {decided!r:.80} for {what}: expected True or False")
    return bool(decided)


def approver(approve: Approve) -> Approver:
    """Return an async function that decides as a value of `approve=` says, about one call at a time.

    If the value is a plain function, it runs in a thread, because it may wait for a person. The returned function
    raises InputError if the given function returns anything but True or a value that counts as False.
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
        request = ToolRequest(tool=call.tool, arguments=call.arguments, foreign=self.is_foreign())
        if not await self.approve(request):
            raise ToolError(f"{call.tool} was not called: it changes the world, and the call was not approved")

    async def __call__(self, call: Call) -> str:
        await self.ask(call)
        return await self.inner(call)


def with_approval(
    tools: Sequence[Tool], approve: Approve, is_foreign: Callable[[], bool] = lambda: False
) -> tuple[Tool, ...]:
    """Return the tools; those that change the world need approval for each call.

    Args:
        is_foreign: whether third-party content was read, so that arguments may contain it.
    """
    decide = approver(approve)
    return tuple(ApprovedTool(each, decide, is_foreign) if traits_of(each).changes else each for each in tools)
