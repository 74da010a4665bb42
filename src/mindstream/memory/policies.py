"""From relevance to a ranking: what recency, importance and strength may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mindstream.clock import DAY_S, HOUR_S, Moment

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Signals:
    """What is known of some records, one row each.

    Attributes:
        relevance: how well they answer.
        accessed: when they were last returned.
        importance: 1 to 10, NaN where not rated.
        strength: 0 to 1; 1/2 for what neither strengthens nor fades.
    """

    relevance: Floats
    accessed: Floats
    importance: Floats
    strength: Floats


@dataclass(frozen=True, slots=True)
class Found(Signals):
    """The records that were found.

    Attributes:
        cosine: of their vectors with the query's.
        candidates: gives what is known of all records that pass the filters, found or not.
    """

    cosine: Floats
    now: Moment
    candidates: Callable[[], Signals]


Ranking = tuple[Floats, Mapping[str, Floats]]


class Policy(Protocol):
    """A way to rank what was found."""

    def rank(self, found: Found) -> Ranking:
        """Return the score of each record that was found, and the parts it is made of."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """Relevance times nudges, none of which changes it by more than its share (at most ±10 %).

    An unbounded recency factor destroys recall: half-life 30 days, R@10 on LoCoMo 74.5 -> 34.5.
    """

    recency: float = 0.05
    importance: float = 0.1
    strength: float = 0.1
    half_life_s: float = 7 * DAY_S

    def rank(self, found: Found) -> Ranking:
        age = np.maximum(found.now - found.accessed, 0)
        nudges = {
            "recency": 1 + self.recency * (2 * 0.5 ** (age / self.half_life_s) - 1),
            "importance": 1 + self.importance * (2 * _rated(found.importance) - 1),
            "strength": 1 + self.strength * (2 * found.strength - 1),
        }
        factor = nudges["recency"] * nudges["importance"] * nudges["strength"]
        return found.relevance + np.abs(found.relevance) * (factor - 1), nudges


@dataclass(frozen=True, slots=True)
class Generative:
    """Recency, importance and relevance, each min-max normalised over all candidates, weighted and added.

    Generative Agents (seed 002), section 4.1, weights (1, 1, 1); their code has (0.5, 2, 3) and decay 0.99.
    """

    recency: float = 1.0
    importance: float = 1.0
    relevance: float = 1.0
    decay: float = 0.995

    def rank(self, found: Found) -> Ranking:
        among = found.candidates()
        parts = {
            "recency": self.recency * _spread(self._recent(found, found.now), self._recent(among, found.now)),
            "importance": self.importance * _spread(_rated(found.importance), _rated(among.importance)),
            "relevance": self.relevance * _spread(found.relevance, among.relevance),
        }
        return parts["recency"] + parts["importance"] + parts["relevance"], parts

    def _recent(self, signals: Signals, now: Moment) -> Floats:
        hours = np.maximum(now - signals.accessed, 0) / HOUR_S
        recency: Floats = self.decay**hours
        return recency


@dataclass(frozen=True, slots=True)
class Cosine:
    """The cosine of the vectors alone (memory sharing, seed 003)."""

    def rank(self, found: Found) -> Ranking:
        return found.cosine, {}


def _rated(importance: Floats) -> Floats:
    """Bring importance to 0 … 1; what is not rated yet counts as the middle."""
    return np.where(np.isnan(importance), 0.5, (importance - 1) / 9)


def _spread(values: Floats, among: Floats) -> Floats:
    """Stretch to 0 … 1 between the least and the most of `among`; all equal gives 1/2."""
    if not len(among):
        return values
    low, high = among.min(), among.max()
    if high - low < 1e-12:
        return np.full(len(values), 0.5)
    spread: Floats = (values - low) / (high - low)
    return spread
