"""Rank the exemplars of a pool that a reader may be served: the interface of retrievers, and a bonus for exemplars that
helped before."""

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
        """The number of the retriever's version that ranks now; 0: untrained."""
        return 0

    async def catch_up(self, state: PoolState) -> None:
        """Load the newest version of the retriever that any process has trained; called before each recall.

        This default does nothing.
        """

    async def admitted(self, pair: Exemplar) -> None:
        """Handle the admission of an exemplar. If this method raises, the pool logs the error, and the exemplar stays
        admitted."""

    async def settle(self) -> None:
        """Wait until all admitted exemplars have been learned from, or the background training has ended."""

    async def close(self) -> None:
        """Stop training. The next process that admits an exemplar also learns from those that were not learned from
        yet."""


@dataclass(frozen=True)
class Served:
    """Apply a ranking policy only to exemplars that may be served, with a bonus for exemplars that helped before.

    Attributes:
        policy: the ranking policy of the retriever.
        columns: the columns of the pool's memory, one row per record.
        mask: marks the rows that may be served. Reloaded columns can have other rows than the mask; therefore
            `Pool.recall` checks the ids again.
        helped: feedback by exemplar id.
        again: feedback by question digest and exemplar id.
        asked: the digest of the question.
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
        return best(ranking.rows, ranking.scores + gains, n, {**ranking.parts, "helped": gains})


def mask_of(columns: Columns, served: Set[str]) -> Mask:
    """Return a mask of the rows that may be served."""
    return columns.ids.among(list(served))


Key = TypeVar("Key", bound=Hashable)
WEIGHT = 0.1
"""Factor of an exemplar's feedback (`values`) in its bonus, which is added to the cosine. It is small, so that feedback
decides only between candidates with similar cosines. With a higher factor, exemplars of hard queries would rank too
low, because answers to hard queries are worse with any exemplar."""
AGAIN = 1.0
"""The factor (see WEIGHT) of feedback on answers to this very question. It is higher than WEIGHT, because if the
question is equal, only the exemplar explains a difference in quality."""

MIN_ERRORS = 3.0
"""Minimum variance between the feedback on different exemplars, in standard errors of its estimate. If the variance is
smaller, the differences may be chance, and `values` returns zeros."""


@dataclass
class Helped:
    """The feedback on answers whose prompts contained one exemplar: count, sum, and sum of squares. Each value is 0 to
    1."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """Add the quality of an answer, from 0 to 1."""
        self.count, self.total, self.squares = self.count + 1, self.total + value, self.squares + value * value


def values(helped: Mapping[Key, Helped], ids: Sequence[Key]) -> Doubles:
    """Return for each id how much better than average the answers with this exemplar were (negative: worse).

    The differences are shrunk by the part that is due to chance; all are 0 if chance alone may explain them.
    """
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
