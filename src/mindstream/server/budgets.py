"""Daily budgets of access tokens for model calls, counted over all servers of the same data."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TypeAlias

from mindstream.clock import DAY_S, Clock
from mindstream.errors import StorageError
from mindstream.models.wrappers.meter import Budget
from mindstream.server.server_state import ServerState
from mindstream.server.tokens import ISSUED, IssuedLimits, Token, Tokens

KEPT_S = 2.0
"""Interval in seconds at which a token's spending is exchanged with other processes: by a background task if this
process has spent something, and by the first request after that interval."""
NEAR = 0.8
"""Share of a limit. If more than this share is spent, every request exchanges spending with other processes."""
Spent: TypeAlias = tuple[int, int, float]
"""Spending: model calls, tokens, US dollars."""


@dataclass
class _Account:
    """The budget of an access token for one day.

    Attributes:
        stored: the part of the budget's spending that is already in the stored sum: all spending of other servers, and
            this process's up to the last exchange.
        at: the time of the last exchange.
    """

    budget: Budget
    stored: Spent
    at: float


class Budgets:
    """The daily budgets of all access tokens that have limits; the spending of all servers is counted together.

    Reservations of running calls are stored as spent, and corrected when the calls end. Reservations of a killed server
    remain counted for that day.

    Args:
        issued: the limits of each user or application that signs in through the OIDC issuer.
        is_shared: other processes use the same budgets, so spending is exchanged before each model call. A limit can
            then be exceeded by one call of each process; with a single process it cannot be exceeded.
    """

    def __init__(
        self,
        state: ServerState,
        clock: Clock,
        tokens: Tokens,
        issued: IssuedLimits | None = None,
        *,
        is_shared: bool = True,
    ) -> None:
        self._state, self._clock, self._tokens = state, clock, tokens
        self._issued, self._is_shared = issued, is_shared
        self._accounts: dict[tuple[str, int], _Account] = {}

    async def of(self, token: Token) -> Budget | None:
        """Return today's budget of an access token; None: it has no limit."""
        if token.tokens is None and token.usd is None:
            return None
        key = (token.id, int(self._clock.now() // DAY_S))
        if key not in self._accounts:
            spent = await self._state.spend(*key, 0, 0, 0.0)
            if key not in self._accounts:
                budget = Budget(None, token.tokens, token.usd, *spent)
                budget.bring_up = lambda: self._refresh(key, is_call=True)
                self._accounts[key] = _Account(budget, spent, self._clock.elapsed())
        await self._refresh(key)
        return self._accounts[key].budget

    async def of_id(self, id_: str) -> Budget | None:
        """Return today's budget of the access token with this id; None: it has no limit, or does not exist."""
        if self._issued is not None and id_.startswith(ISSUED):
            return await self.of(self._issued.limited(id_))
        found = next((each for each in await self._tokens.each() if each.id == id_), None)
        return await self.of(found) if found is not None else None

    async def _refresh(self, key: tuple[str, int], *, is_call: bool = False) -> None:
        account, now = self._accounts.get(key), self._clock.elapsed()
        if account is None:
            return
        if now - account.at > KEPT_S or (self._is_shared and (is_call or account.budget.is_near(NEAR))):
            account.at = now
            await self._exchange(key, account)

    async def _exchange(self, key: tuple[str, int], account: _Account) -> None:
        """Add this process's spending to the stored sum, and other processes' spending to the budget."""
        before, ours = account.stored, _counted(account.budget)
        account.stored = ours  # spending during this exchange is added by the next one
        added = _minus(ours, before)
        try:
            spent = await self._state.spend(key[0], key[1], *added)
        except BaseException:
            account.stored = _minus(account.stored, added)
            raise
        others, budget = _minus(spent, ours), account.budget
        account.stored = _minus(account.stored, _minus(ours, spent))
        budget.spent_calls += others[0]
        budget.spent_tokens += others[1]
        budget.spent_usd += others[2]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Store spending every KEPT_S seconds during the `with` block and at its end.

        A killed process loses at most the spending of KEPT_S seconds.
        """
        over = asyncio.Event()
        storing = asyncio.ensure_future(self._store_until(over))
        try:
            yield
        finally:
            over.set()  # the task is not cancelled, because a cancelled `_exchange` may count spending twice
            await storing
            await self.keep()

    async def _store_until(self, over: asyncio.Event) -> None:
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), KEPT_S)
            with contextlib.suppress(StorageError):  # the next round stores it
                await self.keep()

    async def keep(self) -> None:
        """Store spending since the last exchange, and drop budgets that are older than yesterday."""
        today = int(self._clock.now() // DAY_S)
        for key, account in list(self._accounts.items()):
            if _counted(account.budget) != account.stored:
                await self._exchange(key, account)
            if key[1] < today - 1:
                del self._accounts[key]


def _counted(budget: Budget) -> Spent:
    """Return the spending to exchange with other servers: spent amounts plus reservations of running calls."""
    return (budget.spent_calls, budget.spent_tokens + budget.reserved_tokens, budget.spent_usd + budget.reserved_usd)


def _minus(one: Spent, other: Spent) -> Spent:
    return (one[0] - other[0], one[1] - other[1], one[2] - other[2])
