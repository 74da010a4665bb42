"""Rank the exemplars that a reader may be served: the interface of retrievers, and a bonus for helpful exemplars."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

import numpy as np

from mindstream.arrays import Mask
from mindstream.memory.recall.ranking import Candidates, Cosine, Policy, Ranking, best
from mindstream.memory.store.columns import Columns
from mindstream.sharing.exemplar import Exemplar
from mindstream.sharing.feedback import AGAIN, WEIGHT, Helped, values
from mindstream.sharing.state import PoolState


class Retriever:
    """Rank all exemplars of a pool. This default ranks by cosine and learns nothing."""

    @property
    def policy(self) -> Policy:
        """The current ranking policy. It is read before each recall, so it must be available without waiting."""
        return Cosine()

    @property
    def version(self) -> int:
        """The number of the version that ranks now; 0: untrained."""
        return 0

    async def catch_up(self, state: PoolState) -> None:
        """Load the newest version that any process has trained; called before each recall."""

    async def admitted(self, pair: Exemplar) -> None:
        """Handle the admission of an exemplar. Exceptions are logged and have no other effect."""

    async def settle(self) -> None:
        """Wait until all admitted exemplars have been learned, or training has ended."""

    async def close(self) -> None:
        """Stop training. Exemplars not learned yet are learned by the next process that admits an exemplar."""


@dataclass(frozen=True)
class Served:
    """Rank only exemplars that may be served, by another policy and a bonus for those that helped before.

    Attributes:
        policy: the ranking policy of the retriever.
        columns: the columns of the memory; `mask` marks the rows that may be served. If the columns are reloaded in
            the meantime, the rows differ, so `Pool.recall` checks the ids again.
        helped, again: feedback by exemplar, and by question and exemplar.
        asked: the id of the question.
    """

    policy: Policy
    columns: Columns
    mask: Mask
    helped: dict[str, Helped]
    again: dict[tuple[str, str], Helped]
    asked: str

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        served = np.zeros(len(candidates.relevance), np.bool_)
        known = min(len(served), len(self.mask))
        served[:known] = self.mask[:known]
        visible = replace(candidates, relevance=np.where(served, candidates.relevance, -np.inf))
        ranking = self.policy.rank(visible, n)
        if not self.helped or len(ranking.rows) < 2:
            return ranking
        ids = [self.columns.ids[at] if at < len(self.columns.ids) else "" for at in ranking.rows]
        gains = WEIGHT * values(self.helped, ids) + AGAIN * values(self.again, [(self.asked, each) for each in ids])
        if not gains.any():
            return ranking
        scores = ranking.scores + gains
        return best(ranking.rows, scores, n, {**ranking.parts, "helped": gains})


def mask_of(columns: Columns, served: Set[str]) -> Mask:
    """Return a mask of the rows that may be served."""
    return columns.ids.among(list(served))
