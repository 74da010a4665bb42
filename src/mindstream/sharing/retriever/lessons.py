"""What was found out at admissions: which candidates help with which pair, to train on or to check by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from mindstream.sharing.retriever.head import Floats, Head

Rows = NDArray[np.int64]
CHECKED = 48
"""So many of the exemplars held out last tell whether an update holds."""
LEAST_CHECKED = 4
"""With fewer, nothing is told, and every update holds."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A pair held out: its candidates, and for each whether it is one of those that help most."""

    candidates: Rows
    helps: NDArray[np.bool_]


class Checked(NamedTuple):
    """How a head does on what was held out; of two, the better one is greater.

    Attributes:
        first: how often what it ranks first is among what helps most.
        above: how often what helps most is ranked above what does not; it decides where `first` is the same, so that
            many small steps that each change no first place cannot lead astray.
    """

    first: float
    above: float


class Lessons:
    """Lessons by the number of the pair that they are about; a newer one replaces what was known of it."""

    def __init__(self, taken: int) -> None:
        self._half = max(1, taken // 2)
        self._labels = np.repeat(np.array([1, 0], np.float32), self._half)
        self._learned: dict[int, Rows] = {}
        self._trials: dict[int, Trial] = {}
        self._rows: tuple[Rows, Rows] | None = None

    def __len__(self) -> int:
        return len(self._learned)

    def learn(self, at: int, candidates: Rows, p_not: NDArray[np.float64]) -> None:
        """Keep of a pair's candidates those that help most, and those that help least."""
        order = np.argsort(p_not, kind="stable")
        self._learned[at] = candidates[np.concatenate([order[: self._half], order[-self._half :]])]
        self._rows = None

    def hold_out(self, at: int, candidates: Rows, p_not: NDArray[np.float64]) -> None:
        """Keep a pair to check by."""
        self._trials.pop(at, None)
        self._trials[at] = Trial(candidates, p_not <= np.partition(p_not, self._half - 1)[self._half - 1])
        while len(self._trials) > CHECKED:
            del self._trials[next(iter(self._trials))]

    def withdraw(self, rows: Iterable[int]) -> None:
        """Forget what is about these pairs, or of them."""
        gone = set(rows)
        self._learned = {
            at: taken for at, taken in self._learned.items() if at not in gone and not gone & set(taken.tolist())
        }
        self._trials = {
            at: trial
            for at, trial in self._trials.items()
            if at not in gone and not gone & set(trial.candidates.tolist())
        }
        self._rows = None

    def draw(self, chance: Generator, n: int) -> tuple[Rows, Rows, Floats]:
        """Draw n rows to train on: a pair, a candidate, and whether it helps."""
        if self._rows is None:
            pairs = np.fromiter(self._learned, np.int64, len(self._learned))
            self._rows = np.repeat(pairs, 2 * self._half), np.concatenate(list(self._learned.values()))
        asked, candidates = self._rows
        drawn = chance.integers(0, len(asked), n)
        return asked[drawn], candidates[drawn], self._labels[drawn % (2 * self._half)]

    def check(self, head: Head, vectors: Floats) -> Checked:
        """Tell how a head ranks the candidates of the pairs held out; nothing where there are too few."""
        if len(self._trials) < LEAST_CHECKED:
            return Checked(0.0, 0.0)
        used = np.unique(np.concatenate([*(each.candidates for each in self._trials.values()), list(self._trials)]))
        projected = head.project(vectors[used])
        hits, above = 0, 0.0
        for at, trial in self._trials.items():
            near = projected[np.searchsorted(used, trial.candidates)] @ projected[np.searchsorted(used, at)]
            hits += int(trial.helps[int(near.argmax())])
            above += float(np.mean(near[trial.helps][:, None] > near[~trial.helps]))
        return Checked(hits / len(self._trials), above / len(self._trials))
