"""Stop model calls before they exceed a budget of calls, tokens or US dollars."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from mindstream.errors import BudgetSpent
from mindstream.models.model import Call, Model, Part, Piece, Request, Usage, estimate_tokens
from mindstream.models.providers.limits import all_tokens
from mindstream.models.recording import costs_nothing
from mindstream.models.wrappers.layer import Layer, Layered

MIN_REPLY = 200
"""Minimum number of tokens that must be left for a reply, or the reply's own limit if that is lower; with fewer, the
call is not made."""
UNTRIED = 20
"""Until the first call has ended, a parallel call starts only if this multiple of the tokens that it may use is
left."""


@dataclass(frozen=True, slots=True, eq=False)
class Reserved:
    """The tokens reserved for a call: the estimated tokens of its request, and the maximum of its reply."""

    asked: int
    answered: int


@dataclass
class Budget:
    """A budget that any number of models share, with the amounts that have been spent.

    Tokens are reserved before a call: those of its request and of its longest reply, or the average of earlier calls if
    that is more. A call waits while running calls leave too few tokens. If no call runs, its reply may use all tokens
    that are left; if fewer than MIN_REPLY are left, the call is not made.
    The limit in US dollars is exceeded by at most one call: a call waits while the running calls may use up the rest at
    the highest known price per token. With this limit, the first call runs alone, to find out the price. If an endpoint
    reports no usage, an estimate is counted. A call whose price is not known adds nothing to `spent_usd`; it is counted
    in `unpriced`, unless the model is free.
    """

    calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    spent_calls: int = 0
    spent_tokens: int = 0
    spent_usd: float = 0.0
    unpriced: int = 0
    bring_up: Callable[[], Awaitable[None]] | None = field(default=None, repr=False, compare=False)
    """Exchanges the spent and reserved amounts with other processes; None: the budget is not shared with any. The
    service calls it before each model call, and again once the call's tokens are reserved."""
    _runs: set[str] = field(default_factory=set, repr=False)
    _running: list[Reserved] = field(default_factory=list, repr=False)
    _has_ended: bool = field(default=False, repr=False)
    _price: float = field(default=0.0, repr=False)
    _short: float = field(default=1.0, repr=False)
    """Highest ratio so far of tokens that an endpoint counted to tokens that were estimated."""
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
        """Return whether this share of a limit is spent or reserved."""
        tokens, usd = self.spent_tokens + self.reserved_tokens, self.spent_usd + self.reserved_usd
        limits = ((self.calls, self.spent_calls), (self.tokens, tokens), (self.cost_usd, usd))
        return any(allowed is not None and spent >= share * allowed for allowed, spent in limits)

    def check(self) -> None:
        """Raise BudgetSpent if nothing is left for a call."""
        if self.calls is self.tokens is self.cost_usd is None:
            return
        for what, allowed, spent in (
            ("calls", self.calls, self.spent_calls),
            ("tokens", self.tokens, self.spent_tokens),
            ("US dollars", self.cost_usd, self.spent_usd),
        ):
            if allowed is not None and spent >= allowed:
                raise BudgetSpent(
                    f"the limit of {allowed:g} {what} is reached ({spent:g} are spent): raise it, or stop"
                )

    async def begin(self, request: Request) -> Reserved:
        """Wait until the call fits into the budget in addition to the running ones, count it, and reserve its tokens.

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
                f"{self.spent_tokens} of the {self.tokens} tokens that were allowed are spent, and the next request has"
                f" {asked:,} tokens: raise the limit, or stop"
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
        tokens = used.input_tokens + used.output_tokens
        self.spent_tokens += tokens
        self.spent_usd += used.cost_usd or 0.0
        self._price = max((used.cost_usd or 0.0) / max(tokens, 1), self._price)

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
