"""Rank the exemplars that a reader may be served: the interface of retrievers, and a bonus for helpful exemplars."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mindstream.arrays import Doubles, Mask
from mindstream.memory.recall.ranking import Candidates, Cosine, Policy, Ranking, best
from mindstream.memory.store.columns import Columns
from mindstream.sharing.exemplar import Exemplar

if TYPE_CHECKING:
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


Key = TypeVar("Key", bound=Hashable)
WEIGHT = 0.1
"""Cosine bonus of an exemplar whose feedback value is 1. It only decides between candidates with similar cosines. With
a higher bonus, exemplars of hard queries would rank too low, because answers to hard queries are worse with any
exemplar."""
AGAIN = 1.0
"""Cosine bonus of an exemplar whose feedback value is 1 for the same question. It is higher, because with an equal
question only the exemplar explains a difference in quality."""

MIN_ERRORS = 3.0
"""Minimum variance between the feedback of different exemplars, in standard errors of its estimate. With a smaller
variance the differences may be chance, and all values are zero."""


@dataclass
class Helped:
    """Feedback on the answers that had a given exemplar in their prompts: count, sum and sum of squares."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """Add the quality of an answer, from 0 to 1."""
        self.count, self.total, self.squares = self.count + 1, self.total + value, self.squares + value * value


def values(helped: Mapping[Key, Helped], ids: Sequence[Key]) -> Doubles:
    """Return how much better than average the answers with each exemplar were, reduced by the part due to chance."""
    known = [each for each in helped.values() if each.count]
    count = sum(each.count for each in known)
    if len(known) < 2 or count <= len(known):
        return np.zeros(len(ids))
    mean = sum(each.total for each in known) / count
    within = sum(each.squares - each.total**2 / each.count for each in known) / (count - len(known))
    spread = sum(each.count * (each.total / each.count - mean) ** 2 for each in known)
    size = count - sum(each.count**2 for each in known) / count
    between = (spread - (len(known) - 1) * within) / size  # variance between exemplars beyond chance (one-way ANOVA)
    error = within * np.sqrt(2 * (len(known) - 1)) / size
    if between <= MIN_ERRORS * error:
        return np.zeros(len(ids))
    return np.array([_shrunk(helped.get(id_), mean, between, within) for id_ in ids])


def _shrunk(held: Helped | None, mean: float, between: float, within: float) -> float:
    if held is None or not held.count:
        return 0.0
    share = held.count * between / (held.count * between + within) if within else 1.0
    return share * (held.total / held.count - mean)
