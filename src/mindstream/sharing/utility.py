"""What helped before ranks higher: values, learnt from feedback on the answers that an exemplar stood before.

One by exemplar, whatever was asked, and one by question and exemplar, for a question that comes again. Similarity
finds, the values re-rank; no model is trained. How much they count is read from the feedback itself (empirical Bayes):
where they do not differ more than chance makes them differ, they count nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)
WEIGHT = 0.1
"""What a value of one above the mean adds to a cosine: it decides among what is alike. More would punish exemplars of
hard queries, whose answers are worse whatever stands before them."""
AGAIN = 1.0
"""The same where that very question was asked before: then nothing else explains the value."""

SURE = 3.0
"""So many standard errors more than by chance exemplars must differ, or their values count nothing."""


@dataclass
class Helped:
    """Feedback on the answers that an exemplar stood before."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """Take in how good an answer was, from 0 to 1."""
        self.count, self.total, self.squares = self.count + 1, self.total + value, self.squares + value * value


def values(helped: Mapping[Key, Helped], ids: Sequence[Key]) -> Floats:
    """Return how much better answers were with each exemplar than on average, shrunk as far as chance explains it."""
    known = [each for each in helped.values() if each.count]
    count = sum(each.count for each in known)
    if len(known) < 2 or count <= len(known):
        return np.zeros(len(ids))
    mean = sum(each.total for each in known) / count
    within = sum(each.squares - each.total**2 / each.count for each in known) / (count - len(known))
    spread = sum(each.count * (each.total / each.count - mean) ** 2 for each in known)
    size = count - sum(each.count**2 for each in known) / count
    between = (spread - (len(known) - 1) * within) / size  # what exemplars differ by, beyond chance (one-way ANOVA)
    error = within * np.sqrt(2 * (len(known) - 1)) / size
    if between <= SURE * error:
        return np.zeros(len(ids))
    return np.array([_shrunk(helped.get(id_), mean, between, within) for id_ in ids])


def _shrunk(held: Helped | None, mean: float, between: float, within: float) -> float:
    if held is None or not held.count:
        return 0.0
    share = held.count * between / (held.count * between + within) if within else 1.0
    return share * (held.total / held.count - mean)
