"""Descent on the source's loss, by hand in NumPy: all lessons at once, a few steps, always from the plain cosine.

loss = -1/v Σ [y log σ(s) + (1 - y) log(1 - σ(s))] with the score s of the head (Gao 2024, 3.2).

The few steps are what keeps a matrix of 65,000 numbers from learning some hundred pairs by heart; going on from the
version before would add them up. Plain descent with momentum moves along what many lessons share; Adam, which moves
every number equally far, did worse on pairs that were kept aside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mindstream.sharing.retriever.head import LEARNED, Floats, Head, apart, multiply

Rows = NDArray[np.int64]
RATE, MOMENTUM = np.float32(1), np.float32(0.9)
TINY = np.float32(1e-8)


class Vectors(NamedTuple):
    """The vectors of a pool, row by row: of the questions as they are asked, and of what is embedded of the pairs."""

    asked: Floats
    texts: Floats

    def means(self) -> Floats:
        """Return the mean of each."""
        return np.stack([self.asked.mean(axis=0), self.texts.mean(axis=0)])


class Drawn(NamedTuple):
    """What is learned from: row by row a prompt, a candidate (both by number), and 1 where that one helps, else 0."""

    asked: Rows
    candidates: Rows
    helps: Floats


class Learner:
    """A head in training, from the untrained one.

    Args:
        means: what is taken off questions and exemplars.
    """

    def __init__(self, means: Floats) -> None:
        self._means = means
        start = Head.untrained(means.shape[1])
        self._matrix = start.matrix.copy()
        self._line = np.array([start.scale, start.bias], np.float32)
        self._speeds = np.zeros_like(self._matrix), np.zeros_like(self._line)
        self.taken = 0

    def step(self, vectors: Vectors, drawn: Drawn) -> None:
        """Take one step on these rows; `vectors` are those of the whole pool."""
        questions, asked = np.unique(drawn.asked, return_inverse=True)
        texts, candidates = np.unique(drawn.candidates, return_inverse=True)
        used = (apart(vectors.asked[questions], self._means[0]), apart(vectors.texts[texts], self._means[1]))
        given, candidates = np.concatenate(used), candidates + len(questions)
        n = len(given)
        ours, lengths = _units(multiply(given, self._matrix))
        plain = np.vecdot(given[asked], given[candidates])
        cosines = LEARNED * np.vecdot(ours[asked], ours[candidates]) + (1 - LEARNED) * plain
        scale, bias = self._line
        off = (_sigmoid(scale * cosines + bias) - drawn.helps) / np.float32(len(asked))
        pull = np.bincount(asked * n + candidates, off * scale * LEARNED, n * n).astype(np.float32).reshape(n, n)
        pulled = multiply(pull + pull.T, ours)
        pulled = (pulled - np.vecdot(pulled, ours)[:, None] * ours) / lengths
        _move(self._matrix, self._speeds[0], multiply(np.ascontiguousarray(given.T), pulled))
        _move(self._line, self._speeds[1], np.array([off @ cosines, off.sum()], np.float32))
        self.taken += 1

    def head(self) -> Head:
        """Return the head as it is now, as it would be kept."""
        return Head(self._matrix, float(self._line[0]), float(self._line[1]), self._means).kept()


def _move(numbers: Floats, speed: Floats, slope: Floats) -> None:
    speed *= MOMENTUM
    speed += slope
    numbers -= RATE * speed


def _units(rows: Floats) -> tuple[Floats, Floats]:
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY)
    units: Floats = rows / lengths
    return units, lengths


def _sigmoid(scores: Floats) -> Floats:
    likely: Floats = np.divide(1, 1 + np.exp(-scores), dtype=np.float32)
    return likely
