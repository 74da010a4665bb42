"""Stop before more is spent than was allowed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from mindstream.errors import BudgetSpent
from mindstream.models.model import Call, Model, Part, Piece, Request, Usage
from mindstream.models.providers.limits import all_tokens
from mindstream.models.shorten import estimate_tokens, request_tokens


@dataclass
class Budget:
    """What may be spent, shared by any number of models, and what has been; exceeded by one call at most.

    A call waits while those that go on might leave nothing for it: they are taken to need what they asked with, all
    that they may write, and as much as the dearest call so far; the first one goes alone. An endpoint that tells no
    usage is counted by an estimate. A call whose price is not known (a local model) adds nothing to `spent_usd`.
    """

    calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    spent_calls: int = 0
    spent_tokens: int = 0
    spent_usd: float = 0.0
    _runs: set[str] = field(default_factory=set, repr=False)
    _going_on: list[int] = field(default_factory=list, repr=False)
    _dearest: int | None = field(default=None, repr=False)
    _price: float = field(default=0.0, repr=False)
    _ended: asyncio.Event | None = field(default=None, repr=False)

    def take_up(self, run: str, calls: int, tokens: int, cost_usd: float) -> None:
        """Count what a run took before it came to this budget; once, for here it is counted as it goes."""
        if run not in self._runs:
            self._runs.add(run)
            self.spent_calls += calls
            self.spent_tokens += tokens
            self.spent_usd += cost_usd

    def take_call(self) -> None:
        """Count one call.

        Raises:
            BudgetSpent: nothing is left for it.
        """
        self.check()
        self.spent_calls += 1

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

    async def begin(self, request: Request) -> int:
        """Count one call as soon as it can go on beside the others; return what it may take, in tokens.

        Raises:
            BudgetSpent: nothing is left for it.
        """
        bounded = self.tokens is not None or self.cost_usd is not None
        most = request_tokens(request) + all_tokens(request) if bounded else 0
        self.check()
        while self._going_on and self._may_leave_nothing():
            self._ended = self._ended or asyncio.Event()
            await self._ended.wait()
            self.check()
        self.take_call()
        self._going_on.append(most)
        return most

    def end(self, most: int, used: Usage | None) -> None:
        """Count what a call took that was begun."""
        self._going_on.remove(most)
        if used is not None:
            self.spend(used)
        if self._ended is not None:
            self._ended.set()
            self._ended = None

    def spend(self, used: Usage) -> None:
        """Count what a call took."""
        tokens = used.input_tokens + used.output_tokens
        self.spent_tokens += tokens
        self.spent_usd += used.cost_usd or 0.0
        self._dearest = max(tokens, self._dearest or 0)
        self._price = max((used.cost_usd or 0.0) / max(tokens, 1), self._price)

    def _may_leave_nothing(self) -> bool:
        """Tell whether what goes on may take all that is allowed."""
        if self.tokens is None and self.cost_usd is None:
            return False
        if self._dearest is None:
            return True
        tokens = sum(max(most, self._dearest) for most in self._going_on)
        return (
            self.spent_tokens + tokens >= (math.inf if self.tokens is None else self.tokens)
            or self.spent_usd + tokens * self._price >= (math.inf if self.cost_usd is None else self.cost_usd)
        )  # fmt: skip


class Budgeted:
    """A model that answers while its budget lasts."""

    def __init__(self, model: Model, budget: Budget) -> None:
        self.name = model.name
        self._model = model
        self._budget = budget

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        most = await self._budget.begin(request)
        told: Usage | None = None
        said: list[str] = []
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
                told = Usage(request_tokens(request), estimate_tokens("".join(said)))
            self._budget.end(most, told)
