"""Stop before more is spent than was allowed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from mindstream.errors import BudgetSpent
from mindstream.models.model import Call, Model, Part, Piece, Request, Usage, estimate_tokens
from mindstream.models.providers.limits import all_tokens
from mindstream.models.recording import costs_nothing

LEAST_REPLY = 200
"""A call that could write less is not made."""
UNTRIED = 20
"""Before any call has ended, estimates are not trusted: calls go on side by side only if so many of them have room."""


@dataclass(frozen=True, slots=True, eq=False)
class Reserved:
    """What a call may take, in tokens: what it asks with, by an estimate, and what it may write."""

    asked: int
    answered: int


@dataclass
class Budget:
    """What may be spent, shared by any number of models, and what has been.

    Tokens are reserved before a call: what it asks with and all that it may write, or what calls took on average if
    that is more. While others go on and leave too little for that, it waits; alone, it may write as much as is left,
    and where that is next to nothing it is not made.
    Money is exceeded by one call at most: a call waits while those that go on might leave nothing for it, at the
    dearest price a token so far, which the first call, alone, finds out. An endpoint without usage is counted by an
    estimate. A call whose price is not known (a local model) adds nothing to `spent_usd`; it is counted as `unpriced`.
    """

    calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    spent_calls: int = 0
    spent_tokens: int = 0
    spent_usd: float = 0.0
    unpriced: int = 0
    bring_up: Callable[[], Awaitable[None]] | None = field(default=None, repr=False, compare=False)
    """Exchanges with other processes what is spent and reserved; called before a call and once it has reserved."""
    _runs: set[str] = field(default_factory=set, repr=False)
    _going_on: list[Reserved] = field(default_factory=list, repr=False)
    _has_ended: bool = field(default=False, repr=False)
    _price: float = field(default=0.0, repr=False)
    _short: float = field(default=1.0, repr=False)
    """How many tokens an endpoint counted for each that was estimated, at most."""
    _ended: asyncio.Event | None = field(default=None, repr=False)

    def take_up(self, run: str, calls: int, tokens: int, cost_usd: float, unpriced: int = 0) -> None:
        """Count what a run took before it came to this budget; once, for here it is counted as it goes."""
        if run not in self._runs:
            self._runs.add(run)
            self.spent_calls += calls
            self.spent_tokens += tokens
            self.spent_usd += cost_usd
            self.unpriced += unpriced

    def take_call(self) -> None:
        """Count one call.

        Raises:
            BudgetSpent: nothing is left for it.
        """
        self.check()
        self.spent_calls += 1

    def is_near(self, share: float) -> bool:
        """Tell whether so much of a limit is spent."""
        tokens, usd = self.spent_tokens + self.reserved_tokens, self.spent_usd + self.reserved_usd
        limits = ((self.calls, self.spent_calls), (self.tokens, tokens), (self.cost_usd, usd))
        return any(allowed is not None and spent >= share * allowed for allowed, spent in limits)

    def check(self) -> None:
        """Raise BudgetSpent where nothing is left for a call."""
        for what, allowed, spent in (
            ("calls", self.calls, self.spent_calls),
            ("tokens", self.tokens, self.spent_tokens),
            ("US dollars", self.cost_usd, self.spent_usd),
        ):
            if allowed is not None and spent >= allowed:
                raise BudgetSpent(
                    f"{spent:g} of the {allowed:g} {what} that were allowed are spent: allow more, or stop"
                )

    async def begin(self, request: Request) -> Reserved:
        """Count one call as soon as it can go on beside the others; return what it may take.

        Raises:
            BudgetSpent: too little is left for it.
        """
        bounded = self.tokens is not None or self.cost_usd is not None
        asked, wanted = request.tokens if bounded else 0, all_tokens(request)
        self.check()
        while self._going_on and (self._is_tight(asked * self._short + wanted) or self._may_take_all_money()):
            self._ended = self._ended or asyncio.Event()
            await self._ended.wait()
            self.check()
        if self._room() < asked * self._short + min(wanted, LEAST_REPLY):
            raise BudgetSpent(
                f"{self.spent_tokens} of the {self.tokens} tokens that were allowed are spent, and the next call asks"
                f" with {asked:,}: allow more, or stop"
            )
        self.take_call()
        reserved = Reserved(asked, int(min(wanted, self._room() - asked * self._short)))
        self._going_on.append(reserved)
        return reserved

    def end(self, reserved: Reserved, used: Usage | None, *, free: bool = False) -> None:
        """Count what a call took that was begun; `free`: who answered costs nothing."""
        self._going_on.remove(reserved)
        if used is not None:
            self.unpriced += used.cost_usd is None and not free
            self.spend(used)
            self._short = max(self._short, used.input_tokens / (reserved.asked or used.input_tokens or 1))
        if self._ended is not None:
            self._ended.set()
            self._ended = None

    def spend(self, used: Usage) -> None:
        """Count what a call took."""
        self._has_ended = True
        tokens = used.input_tokens + used.output_tokens
        self.spent_tokens += tokens
        self.spent_usd += used.cost_usd or 0.0
        self._price = max((used.cost_usd or 0.0) / max(tokens, 1), self._price)

    @property
    def reserved_tokens(self) -> int:
        """Tokens that the calls that go on may still take."""
        usual = self._usual()
        return math.ceil(sum(max(each.asked * self._short + each.answered, usual) for each in self._going_on))

    @property
    def reserved_usd(self) -> float:
        """US dollars that the calls that go on may still take, at the highest price a token so far."""
        return self.reserved_tokens * self._price

    def _usual(self) -> float:
        """Return how many tokens a call took on average; 0 before any has ended."""
        ended = self.spent_calls - len(self._going_on)
        return self.spent_tokens / ended if ended > 0 else 0.0

    def _is_tight(self, wanted: float) -> bool:
        """Return whether a call of so many tokens must wait for those that go on."""
        return self._room() < (max(wanted, self._usual()) if self._has_ended else UNTRIED * wanted)

    def _room(self) -> float:
        """Return how many tokens are left beside what is reserved."""
        return math.inf if self.tokens is None else self.tokens - self.spent_tokens - self.reserved_tokens

    def _may_take_all_money(self) -> bool:
        """Tell whether what goes on may; nobody knows before the first call has ended."""
        if self.cost_usd is None:
            return False
        return not self._has_ended or self.spent_usd + self.reserved_usd >= self.cost_usd


class Budgeted:
    """A model that answers while its budget lasts."""

    def __init__(self, model: Model, budget: Budget) -> None:
        self.name = model.name
        self._model = model
        self._budget = budget

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        reserved = await self._budget.begin(request)
        if reserved.answered < all_tokens(request):
            request = request.but(longest_reply=reserved.answered)
        told: Usage | None = None
        said: list[str] = []
        request = request.but(on_thought=said.append)  # thoughts are paid for as the reply is
        try:
            async with aclosing(self._model.reply(request)) as parts:
                async for part in parts:
                    if isinstance(part, Usage):
                        told = part
                    elif isinstance(part, Piece | Call):
                        said.append(part.text if isinstance(part, Piece) else part.arguments)
                    yield part
        finally:
            if told is None and any(said):
                told = Usage(request.tokens, estimate_tokens("".join(said)))
            self._budget.end(reserved, told, free=costs_nothing(self.name))
