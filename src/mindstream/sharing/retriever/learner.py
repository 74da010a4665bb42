"""Gradient steps on the source's loss, by hand in NumPy: small batches, Adam, a millisecond a step.

loss = -1/v Σ [y log σ(s) + (1 - y) log(1 - σ(s))] with s = scale · cos(xW, mW) + bias (Gao 2024, 3.2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mindstream.sharing.retriever.head import Floats, Head, multiply

Rows = NDArray[np.int64]
RATE, RATE_OF_SCALE = 0.0005, 0.02
MOMENTUM, SPREAD = 0.9, 0.99
TINY = np.float32(1e-8)


class Learner:
    """A head in training."""

    def __init__(self, head: Head) -> None:
        self.begin(head)

    def begin(self, head: Head) -> None:
        """Go on from this head."""
        self._matrix = head.matrix.copy()
        self._line = np.array([head.scale, head.bias], np.float32)
        self._means: list[Floats] = [np.zeros_like(self._matrix), np.zeros_like(self._line)]
        self._squares: list[Floats] = [np.zeros_like(self._matrix), np.zeros_like(self._line)]
        self._taken = 0

    def step(self, asked: Floats, candidates: Floats, helps: Floats) -> None:
        """Take one step: row by row the vectors of a prompt and a candidate, and 1 where that one helps, else 0."""
        ours, lengths = _units(multiply(asked, self._matrix))
        theirs, their_lengths = _units(multiply(candidates, self._matrix))
        cosines = np.vecdot(ours, theirs)
        scale, bias = self._line
        off = (_sigmoid(scale * cosines + bias) - helps) / np.float32(len(helps))
        pull, nearness = (off * scale)[:, None], cosines[:, None]
        slope = multiply(asked.T, pull * (theirs - nearness * ours) / lengths)
        slope += multiply(candidates.T, pull * (ours - nearness * theirs) / their_lengths)
        self._taken += 1
        self._move(0, self._matrix, slope, RATE)
        self._move(1, self._line, np.array([off @ cosines, off.sum()], np.float32), RATE_OF_SCALE)

    def _move(self, which: int, numbers: Floats, slope: Floats, rate: float) -> None:
        """Adam (Kingma 2015)."""
        mean, square = self._means[which], self._squares[which]
        np.add(mean, np.float32(1 - MOMENTUM) * (slope - mean), out=mean)
        np.add(square, np.float32(1 - SPREAD) * (slope * slope - square), out=square)
        share = np.float32(rate / (1 - MOMENTUM**self._taken))
        root = np.sqrt(square / np.float32(1 - SPREAD**self._taken))
        np.subtract(numbers, share * mean / (root + TINY), out=numbers)

    def head(self) -> Head:
        """Return the head as it is now, as it would be kept."""
        return Head(self._matrix, float(self._line[0]), float(self._line[1])).kept()


def _units(rows: Floats) -> tuple[Floats, Floats]:
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY)
    units: Floats = rows / lengths
    return units, lengths


def _sigmoid(scores: Floats) -> Floats:
    likely: Floats = np.divide(1, 1 + np.exp(-scores), dtype=np.float32)
    return likely
