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
        usd_per_day, tokens_per_day: on one day (UTC).
        words_per_day: words that it may say unasked on one day (the tool I).
    """

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    usd_per_day: float | None = None
    tokens_per_day: int | None = None
    words_per_day: int | None = None

    def check(self, spent: LifeSpent, now: Moment) -> None:
        """Raise BudgetSpent where nothing is left for a call of a model."""
        for what, allowed, so_far in (*self._of_life(spent), *self._of_day(spent, now)):
            if allowed is not None and so_far >= allowed:
                raise BudgetSpent(f"{so_far:g} of the {allowed:g} {what} that were allowed are spent")

    def is_over(self, spent: LifeSpent) -> bool:
        """Tell whether no day will give it more: a limit of the whole life is reached."""
        return any(allowed is not None and so_far >= allowed for _, allowed, so_far in self._of_life(spent))

    def room_today(self, spent: LifeSpent, now: Moment) -> str:
        """Say what is left for today, in words; "" where no limit of the day is set."""
        left = ((what, allowed, so_far) for what, allowed, so_far in self._of_day(spent, now) if allowed is not None)
        return ", ".join(f"{allowed - so_far:g} {what.removesuffix(' a day')}" for what, allowed, so_far in left)

    def _of_life(self, spent: LifeSpent) -> tuple[tuple[str, float | None, float], ...]:
        return (
            ("calls", self.calls, spent.calls),
            ("tokens", self.tokens, spent.tokens),
            ("US dollars", self.usd, spent.usd),
        )

    def _of_day(self, spent: LifeSpent, now: Moment) -> tuple[tuple[str, float | None, float], ...]:
        is_today = spent.day == datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
        usd, tokens = (spent.usd_today, spent.tokens_today) if is_today else (0.0, 0)
        return ("US dollars a day", self.usd_per_day, usd), ("tokens a day", self.tokens_per_day, tokens)

    def may_speak(self, spent: LifeSpent, words: int, now: Moment) -> bool:
        """Tell whether so many words may be said unasked now."""
        day = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
        said = spent.words_today if spent.day == day else 0
        return self.words_per_day is None or said + words <= self.words_per_day
