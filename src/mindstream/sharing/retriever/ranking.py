"""Policies that rank all exemplars of a pool: by a trained head, or by the cosine about their mean."""

from __future__ import annotations

import numpy as np

from mindstream.memory.recall.policies import Candidates, Cosine, Ranking, best
from mindstream.sharing.retriever.head import Floats, Head, apart

LEAST = 12
"""The mean of fewer says more of them than of what they have alike."""


class AboutMean:
    """The cosine without what all exemplars that may be served have alike: how a pool is ranked untrained."""

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        rows = candidates.rows
        vectors = candidates.vectors(rows)
        known = vectors[vectors.any(axis=1)]
        if len(known) < LEAST or not candidates.question.any():
            return Cosine().rank(candidates, n)
        mean = known.mean(axis=0)
        question = apart(candidates.question[None, :], mean)[0]
        return best(rows, np.vecdot(apart(vectors, mean), question), n)


class ByHead:
    """The head's nearness of every candidate; nothing is left to a shortlist of the plain cosine.

    One for each version and pool. What the head makes of a pool's vectors is kept for the next question; so is what it
    was made of, since a vector may change.
    """

    def __init__(self, head: Head) -> None:
        self._head = head
        self._kept: tuple[Floats, Floats] = (np.zeros((0, head.width), np.float32),) * 2

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        if len(candidates.question) != self._head.width or not candidates.question.any():
            return Cosine().rank(candidates, n)  # of another embedder, or of none: the head cannot read it
        rows = candidates.rows
        question = self._head.ask(candidates.question[None, :])[0]
        return best(rows, np.vecdot(self._projected(candidates.vectors(rows)), question), n)

    def _projected(self, vectors: Floats) -> Floats:
        before, projected = self._kept
        known = min(len(before), len(vectors))
        if not np.array_equal(before[:known], vectors[:known]):
            known = 0
        if known < len(vectors):
            new = self._head.project(vectors[known:])
            projected = np.concatenate([projected[:known], new]) if known else new
            self._kept = vectors, projected
        return projected[: len(vectors)]
