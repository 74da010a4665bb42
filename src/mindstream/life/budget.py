"""What a life may spend. What it has spent stands in its log, so the limits hold across processes and crashes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from mindstream.clock import Moment
from mindstream.errors import BudgetSpent
from mindstream.life.context import LifeSpent


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeBudget:
    """Limits over the whole life, exceeded by one call at most; None: no limit.

    Attributes:
        calls, tokens, usd: of models; a call whose price is not known adds nothing to the money.
        usd_per_day: money on one day (UTC).
        words_per_day: words that it may say unasked on one day (the tool I).
    """

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    usd_per_day: float | None = None
    words_per_day: int | None = None

    def check(self, spent: LifeSpent, now: Moment) -> None:
        """Raise BudgetSpent where nothing is left for a call of a model."""
        day = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
        today = spent.usd_today if spent.day == day else 0.0
        for what, allowed, so_far in (
            ("calls", self.calls, spent.calls),
            ("tokens", self.tokens, spent.tokens),
            ("US dollars", self.usd, spent.usd),
            ("US dollars a day", self.usd_per_day, today),
        ):
            if allowed is not None and so_far >= allowed:
                raise BudgetSpent(f"{so_far:g} of the {allowed:g} {what} that were allowed are spent")

    def may_speak(self, spent: LifeSpent, words: int, now: Moment) -> bool:
        """Tell whether so many words may be said unasked now."""
        day = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
        said = spent.words_today if spent.day == day else 0
        return self.words_per_day is None or said + words <= self.words_per_day
