"""Measure model calls (tokens, time, cost), and stop them before they exceed a budget."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from mindstream import tracing
from mindstream.clock import Clock, Moment, SystemClock
from mindstream.errors import BudgetSpent, ModelError
from mindstream.models.model import (
    NO_CAUSE,
    Call,
    Cause,
    Cut,
    Layer,
    Layered,
    Message,
    Model,
    Part,
    Piece,
    Request,
    Usage,
    all_tokens,
    current_cause,
    estimate_tokens,
)
from mindstream.models.recording import costs_nothing
from mindstream.tracing import Span, fail, start_span, tell, with_content


@dataclass(frozen=True, slots=True)
class Words:
    """The full text of a request and of its answer; tool calls are written as `tool(arguments)`."""

    asked: tuple[Message, ...]
    answered: str


@dataclass(frozen=True, slots=True)
class Metered:
    """One call of a model.

    Attributes:
        prompt: the prompt's label.
        first_s: seconds until the first part arrived; None if none did.
        usage: None if the endpoint reported none.
        error: the ModelError as `Class: message`; None if there was none.
        broken_off: whether the caller cancelled or stopped reading, or another wrapper, such as `Guard`, ended the
            reply.
        cut: the parts that were removed from the request to fit it into the model's window.
        mended: whether the reply was not JSON (but, for example, JSON5 or Python) and was rewritten as JSON (see
            `Mend`).
        cause: the purpose of the call.
        words: the full text; None if the meter does not keep it.
    """

    model: str
    role: str
    prompt: str
    at: Moment
    first_s: float | None
    seconds: float
    usage: Usage | None = None
    error: str | None = None
    broken_off: bool = False
    cut: tuple[Cut, ...] = ()
    mended: bool = False
    cause: Cause = NO_CAUSE
    words: Words | None = field(default=None, repr=False)


class Meter(Layered):
    """Passes a `Metered` to `on_call` when a call has ended in any way, and records a span if tracing is on.

    Args:
        on_call: called at the end of each call; None: only the listeners of the request get the `Metered`.
        keeps_words: whether `Metered.words` has the full text of the call.
    """

    def __init__(
        self,
        inner: Model,
        on_call: Callable[[Metered], None] | None,
        clock: Clock | None = None,
        *,
        keeps_words: bool = False,
    ) -> None:
        super().__init__(inner)
        self.on_call, self.clock, self.keeps_words = on_call, clock or SystemClock(), keeps_words

    def layer(self, request: Request) -> Layer:
        return _Measured(self, request)


class _Measured(Layer):
    def __init__(self, meter: Meter, request: Request) -> None:
        super().__init__(meter.inner, request)
        self._meter, self._clock = meter, meter.clock
        self._at, self._start, self._cause = self._clock.now(), self._clock.elapsed(), current_cause()
        self._span = _begin_span(self.inner.name, request) if tracing.is_on else None
        self._keeps = meter.keeps_words or with_content()
        self._answered: list[str] = []
        self._first_s: float | None = None
        self._usage: Usage | None = None

    async def start(self) -> None:
        self._first_s = self._clock.elapsed() - self._start

    def take(self, part: Part) -> Sequence[Part]:
        match part:
            case Usage():
                self._usage = part
            case Piece() if self._keeps:
                self._answered.append(part.text)
            case Call() if self._keeps:
                self._answered.append(f"{part.tool}({part.arguments})\n")
        return (part,)

    def close(self, failure: BaseException | None) -> None:
        request, answered = self.request, "".join(self._answered)
        call = Metered(
            self.inner.name,
            request.role,
            request.prompt.label(),
            self._at,
            self._first_s,
            self._clock.elapsed() - self._start,
            self._usage,
            f"{type(failure).__name__}: {failure}" if isinstance(failure, ModelError) else None,
            isinstance(failure, GeneratorExit | asyncio.CancelledError),
            request.cut,
            cause=self._cause,
            words=Words(request.messages, answered) if self._meter.keeps_words else None,
        )
        if self._span:
            _end_span(self._span, call, answered)
        for report in filter(None, (self._meter.on_call, request.on_call)):
            report(call)


def _begin_span(model: str, request: Request) -> Span:
    named = tracing.model_attributes(model)
    span = start_span(tracing.CHAT, str(named[tracing.MODEL]), named)
    tell(span, {tracing.PROMPT: request.prompt.label(), "mindstream.role": request.role})
    if with_content():
        tell(span, {tracing.ASKED: tracing.write_messages((each.role, each.text) for each in request.messages)})
    return span


def _end_span(span: Span, call: Metered, answered: str) -> None:
    if used := call.usage:
        tell(span, {tracing.INPUT_TOKENS: used.input_tokens, tracing.OUTPUT_TOKENS: used.output_tokens})
        tell(span, {tracing.CACHED_TOKENS: used.cached_tokens} if used.cached_tokens else {})
    if call.error:
        fail(span, call.error.partition(":")[0])
    if with_content():
        tell(span, {tracing.ANSWERED: tracing.write_answer(answered)})
    span.end()


class WithListener(Layered):
    """Reports the calls of one caller to that caller's `on_call`, for models that many minds share.

    It puts `on_call` into each request; the inner `Meter` reports each attempt to it.
    """

    def __init__(self, inner: Model, on_call: Callable[[Metered], None]) -> None:
        super().__init__(inner)
        self._on_call = on_call

    def layer(self, request: Request) -> Layer:
        listeners = [self._on_call, request.on_call] if request.on_call else [self._on_call]
        # Not a method of the layer: a request that refers to its layer is only freed by the garbage collector.
        return Layer(self.inner, request.but(on_call=partial(_report, listeners)))


def _report(listeners: Sequence[Callable[[Metered], None]], call: Metered) -> None:
    for listener in listeners:
        listener(call)


MIN_REPLY = 200
"""Minimum number of tokens that must be left for a reply, or the reply's own limit if it is lower. With fewer tokens
left, the call is not made."""
UNTRIED = 20
"""Factor for calls that begin before any call has ended. While other calls run, such a call starts only if the tokens
left in the budget are at least this many times the tokens that the call may use."""


@dataclass(frozen=True, slots=True, eq=False)
class Reserved:
    """The tokens reserved for a call. `asked`: the estimated tokens of the request. `answered`: the maximum tokens of
    the reply."""

    asked: int
    answered: int


@dataclass
class Budget:
    """A budget that any number of models share, with the amounts that have been spent.

    Tokens are reserved before a call: the tokens of its request and of its longest reply, or the average of earlier
    calls if this is more. A call waits while running calls leave too few tokens. If no other call runs, the reply may
    use all tokens that are left. The call is not made if fewer than MIN_REPLY tokens are left for the reply, unless the
    longest reply needs even fewer.

    The limit in US dollars is exceeded by at most one call. A call waits while the running calls may use up the rest at
    the highest known price per token. With a limit in US dollars, the first call runs alone, to find out the price.

    If an endpoint reports no usage, an estimate is counted. A call whose price is not known adds nothing to
    `spent_usd`; it is counted in `unpriced`, unless the model is free.
    """

    calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    spent_calls: int = 0
    spent_tokens: int = 0
    spent_usd: float = 0.0
    unpriced: int = 0
    bring_up: Callable[[], Awaitable[None]] | None = field(default=None, repr=False, compare=False)
    """Exchanges the spent and reserved amounts with other processes. It is called before each model call, and again
    when the tokens of the call are reserved. None: no other process shares the budget."""
    _runs: set[str] = field(default_factory=set, repr=False)
    _running: list[Reserved] = field(default_factory=list, repr=False)
    _has_ended: bool = field(default=False, repr=False)
    _price: float = field(default=0.0, repr=False)
    _short: float = field(default=1.0, repr=False)
    """Highest ratio so far of an endpoint's count of a prompt's tokens to the estimate of them; at least 1."""
    _ended: asyncio.Event | None = field(default=None, repr=False)

    def take_up(self, run: str, calls: int, tokens: int, cost_usd: float, unpriced: int = 0) -> None:
        """Add the amounts that a run spent before it used this budget, only once per run."""
        if run not in self._runs:
            self._runs.add(run)
            self.spent_calls += calls
            self.spent_tokens += tokens
            self.spent_usd += cost_usd
            self.unpriced += unpriced

    def take_call(self) -> None:
        """Count one call.

        Raises:
            BudgetSpent: nothing is left for a call.
        """
        self.check()
        self.spent_calls += 1

    def is_near(self, share: float) -> bool:
        """Return whether at least this share of any limit (calls, tokens or cost) is spent, or reserved for calls in
        progress."""
        tokens, usd = self.spent_tokens + self.reserved_tokens, self.spent_usd + self.reserved_usd
        limits = ((self.calls, self.spent_calls), (self.tokens, tokens), (self.cost_usd, usd))
        return any(allowed is not None and spent >= share * allowed for allowed, spent in limits)

    def check(self) -> None:
        """Raise BudgetSpent if nothing is left for a call."""
        if self.calls is self.tokens is self.cost_usd is None:
            return
        for what, allowed, spent in (
            ("call", self.calls, self.spent_calls),
            ("token", self.tokens, self.spent_tokens),
            ("US dollar", self.cost_usd, self.spent_usd),
        ):
            if allowed is not None and spent >= allowed:
                raise BudgetSpent(
                    f"the limit of {allowed:g} {what}{'s' * (allowed != 1)} is reached (spent: {spent:g}): raise it, or"
                    " stop"
                )

    async def begin(self, request: Request) -> Reserved:
        """Wait until the call fits into the budget beside the running calls. Then count the call, and reserve its
        tokens.

        Raises:
            BudgetSpent: too little is left for this call.
        """
        bounded = self.tokens is not None or self.cost_usd is not None
        asked, wanted = request.tokens if bounded else 0, all_tokens(request)
        self.check()
        while self._running and (self._is_tight(asked * self._short + wanted) or self._may_use_all_money()):
            self._ended = self._ended or asyncio.Event()
            await self._ended.wait()
            self.check()
        left = self._room() - asked * self._short
        if left < min(wanted, MIN_REPLY):
            raise BudgetSpent(
                f"{self.spent_tokens:,} of the {self.tokens:,} allowed tokens are spent, and the next request"
                f" needs {asked:,} tokens and room for a reply: raise the limit, or stop"
            )
        self.take_call()
        reserved = Reserved(asked, int(min(wanted, left)))
        self._running.append(reserved)
        return reserved

    def end(self, reserved: Reserved, used: Usage | None, *, free: bool = False) -> None:
        """Release the reservation of a call and count its usage; `free`: the model costs nothing."""
        self._running.remove(reserved)
        if used is not None:
            self.unpriced += used.cost_usd is None and not free
            self.spend(used)
            self._short = max(self._short, used.input_tokens / (reserved.asked or used.input_tokens or 1))
        if self._ended is not None:
            self._ended.set()
            self._ended = None

    def spend(self, used: Usage) -> None:
        """Count the usage of a call."""
        self._has_ended = True
        self.spent_tokens += used.tokens
        self.spent_usd += used.cost_usd or 0.0
        self._price = max((used.cost_usd or 0.0) / max(used.tokens, 1), self._price)

    @property
    def reserved_tokens(self) -> int:
        """Tokens that the running calls may still use."""
        usual = self._usual()
        return math.ceil(sum(max(each.asked * self._short + each.answered, usual) for each in self._running))

    @property
    def reserved_usd(self) -> float:
        """US dollars that the running calls may still cost, at the highest known price per token."""
        return self.reserved_tokens * self._price

    def _usual(self) -> float:
        """Return the average number of tokens of the calls that have ended; 0 if none has."""
        ended = self.spent_calls - len(self._running)
        return self.spent_tokens / ended if ended > 0 else 0.0

    def _is_tight(self, wanted: float) -> bool:
        """Return whether a call of this many tokens must wait for the running ones."""
        return self._room() < (max(wanted, self._usual()) if self._has_ended else UNTRIED * wanted)

    def _room(self) -> float:
        """Return the tokens that are neither spent nor reserved."""
        return math.inf if self.tokens is None else self.tokens - self.spent_tokens - self.reserved_tokens

    def _may_use_all_money(self) -> bool:
        """Return whether the running calls may use up the money; before the first call has ended, assume so."""
        if self.cost_usd is None:
            return False
        return not self._has_ended or self.spent_usd + self.reserved_usd >= self.cost_usd


class Budgeted(Layered):
    """A model that answers while its budget lasts."""

    def __init__(self, inner: Model, budget: Budget) -> None:
        super().__init__(inner)
        self._budget = budget

    def layer(self, request: Request) -> Layer:
        return _Counted(self.inner, request, self._budget)


class _Counted(Layer):
    def __init__(self, inner: Model, request: Request, budget: Budget) -> None:
        super().__init__(inner, request)
        self._budget = budget
        self._used: Usage | None = None
        self._text: list[str] = []

    async def begin(self) -> None:
        self._reserved = await self._budget.begin(self.request)
        if self._reserved.answered < all_tokens(self.request):
            self.request = self.request.but(longest_reply=self._reserved.answered)
        self.request = self.request.but(on_thought=self._text.append)  # thoughts cost as much as the reply

    def take(self, part: Part) -> Sequence[Part]:
        match part:
            case Piece():
                self._text.append(part.text)
            case Call():
                self._text.append(part.arguments)
            case Usage():
                self._used = part
        return (part,)

    def close(self, failure: BaseException | None) -> None:  # noqa: ARG002
        if self._used is None and any(self._text):
            self._used = Usage(self.request.tokens, estimate_tokens("".join(self._text)))
        self._budget.end(self._reserved, self._used, free=costs_nothing(self.inner.name))
