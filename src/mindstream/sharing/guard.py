"""Does an answer belong to its query? Measured by the exemplars that a person laid in, and nothing else is known.

They are the held-out check: each with its own answer, against each with another's. What tells these two apart in this
pool (nearness of query and answer, of the answer to what alike queries were answered, shared and foreign words, length,
script) is weighed by a small logistic regression, fitted in milliseconds. What it gives is evidence, not a verdict
(see trust): a right answer in strange words looks foreign to it, and a clever wrong one does not.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindstream import chance
from mindstream.text.context import WIDE
from mindstream.text.words import terms

Floats = NDArray[np.float64]
LEAST = 12
"""With fewer laid-in exemplars nothing is measured."""
MOST = 400
"""So many of them are compared at most."""
NEAR = 5
OTHERS = 6
"""With so many others' answers each is compared, half of them those of the most alike queries."""
RIDGE = 10.0
TOKEN, NAME = re.compile(r"[\w#-]+"), re.compile(r"(?<=[\w,;] )[A-Z]\w+")
"""A word, a number or a code; a name within a sentence."""


@dataclass(frozen=True)
class Pairs:
    """Queries and answers with their unit vectors."""

    queries: Sequence[str]
    answers: Sequence[str]
    query_vectors: Floats
    answer_vectors: Floats


class Guard:
    """Measures pairs by those that a person laid in."""

    def __init__(self, trusted: Pairs) -> None:
        self._trusted = trusted
        self._terms = [
            (frozenset(terms(q)), frozenset(terms(a))) for q, a in zip(trusted.queries, trusted.answers, strict=True)
        ]
        self._counts = Counter(term for asked, said in self._terms for term in asked | said)
        self._near = trusted.query_vectors @ trusted.query_vectors.T
        self._lengths = np.array([math.log1p(len(answer)) for answer in trusted.answers])
        np.fill_diagonal(self._near, -2.0)
        self._fit()

    def log_odds(self, query: str, answer: str, query_vector: Floats, answer_vector: Floats) -> float:
        """Return the log odds that the answer is the query's own and not another's."""
        near = self._trusted.query_vectors @ query_vector
        found = self._features(query, answer, query_vector, answer_vector, near)
        return float(((found - self._mean) / self._spread) @ self._weights + self._bias)

    def _fit(self) -> None:
        held, count = self._trusted, len(self._trusted.queries)
        rows, labels = list[Floats](), list[float]()
        for at in range(count):
            alike = np.argsort(-self._near[at])[: count - 1]
            drawn = [int(alike[int(chance.fraction("guard", at, n) * len(alike))]) for n in range(OTHERS // 2)]
            for other in (at, *map(int, alike[: OTHERS // 2]), *drawn):
                rows.append(
                    self._features(
                        held.queries[at], held.answers[other], held.query_vectors[at], held.answer_vectors[other],
                        self._near[at], -1 if other == at else other,
                    )
                )  # fmt: skip
                labels.append(float(other == at))
        matrix, wanted = np.array(rows), np.array(labels)
        self._mean, self._spread = matrix.mean(axis=0), matrix.std(axis=0) + 1e-6
        self._weights, self._bias = _logistic((matrix - self._mean) / self._spread, wanted)

    def _features(
        self, query: str, answer: str, query_vector: Floats, answer_vector: Floats, near: Floats, without: int = -1
    ) -> Floats:
        """Measure a pair; `without`: whose answer it is, which says nothing of itself."""
        near = near.copy()
        if without >= 0:
            near[without] = -2.0
        alike = np.argsort(-near)[:NEAR]
        likeness = self._trusted.answer_vectors[alike] @ answer_vector
        asked, said = frozenset(terms(query)), frozenset(terms(answer))
        telling = sum(map(self._telling, said)) + 1e-6
        own = particulars(answer)
        foreign = own - set(re.findall(r"[\w#-]+", query))
        return np.array([
            query_vector @ answer_vector, likeness.mean(), likeness.max(),
            sum(map(self._telling, asked & said)) / math.sqrt(telling),
            len(foreign) / (1 + len(own)),
            abs(math.log1p(len(answer)) - float(np.median(self._lengths[alike]))),
            abs(_wide(query) - _wide(answer)),
        ])  # fmt: skip

    def _telling(self, term: str) -> float:
        return math.log((1 + len(self._terms)) / (0.5 + self._counts[term]))


def particulars(text: str) -> set[str]:
    """Return the numbers, codes and names (within a sentence, in Latin script) of a text."""
    return {each for each in TOKEN.findall(text) if any(map(str.isdigit, each))} | set(NAME.findall(text))


def _wide(text: str) -> float:
    return len(WIDE.findall(text)) / max(1, len(text))


def _logistic(rows: Floats, labels: Floats) -> tuple[Floats, float]:
    """Fit weights and bias by Newton's steps; both classes weigh the same, so that 0 is even odds."""
    matrix = np.column_stack([rows, np.ones(len(rows))])
    share = labels.mean()
    importance = np.where(labels > 0, 0.5 / share, 0.5 / (1 - share))
    weights, ridge = np.zeros(matrix.shape[1]), np.diag([RIDGE] * rows.shape[1] + [1e-6])
    for _ in range(25):
        odds = 1 / (1 + np.exp(-np.clip(matrix @ weights, -30, 30)))
        slope = matrix.T @ (importance * (odds - labels)) + ridge @ weights
        curve = matrix.T @ (matrix * (importance * odds * (1 - odds))[:, None]) + ridge
        step = np.linalg.solve(curve, slope)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return weights[:-1], float(weights[-1])
