"""What an evaluation asked of models."""

from __future__ import annotations

from dataclasses import dataclass

from mindstream.models.wrappers.meter import Metered
from mindstream.settings import Settings


@dataclass
class Spent:
    """What models were asked, as they are metered."""

    calls: int = 0
    tokens: int = 0
    usd: float | None = 0.0

    def add(self, other: Spent) -> None:
        """Count what others counted."""
        self.calls, self.tokens = self.calls + other.calls, self.tokens + other.tokens
        self.usd = None if self.usd is None or other.usd is None else self.usd + other.usd

    def rest(self, settings: Settings) -> Settings:
        """Return settings that allow what is left of what they allow."""
        calls, tokens, usd = settings.budget_calls, settings.budget_tokens, settings.budget_usd
        return settings.model_copy(
            update={
                "budget_calls": calls and max(0, calls - self.calls),
                "budget_tokens": tokens and max(0, tokens - self.tokens),
                "budget_usd": usd and max(0.0, usd - (self.usd or 0.0)),
            }
        )

    def take(self, call: Metered) -> None:
        """Count a call."""
        self.calls += 1
        if call.usage is not None:
            self.tokens += call.usage.input_tokens + call.usage.output_tokens
            cost = call.usage.cost_usd
            self.usd = None if self.usd is None or cost is None else self.usd + cost
