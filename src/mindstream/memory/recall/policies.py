"""Ranking policies: they rank all candidates by relevance, recency, importance and strength."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mindstream.clock import DAY_S, HOUR_S, Moment

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Signals:
    """Properties of some records, one row each.

    Attributes:
        relevance: how well the record answers the question.
        accessed: when it was last returned.
        importance: 1 to 10; NaN: not rated.
        strength: 0 to 1; 1/2 for kinds that neither strengthen nor decay.
    """

    relevance: Floats
    accessed: Floats
    importance: Floats
    strength: Floats


@dataclass(frozen=True, slots=True)
class Candidates:
    """All records that pass the filters.

    Attributes:
        relevance: of every record of the stream; minus infinity: the record is not a candidate.
        now: the moment of the question.
        signals: returns the properties of some rows.
        cosines: returns the cosine of the question's vector with the vector of each row; 0 without a vector.
        question: the question's own vector, of length 1; all zeros if there is none.
        vectors: returns the vector of each row, of length 1; all zeros if there is none.
    """

    relevance: NDArray[np.floating]
    now: Moment
    signals: Callable[[Rows], Signals]
    cosines: Callable[[Rows], Floats]
    question: NDArray[np.float32]
    vectors: Callable[[Rows], NDArray[np.float32]]

    @property
    def rows(self) -> Rows:
        """The rows of the candidates."""
        return np.flatnonzero(self.relevance > -np.inf)


class Ranking(NamedTuple):
    """The best candidates, best first: their rows, their scores, and the parts of the scores."""

    rows: Rows
    scores: Floats
    parts: Mapping[str, Floats] = {}


class Policy(Protocol):
    """Ranks candidates."""

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        """Return the n best candidates; of two with equal scores, the newer one comes first."""


def best(rows: Rows, scores: NDArray[np.floating], n: int, parts: Mapping[str, Floats] | None = None) -> Ranking:
    """Return the n best of some rows by their scores; of two with equal scores, the newer one comes first."""
    among = np.arange(len(rows))
    if 0 < n < len(rows):
        among = np.flatnonzero(scores >= np.partition(scores, -n)[-n])
    order = among[np.lexsort((-rows[among], -scores[among]))][:n]
    return Ranking(
        rows[order], scores[order].astype(np.float64), {name: values[order] for name, values in (parts or {}).items()}
    )


@dataclass(frozen=True, slots=True)
class Bounded:
    """Relevance times one factor each for recency, importance and strength; a factor changes it by at most its share.

    The shares are small because an unbounded recency factor ruins recall: with a half-life of 30 days, R@10 on LoCoMo
    fell from 74.5 to 34.5.
    """

    recency: float = 0.05
    importance: float = 0.1
    strength: float = 0.1
    half_life_s: float = 7 * DAY_S
    by_relevance: ClassVar[bool] = True
    """Only records with a relevance near the highest can be ranked first: a selection of a long stream is enough."""

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        rows = self._within_reach(candidates.relevance, n)
        signals = candidates.signals(rows)
        age = np.maximum(candidates.now - signals.accessed, 0)
        nudges = {
            "recency": 1 + self.recency * (2 * 0.5 ** (age / self.half_life_s) - 1),
            "importance": 1 + self.importance * (2 * rated(signals.importance) - 1),
            "strength": 1 + self.strength * (2 * signals.strength - 1),
        }
        factor = nudges["recency"] * nudges["importance"] * nudges["strength"]
        return best(rows, signals.relevance + np.abs(signals.relevance) * (factor - 1), n, nudges)

    def _within_reach(self, relevance: NDArray[np.floating], n: int) -> Rows:
        """Return the rows that may be among the n best, whatever their factors are.

        Each of the n most relevant rows scores at least the n-th highest relevance times the lowest factors. Rows that
        cannot reach this score even with the highest factors are left out.
        """
        if n >= len(relevance):
            return np.flatnonzero(relevance > -np.inf)
        shares = np.abs([self.recency, self.importance, self.strength])
        least, most = float(np.prod(1 - shares)) - 1, float(np.prod(1 + shares)) - 1
        last = float(np.partition(relevance, -n)[-n])
        if last == -np.inf or shares.max() >= 1 or most >= 1:
            return np.flatnonzero(relevance > -np.inf)
        at_worst = last + abs(last) * least
        reach = at_worst / (1 + most if at_worst > 0 else 1 - most)
        return np.flatnonzero(relevance >= reach - 1e-6 * abs(reach))


@dataclass(frozen=True, slots=True)
class Generative:
    """Recency, importance and relevance, each min-max normalised over all candidates, weighted and added.

    Source: Generative Agents (Park 2023), section 4.1, weights (1, 1, 1); their code uses (0.5, 2, 3) and decay 0.99.
    """

    recency: float = 1.0
    importance: float = 1.0
    relevance: float = 1.0
    decay: float = 0.995

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        rows = candidates.rows
        signals = candidates.signals(rows)
        hours = np.maximum(candidates.now - signals.accessed, 0) / HOUR_S
        parts = {
            "recency": self.recency * spread(self.decay**hours),
            "importance": self.importance * spread(rated(signals.importance)),
            "relevance": self.relevance * spread(signals.relevance),
        }
        return best(rows, parts["recency"] + parts["importance"] + parts["relevance"], n, parts)


@dataclass(frozen=True, slots=True)
class Cosine:
    """The cosine of the vectors alone (Gao 2024)."""

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        rows = candidates.rows
        return best(rows, candidates.cosines(rows), n)


def rated(importance: Floats) -> Floats:
    """Scale importance to 0 … 1; a record without a rating gets 0.5."""
    return np.where(np.isnan(importance), 0.5, np.clip((importance - 1) / 9, 0, 1))


def spread(values: Floats) -> Floats:
    """Scale values to 0 … 1 between the lowest and the highest; if all are equal, each gets 0.5."""
    if not len(values):
        return values
    low, high = values.min(), values.max()
    if high - low < 1e-12:
        return np.full(len(values), 0.5)
    spread: Floats = (values - low) / (high - low)
    return spread
