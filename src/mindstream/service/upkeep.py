"""Predict how a memory's records decay without further recalls."""

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
        lasting: records at this level never decay.
        records: number of this memory's records at this level now.
        points: the probability, by day, that a record of this level is not archived yet.
    """

    level: int
    lasting: bool
    records: int
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Habit:
    """The assumptions of a prediction.

    Attributes:
        days: number of days to predict.
        sleeps: sleeps per day.
        n: number of records that each sleep selects at random.
        passed_over: recalls per day that find a record but do not return it.
    """

    days: int = 90
    sleeps: float = 1.0
    n: int = 20
    passed_over: float = 0.0


async def predict_forgetting(opened: Memory, habit: Habit) -> tuple[float, list[Forgetting]]:
    """Return the probability that a sleep selects a record, and the predicted decay of the records at each level."""
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
