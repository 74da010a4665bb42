"""Rank exemplars higher that helped before, by feedback on the answers that had them in their prompts.

There is one value per exemplar, and one per question and exemplar for repeated questions. Candidates are found by
similarity and re-ranked by these values; no model is trained. The weight of the feedback is estimated from the
feedback itself (empirical Bayes): if the exemplars differ no more than by chance, all values are zero.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from mindstream.arrays import Doubles

Key = TypeVar("Key", bound=Hashable)
WEIGHT = 0.1
"""Cosine bonus for a value of 1; it decides between candidates of similar cosine. A higher weight would rank exemplars
of hard queries too low, because answers to hard queries are worse with any exemplar."""
AGAIN = 1.0
"""Cosine bonus for a value of 1 if the same question was asked before. The question is then equal, so only the
exemplar explains the difference."""

MIN_ERRORS = 3.0
"""Minimum variance between exemplars, in standard errors of its estimate; below it, all values are zero."""


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
