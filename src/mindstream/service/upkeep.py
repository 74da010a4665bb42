"""Predicts how a memory's records decay without further recalls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mindstream.memory.forgetting_curve import Point, Strength, curve
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import FADING


@dataclass(frozen=True, slots=True)
class Forgetting:
    """The predicted decay of the records at a level, without further recalls.

    Attributes:
        records: how many of this memory's are at that level now.
        lasting: records at that level never decay.
    """

    level: int
    lasting: bool
    records: int
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Habit:
    """Assumptions: sleeps a day, records drawn by each, recalls a day that find a record but do not return it."""

    days: int = 90
    sleeps: float = 1.0
    n: int = 20
    passed_over: float = 0.0


async def predict_forgetting(opened: Memory, habit: Habit) -> tuple[float, list[Forgetting]]:
    """Return the probability that a sleep draws a record, and the predicted decay by level."""
    laws = opened.strength or Strength()
    columns = await opened.columns()
    there = columns.holding(FADING, opened.clock.now())
    levels = np.minimum(columns.level.values[there], laws.lasting_level)
    levels[columns.lasting.values[there]] = laws.lasting_level
    drawn = min(1.0, habit.n / max(1, int(np.count_nonzero(there))))
    return drawn, [
        Forgetting(
            level,
            level >= laws.lasting_level,
            int(np.count_nonzero(levels == level)),
            curve(
                laws,
                level,
                days=habit.days,
                sleeps_per_day=habit.sleeps,
                drawn=drawn,
                passed_over_per_day=habit.passed_over,
            ),
        )
        for level in range(laws.lasting_level + 1)
    ]
