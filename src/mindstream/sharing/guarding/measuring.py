"""Combine the measurements of a pair: answer fit, orders, and the log-probabilities of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mindstream.models.embedders.embedder import Embedder
from mindstream.sharing.exemplar import Exemplar
from mindstream.sharing.guarding.answer_fit import MAX_SEEDS, MIN_SEEDS, AnswerFit, MutualInformation, weigh
from mindstream.sharing.guarding.orders import OrderDetector, build_detector

MAX_RULE_ODDS = 3.0
"""Maximum absolute value of the log odds from the rules (`AnswerFit`), if a model measures as well."""
SLOPE, MIDDLE, LOW, HIGH = 2.0, 0.75, -1.5, 3.0
"""Conversion of mutual information to log odds. SLOPE: the factor. MIDDLE: the mutual information that means even odds.
LOW, HIGH: the range to which the mutual information is clipped before."""


@dataclass(frozen=True)
class Fit:
    """The log odds that an answer belongs to its query; `by`: how they were measured, as text for display."""

    log_odds: float
    by: str


@dataclass(frozen=True)
class Measures:
    """The instruments of a pool, built from its seed exemplars.

    Attributes:
        guard: measures the fit of answers; None if there are too few seed exemplars.
        detector: detects orders to the reader.
        weight: how much the measurements count for a pair whose writer also wrote the query, 0 to 1.
    """

    embedder: Embedder
    guard: AnswerFit | None
    detector: OrderDetector
    weight: float

    async def fit(self, query: str, answer: str, likely: MutualInformation | None = None) -> Fit | None:
        """Return how well an answer belongs to its query; None if it cannot be measured.

        Args:
            likely: a model in this process that measures as well; if it cannot measure the pair, only the rules count.
        """
        if self.guard is None:
            return None
        asked, said = np.asarray(await self.embedder.embed([query, answer]), np.float64)
        odds = self.guard.log_odds(query, answer, asked, said)
        gained = await likely.measure(query, answer, self.guard.alike(asked)) if likely else None
        if likely is None or gained is None:
            return Fit(odds, "rules")
        told = SLOPE * (min(HIGH, max(LOW, gained)) - MIDDLE)
        return Fit(
            min(MAX_RULE_ODDS, max(-MAX_RULE_ODDS, odds)) + told, f"rules and the log-probabilities of {likely.name}"
        )


async def build_measures(embedder: Embedder, exemplars: Sequence[Exemplar]) -> Measures:
    """Build the instruments from the seed exemplars; of more than MAX_SEEDS, an evenly spread sample is used."""
    some = exemplars[:: len(exemplars) // MAX_SEEDS + 1]
    pairs = [(each.query, each.answer) for each in some]
    detector = await build_detector(embedder, pairs)
    if len(some) < MIN_SEEDS:
        return Measures(embedder, None, detector, 0.0)
    vectors = np.asarray(
        await embedder.embed([text for texts in zip(*pairs, strict=True) for text in texts]), np.float64
    )
    guard = AnswerFit(pairs, vectors[: len(some)], vectors[len(some) :])
    return Measures(embedder, guard, detector, weigh(len(some)))
