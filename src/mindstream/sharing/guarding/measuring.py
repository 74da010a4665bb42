"""What a pool measures pairs with: made of exemplars, and texts are embedded here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mindstream.models.embedders.embedder import Embedder
from mindstream.sharing.exemplar import Exemplar
from mindstream.sharing.guarding.answer_fit import LEAST, MOST, AnswerFit, MutualInformation, Pairs, weigh
from mindstream.sharing.guarding.orders import OrderDetector, build_detector

SURE = 3.0
"""So many log odds rules give at most where a model is asked, too."""
SLOPE, MIDDLE, LOW, HIGH = 2.0, 0.75, -1.5, 3.0
"""What mutual information says: log odds for each unit of it, from where on it speaks for a pair, and its bounds."""


@dataclass(frozen=True)
class Fit:
    """The log odds that an answer belongs to its query, and who measured them."""

    log_odds: float
    by: str


@dataclass(frozen=True)
class Measures:
    """What a pool measures pairs with; made of what a person laid in.

    Attributes:
        guard: None where too little was laid in.
        weight: how far what it measures counts against a member.
    """

    embedder: Embedder
    guard: AnswerFit | None
    detector: OrderDetector
    weight: float

    async def fit(self, query: str, answer: str, likely: MutualInformation | None = None) -> Fit | None:
        """Return how well an answer belongs to its query; None where nothing measures it.

        Args:
            likely: a model in the process that is asked, too; what it cannot read rules measure alone.
        """
        if self.guard is None:
            return None
        asked, said = np.asarray(await self.embedder.embed([query, answer]), np.float64)
        odds = self.guard.log_odds(query, answer, asked, said)
        gained = await likely.measure(query, answer, self.guard.alike(asked)) if likely else None
        if likely is None or gained is None:
            return Fit(odds, "rules")
        told = SLOPE * (min(HIGH, max(LOW, gained)) - MIDDLE)
        return Fit(min(SURE, max(-SURE, odds)) + told, f"rules and the log-probabilities of {likely.name}")


async def build_measures(embedder: Embedder, exemplars: Sequence[Exemplar]) -> Measures:
    """Read what a person laid in; of many exemplars some."""
    some = exemplars[:: len(exemplars) // MOST + 1]
    detector = await build_detector(embedder, [(each.query, each.answer) for each in some])
    if len(some) < LEAST:
        return Measures(embedder, None, detector, 0.0)
    queries, answers = [each.query for each in some], [each.answer for each in some]
    vectors = np.asarray(await embedder.embed([*queries, *answers]), np.float64)
    guard = AnswerFit(Pairs(queries, answers, vectors[: len(some)], vectors[len(some) :]))
    return Measures(embedder, guard, detector, weigh(len(some)))
