"""What tokens may spend on models in a day (UTC), and have spent: counted in the ledger, for all servers together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from mindstream.clock import DAY_S, Clock
from mindstream.errors import StorageError
from mindstream.models.wrappers.budget import Budget
from mindstream.server.ledger import Ledger
from mindstream.server.tokens import ISSUED, IssuedLimits, Token, Tokens

KEPT_S = 2.0
"""So long what was spent may be known in memory alone, while much is left."""
NEAR = 0.8
"""Share of a limit from which on each request exchanges with the ledger what was spent."""


class Budgets:
    """A budget for each token that has limits, anew each day; what all servers spend is counted together.

    What calls in flight reserve is written down as spent, and corrected when they end. A server that is killed leaves
    its reservations counted for that day.

    Args:
        issued: the limits of each holder of an issuer's tokens.
        is_shared: other processes spend of the same budgets, so that each call exchanges with the ledger before it
            begins. One call of each process may exceed a limit then; in one process none does.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        tokens: Tokens,
        issued: IssuedLimits | None = None,
        *,
        is_shared: bool = True,
    ) -> None:
        self._ledger, self._clock, self._tokens = ledger, clock, tokens
        self._issued, self._is_shared = issued, is_shared
        self._held: dict[tuple[str, int], Budget] = {}
        self._kept: dict[tuple[str, int], tuple[int, int, float]] = {}
        self._at: dict[tuple[str, int], float] = {}

    async def of(self, token: Token) -> Budget | None:
        """Return what a token may spend today; None: there is no limit."""
        if token.tokens is None and token.usd is None:
            return None
        key = (token.id, int(self._clock.now() // DAY_S))
        if key not in self._held:
            spent = await self._ledger.spend(*key, 0, 0, 0.0)
            if key not in self._held:
                budget = Budget(None, token.tokens, token.usd, *spent)
                budget.bring_up = lambda: self._bring_up(key, is_call=True)
                self._held[key], self._kept[key], self._at[key] = budget, spent, self._clock.elapsed()
        await self._bring_up(key)
        return self._held[key]

    async def of_id(self, id_: str) -> Budget | None:
        """Return what the token of an id may spend today; None: there is no limit, or no such token."""
        if self._issued is not None and id_.startswith(ISSUED):
            return await self.of(self._issued.limited(id_))
        found = next((each for each in await self._tokens.each() if each.id == id_), None)
        return await self.of(found) if found is not None else None

    async def _bring_up(self, key: tuple[str, int], *, is_call: bool = False) -> None:
        """Exchange with the ledger what was spent: ours is added there, and that of others here."""
        budget, now = self._held.get(key), self._clock.elapsed()
        if budget is None:
            return
        if now - self._at[key] > KEPT_S or (self._is_shared and (is_call or budget.is_near(NEAR))):
            self._at[key] = now
            await self._exchange(key, budget)

    async def _exchange(self, key: tuple[str, int], budget: Budget) -> None:
        kept, ours = self._kept[key], _counted(budget)
        self._kept[key] = ours  # whoever comes meanwhile adds what comes after
        calls, tokens, usd = ours[0] - kept[0], ours[1] - kept[1], ours[2] - kept[2]
        try:
            spent = await self._ledger.spend(*key, calls, tokens, usd)
        except BaseException:
            now = self._kept[key]
            self._kept[key] = (now[0] - calls, now[1] - tokens, now[2] - usd)
            raise
        others = (spent[0] - ours[0], spent[1] - ours[1], spent[2] - ours[2])
        now = self._kept[key]
        self._kept[key] = (now[0] + others[0], now[1] + others[1], now[2] + others[2])
        budget.spent_calls += others[0]
        budget.spent_tokens += others[1]
        budget.spent_usd += others[2]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Write down what is spent every KEPT_S while the block runs, and at its end: a kill loses no more."""
        over = asyncio.Event()
        going = asyncio.ensure_future(self._keep_until(over))
        try:
            yield
        finally:
            over.set()  # not cancelled: what is just being written would count twice
            await going
            await self.keep()

    async def _keep_until(self, over: asyncio.Event) -> None:
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), KEPT_S)
            with contextlib.suppress(StorageError):  # it is written down the next time
                await self.keep()

    async def keep(self) -> None:
        """Write down what was spent since, and let go of days that are over."""
        today = int(self._clock.now() // DAY_S)
        for key, each in list(self._held.items()):
            if _counted(each) != self._kept[key]:
                await self._exchange(key, each)
            if key[1] < today - 1:
                del self._held[key], self._kept[key], self._at[key]


def _counted(budget: Budget) -> tuple[int, int, float]:
    """Return what counts for other servers: what is spent, and what calls in flight have reserved."""
    return (budget.spent_calls, budget.spent_tokens + budget.reserved_tokens, budget.spent_usd + budget.reserved_usd)
