"""What was found out at admissions: which candidates help with which pair; first to check by, then to learn from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from mindstream.sharing.retriever.head import Head
from mindstream.sharing.retriever.learner import Drawn, Rows, Vectors

CHECKED = 48
"""At most so many of the newest lessons tell whether an update holds."""
LEAST_CHECKED, ENOUGH_CHECKED = 8, 24
"""At least so many do; a pool that has not three times as many lessons learns from all, and every update holds. A third
of the lessons does until there are enough: with eight of 66, chance refused one good update in three."""
WHOLE, BATCH = 192, 48
"""A step is taken on all lessons where there are no more than this; else on so many, drawn anew for each step."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A pair's candidates, for each whether it is one of those that help most, and those that are learned from."""

    candidates: Rows
    helps: NDArray[np.bool_]
    taken: Rows


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
    """Lessons by the number of the pair that they are about; a newer one replaces what was known of it.

    The newest are held out, and learned from when others are newer: so no version has seen what its successor is
    checked by, and in the end everything is learned from.
    """

    def __init__(self, taken: int, held_out: float) -> None:
        self._half = max(1, taken // 2)
        self._labels = np.repeat(np.array([1, 0], np.float32), self._half)
        self._held_out = held_out
        self._known: dict[int, Lesson] = {}  # the newest last
        self._whole: Drawn | None = None

    def __len__(self) -> int:
        """Return how many are learned from."""
        known = len(self._known)
        if known < 3 * LEAST_CHECKED:
            return known
        return known - min(CHECKED, max(min(ENOUGH_CHECKED, known // 3), int(self._held_out * known)))

    def add(self, at: int, candidates: Rows, p_not: NDArray[np.float64]) -> None:
        """Keep which of a pair's candidates help, most and least."""
        order = np.argsort(p_not, kind="stable")
        taken = candidates[np.concatenate([order[: self._half], order[-self._half :]])]
        self._known[at] = Lesson(candidates, p_not <= p_not[order[self._half - 1]], taken)
        self._whole = None

    def withdraw(self, rows: Iterable[int]) -> None:
        """Forget what is about these pairs, or of them."""
        gone = np.array(list(rows), np.int64)
        for at, lesson in list(self._known.items()):
            left = ~np.isin(lesson.candidates, gone)
            if at in gone or np.isin(lesson.taken, gone).any():
                del self._known[at]
            elif not left.all():
                self._known[at] = Lesson(lesson.candidates[left], lesson.helps[left], lesson.taken)
        self._whole = None

    def draw(self, chance: Generator) -> Drawn:
        """Draw what a step is taken on."""
        if self._whole is None:
            learned = list(self._known.items())[: len(self)]
            pairs = np.array([at for at, _ in learned], np.int64)
            candidates = np.concatenate([lesson.taken for _, lesson in learned])
            self._whole = Drawn(np.repeat(pairs, 2 * self._half), candidates, np.tile(self._labels, len(pairs)))
        if len(self) <= WHOLE:
            return self._whole
        lessons = chance.choice(len(self), BATCH, replace=False)
        rows = (lessons[:, None] * 2 * self._half + np.arange(2 * self._half)).ravel()
        return Drawn(*(each[rows] for each in self._whole))

    def check(self, head: Head, vectors: Vectors) -> Checked:
        """Tell how a head ranks the candidates of the pairs held out; nothing where there are none."""
        trials = list(self._known.items())[len(self) :]
        if not trials:
            return Checked(0.0, 0.0)
        used = np.unique(np.concatenate([each.candidates for _, each in trials]))
        projected = head.project(vectors.texts[used])
        questions = head.ask(vectors.asked[[at for at, _ in trials]])
        hits, above = 0, 0.0
        for question, (_, trial) in zip(questions, trials, strict=True):
            near = projected[np.searchsorted(used, trial.candidates)] @ question
            hits += int(trial.helps[int(near.argmax())])
            above += float(np.mean(near[trial.helps][:, None] > near[~trial.helps]))
        return Checked(hits / len(trials), above / len(trials))
