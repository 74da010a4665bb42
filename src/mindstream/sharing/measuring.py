"""What a pool measures pairs with: made of exemplars, and texts are embedded here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mindstream.models.embedders.embedder import Embedder
from mindstream.sharing.exemplar import Exemplar
from mindstream.sharing.guard import LEAST, MOST, Guard, Pairs
from mindstream.sharing.orders import OrderDetector, build_detector


@dataclass(frozen=True)
class Measures:
    """What a pool measures pairs with; made of what a person laid in.

    Attributes:
        guard: None where too little was laid in.
    """

    embedder: Embedder
    guard: Guard | None
    detector: OrderDetector

    async def fit(self, query: str, answer: str) -> float | None:
        """Return the log odds that an answer belongs to its query; None where nothing measures it."""
        if self.guard is None:
            return None
        asked, said = np.asarray(await self.embedder.embed([query, answer]), np.float64)
        return self.guard.log_odds(query, answer, asked, said)


async def build_measures(embedder: Embedder, exemplars: Sequence[Exemplar]) -> Measures:
    """Read what a person laid in; of many exemplars some."""
    some = exemplars[:: len(exemplars) // MOST + 1]
    detector = await build_detector(embedder, [(each.query, each.answer) for each in some])
    if len(some) < LEAST:
        return Measures(embedder, None, detector)
    queries, answers = [each.query for each in some], [each.answer for each in some]
    vectors = np.asarray(await embedder.embed([*queries, *answers]), np.float64)
    guard = Guard(Pairs(queries, answers, vectors[: len(some)], vectors[len(some) :]))
    return Measures(embedder, guard, detector)
