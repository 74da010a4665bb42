"""What tokens may spend on models in a day (UTC), and have spent: kept in the ledger; a restart frees nothing."""

from __future__ import annotations

from mindstream.clock import DAY_S, Clock
from mindstream.models.wrappers.budget import Budget
from mindstream.server.ledger import Ledger
from mindstream.server.tokens import Token

KEPT_S = 2.0
"""So long what was spent may be known in memory alone."""


class Budgets:
    """A budget for each token that has limits, anew each day."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger, self._clock = ledger, clock
        self._held: dict[tuple[str, int], Budget] = {}
        self._kept: dict[tuple[str, int], int] = {}
        self._at = 0.0

    async def of(self, token: Token) -> Budget | None:
        """Return what a token may spend today; None: there is no limit."""
        if token.tokens is None and token.usd is None:
            return None
        key = (token.id, int(self._clock.now() // DAY_S))
        if self._clock.elapsed() - self._at > KEPT_S:
            await self.keep()
        found = self._held.get(key)
        if found is None:
            calls, tokens, usd = await self._ledger.spent(*key)
            found = self._held.setdefault(
                key, Budget(None, token.tokens, token.usd, spent_calls=calls, spent_tokens=tokens, spent_usd=usd)
            )
        return found

    async def keep(self) -> None:
        """Write down what was spent, and let go of days that are over."""
        self._at, today = self._clock.elapsed(), int(self._clock.now() // DAY_S)
        for key, each in list(self._held.items()):
            if self._kept.get(key) != each.spent_calls:
                self._kept[key] = each.spent_calls
                await self._ledger.spend(*key, each.spent_calls, each.spent_tokens, each.spent_usd)
            if key[1] < today - 1:
                del self._held[key]
                self._kept.pop(key, None)
