"""The rules by which the records of a memory get stronger and weaker by themselves.

Forgetting on request is in memory/curation/forgetting.

A record strengthens when a recall returns it. It decays when a recall finds it but does not return it, or when a sleep
draws it. The rules are pure functions of a record's strength and a moment, and work with any clock (docs/papers.md).

    returned      at level 0, or later than T(level) after its last return: one level up; T starts again in any case
    passed over   found but not returned, and last returned longer than `passed_over_s` ago: one level down
    slept on      drawn by a sleep, and last returned longer than `asleep_s` ago: one level down

T(level) = first_s * base ** level, at most cap_s. When T reaches the cap the record is long-term: its level never
changes again. A record whose level falls below 0 is archived. Only records of the kinds in `FADING` follow these rules.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from mindstream.clock import DAY_S, HOUR_S, Moment
from mindstream.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Strength:
    """The constants of the rules (see the module).

    A return is a recall that returns the record. T(level) is the minimum time between two returns for the second one to
    raise the level. With the defaults, T is 1, 2, 4, 8, 16 hours, then one day (the cap).

    - At level 0 every return raises the level, whatever T is.
    - At higher levels, a return raises the level only if T has passed since the last return. Every return starts T
      again.
    - Ten returns within an hour thus raise the level once, and a record in daily use becomes long-term within a week.
      With a cap above 32 hours it would not become long-term: T(5) is 32 hours, and daily returns come earlier.
    - A record that was not returned for 14 days loses a level each time a sleep draws the record.
    - A record that was not returned for 30 days also loses a level each time a recall finds the record and returns
      others.

    Attributes:
        first_s: T(0), in seconds.
        base: growth of T per level; above 1.
        cap_s: maximum of T, at which a record becomes long-term.
        passed_over_s: minimum time since the last return, in seconds, for a record to lose a level when a recall finds
            but does not return the record.
        asleep_s: minimum time since the last return, in seconds, for a record to lose a level when a sleep draws the
            record.
        keeps_all: whether records strengthen but never lose a level, and none is archived (the policy `keep`).
    """

    first_s: float = HOUR_S
    base: float = 2.0
    cap_s: float = DAY_S
    passed_over_s: float = 30 * DAY_S
    asleep_s: float = 14 * DAY_S
    keeps_all: bool = False

    def __post_init__(self) -> None:
        if not (0 < self.first_s < self.cap_s < math.inf and 1 < self.base < math.inf):
            raise InputError(f"strength needs finite numbers with 0 < first_s < cap_s and base > 1, found {self}")
        if not (self.passed_over_s >= 0 and self.asleep_s >= 0):
            raise InputError(f"strength needs passed_over_s and asleep_s of at least 0, found {self}")

    @property
    def lasting_level(self) -> int:
        """The level at which T (`interval_s`) reaches the cap; a record with this level becomes long-term."""
        return max(1, math.ceil(math.log(self.cap_s / self.first_s, self.base) - 1e-9))

    def interval_s(self, level: int) -> float:
        """Return T(level), in seconds.

        When a recall returns a record, the level of the record rises only if T has passed since the last return. At
        level 0 it always rises.
        """
        return self.cap_s if level >= self.lasting_level else self.first_s * self.base**level


DECAY, KEEP = Strength(), Strength(keeps_all=True)
"""The rules of the two retention policies (memory/policy), with the default constants."""


class StrengthState(NamedTuple):
    """The strength of a record.

    Attributes:
        level: the level, from 0; below 0: the record is archived.
        lasting: whether the record is long-term.
        time: when the record was last returned; if it never was, when it was written.
    """

    level: int
    lasting: bool
    time: Moment

    @property
    def faded(self) -> bool:
        """Whether the level is below 0 and the record archived; nothing is deleted."""
        return self.level < 0


def after_return(held: StrengthState, now: Moment, laws: Strength) -> StrengthState:
    """Return the strength of a record after a recall has returned the record."""
    if held.faded:
        return held
    level = held.level
    if not held.lasting and (level == 0 or now - held.time > laws.interval_s(level)):
        level += 1
    return StrengthState(level, held.lasting or level >= laws.lasting_level, max(held.time, now))


def after_passing_over(held: StrengthState, now: Moment, laws: Strength) -> StrengthState:
    """Return the strength of a record after a recall has found the record and returned others."""
    return _weaker(held, now, math.inf if laws.keeps_all else laws.passed_over_s)


def after_sleep(held: StrengthState, now: Moment, laws: Strength) -> StrengthState:
    """Return the strength of a record that a sleep has drawn (chosen at random among the records that can decay)."""
    return _weaker(held, now, math.inf if laws.keeps_all else laws.asleep_s)


def _weaker(held: StrengthState, now: Moment, after_s: float) -> StrengthState:
    if held.lasting or held.faded or now - held.time <= after_s:
        return held
    return held._replace(level=held.level - 1)


# Predictions.


class Point(NamedTuple):
    """The predicted share of records (`kept`) that are not archived `day` days after their last return."""

    day: float
    kept: float


def curve(
    laws: Strength,
    level: int = 0,
    *,
    days: int = 90,
    sleeps_per_day: float = 1.0,
    drawn: float = 0.1,
    passed_over_per_day: float = 0.0,
) -> list[Point]:
    """Predict, for each day, the share of records at `level` that are not archived, if no recall returns them any more.

    Args:
        drawn: probability that one sleep draws a given record, that is, the number of drawn records divided by the
            number of records that can be drawn.
        passed_over_per_day: number of times per day that a recall finds the record but returns others.
    """
    if laws.keeps_all or level >= laws.lasting_level:
        return [Point(day, 1.0) for day in range(days + 1)]
    return [
        Point(
            day,
            chance_held(
                level,
                sleeps=sleeps_per_day * max(0.0, day - laws.asleep_s / DAY_S),
                drawn=drawn,
                passed_over=passed_over_per_day * max(0.0, day - laws.passed_over_s / DAY_S),
            ),
        )
        for day in range(days + 1)
    ]


def chance_held(level: int, *, sleeps: float, drawn: float, passed_over: float = 0.0) -> float:
    """Return the probability that a record at `level` is not archived: that it has lost at most `level` levels.

    Args:
        sleeps: number of sleeps later than `asleep_s` after the record's last return.
        drawn: probability that one sleep draws the record; the number of draws is binomial.
        passed_over: expected number of recalls, later than `passed_over_s` after the record's last return, that find
            but do not return the record; the number of such recalls is Poisson-distributed.
    """
    whole = int(sleeps)
    by_sleep = [math.comb(whole, k) * drawn**k * (1 - drawn) ** (whole - k) for k in range(min(level, whole) + 1)]
    by_recall = [math.exp(-passed_over) * passed_over**k / math.factorial(k) for k in range(level + 1)]
    chance = sum(a * b for i, a in enumerate(by_sleep) for j, b in enumerate(by_recall) if i + j <= level)
    return min(1.0, chance)


def rehearsals(laws: Strength) -> list[float]:
    """Return the earliest times of returns that make a record long-term, in seconds after the record was written."""
    times = [0.0]
    for level in range(1, laws.lasting_level):
        times.append(times[-1] + laws.interval_s(level))
    return times
