"""What an evaluation asked of models."""

from __future__ import annotations

from dataclasses import dataclass

from mindstream.models.wrappers.meter import Metered


@dataclass
class Spent:
    """What models were asked, as they are metered."""

    calls: int = 0
    tokens: int = 0
    usd: float | None = 0.0

    def take(self, call: Metered) -> None:
        """Count a call."""
        self.calls += 1
        if call.usage is not None:
            self.tokens += call.usage.input_tokens + call.usage.output_tokens
            cost = call.usage.cost_usd
            self.usd = None if self.usd is None or cost is None else self.usd + cost
