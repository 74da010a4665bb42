"""What forgetting will do to a memory, if nothing of it is returned any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mindstream.memory.fading import Point, Strength, curve
from mindstream.memory.store.record import FADING
from mindstream.service.memory import UserMemory


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What the laws predict of the records at a level, if none of them is returned any more.

    Attributes:
        records: how many of this memory's are at that level now.
        lasting: records at that level never fade.
    """

    level: int
    lasting: bool
    records: int
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Habit:
    """How a mind is taken to live: sleeps a day, records drawn by each, times a day passed over by a recall."""

    days: int = 90
    sleeps: float = 1.0
    n: int = 20
    passed_over: float = 0.0


async def predict_forgetting(opened: UserMemory, habit: Habit) -> tuple[float, list[Forgetting]]:
    """Return the chance that a sleep draws a record, and how the records of each level are forgotten."""
    stream = opened.memory
    laws = stream.strength or Strength()
    columns = await stream.columns()
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
