"""Open minds: each is opened when it is first used, and closed after it was idle for IDLE_S seconds."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from mindstream.clock import Clock, MachineZone
from mindstream.errors import BudgetSpent, Conflict, MindstreamError
from mindstream.identifiers import StreamKey
from mindstream.log.work import ANSWER
from mindstream.minds.mind import Mind
from mindstream.models.model import (
    Call,
    Layer,
    Layered,
    Model,
    Part,
    Piece,
    Request,
    Usage,
    all_tokens,
    estimate_tokens,
)
from mindstream.models.providers.adapter import has_price
from mindstream.models.recording import costs_nothing
from mindstream.models.wrappers.meter import Budget, Metered, WithListener
from mindstream.service.chat.companion import TalkZone
from mindstream.together import cancel_all

IDLE_S, POLL_S = 900.0, 30.0
"""Seconds. IDLE_S: time for which a mind without requests and open work stays open. POLL_S: interval of the checks that
close such minds.
"""
PAYER = "payer"
"""The name under which the id of the token that pays for a mind's reasoning is stored."""
MAX_MINDS = 2_000
"""Maximum number of open minds. If there are more, the minds that were unused for longest are closed."""


OnUsage: TypeAlias = Callable[[str, Usage], None]
"""Called with the role and the usage of each model call."""


@dataclass(slots=True)
class Charge:
    """How the calls of models are charged. Both attributes are read at each call.

    Attributes:
        budget: the budget to which each call is charged; None: calls are not charged.
        on_usage: called after each call; None: there is no listener.
    """

    budget: Budget | None = None
    on_usage: OnUsage | None = None

    def to(self, model: Model) -> Model:
        """Return a model that charges each of its calls.

        Tokens are reserved before a call, and the actual usage is recorded after it.
        """
        return _Charged(model, self)


class MindKey(NamedTuple):
    """Identifies an open mind by its user, session and responder.

    `holds`: the owner of the leases on orphaned work that the mind was opened for; "": none.
    """

    tenant_key: str
    stream: StreamKey
    session: str
    responder: str
    holds: str = ""


@dataclass(eq=False)
class OpenMind:
    """An open mind.

    Attributes:
        last_used: when a request last used the mind, by the clock's elapsed seconds.
        uses: number of requests that use the mind at the moment.
        payer: the id of the token that the store names as the payer; "": none.
        zone: the time zone of the mind's user; may change with each message.
        charge: the budget of the last token with which the mind was used, and a listener to the mind's model calls.
        answers: number of messages that are being answered, or wait for their turn.
        answering: the tasks that answer these messages.
        hearing: the tasks in `answering` whose message is not stored yet. The value says whether to cancel the task
            once the message is stored.
    """

    key: MindKey
    mind: Mind
    close: Callable[[], Awaitable[None]]
    last_used: float
    uses: int = 0
    payer: str = ""
    zone: TalkZone = field(default_factory=lambda: TalkZone(MachineZone()))
    charge: Charge = field(default_factory=Charge)
    answers: int = 0
    answering: set[asyncio.Task[Any]] = field(default_factory=set)
    hearing: dict[asyncio.Task[Any], bool] = field(default_factory=dict)

    @contextlib.contextmanager
    def answers_now(self) -> Iterator[bool]:
        """Register the current task as an answer, so that `break_off` cancels it. Yield whether another answer is
        already running."""
        is_busy, task = self.answers > 0, asyncio.current_task()
        self.answers += 1
        if task is not None:
            self.answering.add(task)
        try:
            yield is_busy
        finally:
            self.answers -= 1
            if task is not None:
                self.answering.discard(task)

    @contextlib.contextmanager
    def hears_now(self) -> Iterator[Callable[[], None]]:
        """Delay `break_off` for this task until its message is stored; the task then calls the yielded function."""
        task = asyncio.current_task()
        assert task is not None
        self.hearing[task] = False

        def heard() -> None:
            if self.hearing.pop(task, False):
                task.cancel()

        try:
            yield heard
        finally:
            self.hearing.pop(task, None)

    def break_off(self) -> int:
        """Cancel the running answers and return their number.

        An answer whose message is being stored is cancelled once the message is stored.
        """
        running = list(self.answering)
        for task in running:
            if task in self.hearing:
                self.hearing[task] = True
            else:
                task.cancel()
        return len(running)


OpenOne = Callable[[MindKey, AsyncExitStack], Awaitable[OpenMind]]


class OpenMinds:
    """Keeps minds open between requests.

    Args:
        open_one: opens a mind; the resources that it puts on the stack are closed with the mind.
        most: maximum number of open minds.
    """

    def __init__(self, open_one: OpenOne, clock: Clock, idle_s: float = IDLE_S, most: int = MAX_MINDS) -> None:
        self._open_one, self._clock, self._idle_s, self._most = open_one, clock, idle_s, most
        self._open: dict[MindKey, OpenMind] = {}
        self._opening: dict[MindKey, asyncio.Lock] = {}
        self._sweeping: asyncio.Task[None] | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    def each(self) -> list[OpenMind]:
        """Return all open minds."""
        return list(self._open.values())

    def of(self, tenant_key: str, stream: StreamKey) -> list[OpenMind]:
        """Return a user's open minds, the most recently used first."""
        found = [each for key, each in self._open.items() if (key.tenant_key, key.stream) == (tenant_key, stream)]
        return sorted(found, key=lambda each: -each.last_used)

    @contextlib.asynccontextmanager
    async def use(self, key: MindKey) -> AsyncIterator[OpenMind]:
        """Yield a mind, and open it if necessary. The mind stays open during the `with` block, and then until it was
        idle for a while.

        Raises:
            Conflict: the server is shutting down.
            MindstreamError: the mind cannot be opened.
        """
        lock = self._opening.setdefault(key, asyncio.Lock())
        async with lock:
            if self._closed:
                raise Conflict("this server is shutting down: send the request again after it was restarted")
            found = self._open.get(key)
            if found is None:
                found = self._open[key] = await self._opened(key)
            found.uses += 1
        try:
            yield found
        finally:
            found.uses -= 1
            found.last_used = self._clock.elapsed()

    async def _opened(self, key: MindKey) -> OpenMind:
        async with AsyncExitStack() as stack:
            made = await self._open_one(key, stack)
            made.close = stack.pop_all().aclose
        if self._sweeping is None:
            self._sweeping = asyncio.ensure_future(self._sweep())
        return made

    async def _sweep(self) -> None:
        """Close minds from time to time; return when no mind is open. A mind in use stays open.

        Idle minds without unfinished work are closed. While too many minds are open, the least recently used minds are
        closed even with unfinished work.
        """
        while self._open:
            await self._clock.sleep(POLL_S)
            now = self._clock.elapsed()
            by_age = sorted(self._open.values(), key=lambda each: each.last_used)
            for place, each in enumerate(by_age):
                too_many = len(by_age) - place > self._most
                if too_many or now - each.last_used > self._idle_s:
                    await self._close_one(each, even_at_work=too_many)
        self._sweeping = None

    async def _close_one(self, one: OpenMind, *, even_at_work: bool) -> None:
        lock = self._opening.setdefault(one.key, asyncio.Lock())
        async with lock:
            if one.uses or self._open.get(one.key) is not one:
                return
            memory = one.mind.memory
            work = [] if even_at_work else await memory.store.open_work(memory.key)
            if any(not each.slot.startswith(ANSWER) for each in work):
                return
            del self._open[one.key]
            await one.close()
        self._opening.pop(one.key, None)

    async def drop(self, stream: StreamKey, before: int | None = None) -> None:
        """Close a stream's minds at once, even if they are in use, because the stream was erased.

        Args:
            before: the number of the erasure. Minds that were opened after the erasure stay open. None: close all.
        """
        of_it = [each for key, each in self._open.items() if key.stream == stream]
        for one in [each for each in of_it if before is None or each.mind.memory.was_opened_before(before)]:
            one.break_off()
            if self._open.get(one.key) is one:
                del self._open[one.key]
                self._opening.pop(one.key, None)
                with contextlib.suppress(MindstreamError):  # the store refuses the mind's writes after the erasure
                    await one.close()

    async def close(self) -> None:
        """Close all minds. The next process that opens a mind resumes the mind's unfinished background reasoning."""
        self._closed = True
        sweeping, self._sweeping = self._sweeping, None
        if sweeping is not None:
            await cancel_all(sweeping)
        minds, self._open = list(self._open.values()), {}
        await asyncio.gather(*(each.close() for each in minds), return_exceptions=True)


class _Charged(Layered):
    """A model that charges each of its calls, including calls that repair or retry a reply (see `Charge`)."""

    def __init__(self, inner: Model, charge: Charge) -> None:
        super().__init__(inner)
        self._charge = charge

    def layer(self, request: Request) -> Layer:
        budget, on_usage = self._charge.budget, self._charge.on_usage
        if budget is None:
            return _Reported(self.inner, request, on_usage)
        return _Reserved(self.inner, request, budget, on_usage)


class _Reported(Layer):
    def __init__(self, inner: Model, request: Request, on_usage: OnUsage | None) -> None:
        super().__init__(inner, request)
        self._on_usage = on_usage

    def take(self, part: Part) -> Sequence[Part]:
        if self._on_usage is not None and isinstance(part, Usage):
            self._on_usage(self.request.role, part)
        return (part,)


class _Usage:
    """Records the usage of a call in a budget. It does not refer to the call's layer, so that no cycle of references
    keeps the request in memory after the call.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget, self.is_known = budget, False

    def count(self, call: Metered) -> None:
        """Count a call; called for each attempt, including those that repair or retry a reply."""
        if call.usage is not None:
            self.is_known = True
            self._budget.spend(call.usage)
            self._budget.unpriced += call.usage.cost_usd is None and not costs_nothing(call.model)


class _Reserved(_Reported):
    def __init__(self, inner: Model, request: Request, budget: Budget, on_usage: OnUsage | None) -> None:
        self._usage = _Usage(budget)
        super().__init__(WithListener(inner, self._usage.count), request, on_usage)
        self._name, self._budget, self._said = inner.name, budget, list[str]()

    async def begin(self) -> None:
        budget = self._budget
        if budget.bring_up is not None:
            await budget.bring_up()
        self._check_price()
        self._reserved = await budget.begin(self.request)
        try:
            self._check_price()  # again: while this call waited, another call may have turned out to have no price
            if budget.bring_up is not None:
                await budget.bring_up()  # so that other processes count this reservation
        except BaseException:
            budget.end(self._reserved, None)
            raise
        if self._reserved.answered < all_tokens(self.request):
            self.request = replace(self.request, longest_reply=self._reserved.answered)

    def take(self, part: Part) -> Sequence[Part]:
        if isinstance(part, Piece | Call):
            self._said.append(part.text if isinstance(part, Piece) else part.arguments)
        return super().take(part)

    def close(self, failure: BaseException | None) -> None:  # noqa: ARG002
        is_estimated = not self._usage.is_known and any(self._said) and not costs_nothing(self._name)
        estimate = Usage(self.request.tokens, estimate_tokens("".join(self._said))) if is_estimated else None
        self._budget.end(self._reserved, estimate)

    def _check_price(self) -> None:
        """Raise BudgetSpent if a limit in US dollars is set and cannot be enforced, because a price is not known."""
        limit = self._budget.cost_usd
        if limit is not None and (self._budget.unpriced or not has_price(self._name)):
            raise BudgetSpent(
                f"a limit of {limit:g} US dollars is set, but the price of {self._name}, or of a model that was called"
                " before, is not known: use models with known prices, or a token with a limit in tokens (--max-tokens)"
            )
