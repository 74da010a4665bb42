"""What comes again and again: so many minutes apart, or on certain days at certain times of the local clock."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Literal, Protocol

from mindstream.clock import DAY_S, Moment
from mindstream.errors import InputError
from mindstream.text.times import local_moment

CalendarUnit = Literal["day", "week", "month", "year"]
START = date(2024, 1, 1)
"""A Monday: what comes every second day or every three hours is counted from its beginning."""
DAYS = {"day": 1, "week": 7, "month": 31, "year": 366}
LONGEST_DAYS, SHORTEST_S = 3_660, 60.0
HORIZON_DAYS = 2 * LONGEST_DAYS
"""So far ahead the next moment is looked for."""


class Recurrence(Protocol):
    """A rule that names moments without an end."""

    def next_after(self, moment: Moment, zone: tzinfo) -> Moment:
        """Return the first of its moments that is later than `moment`.

        Raises:
            InputError: there is none as far as the horizon, or the calendar ends before.
        """


@dataclass(frozen=True, slots=True)
class Interval:
    """Every so many seconds, counted in real time, so that no change of the clock lengthens one.

    Raises:
        InputError: it is shorter than a minute, or longer than ten years.
    """

    seconds: float

    def __post_init__(self) -> None:
        if not SHORTEST_S <= self.seconds <= LONGEST_DAYS * DAY_S:
            raise InputError(f"every {self.seconds:g} seconds: wanted is a time between a minute and ten years")

    def next_after(self, moment: Moment, zone: tzinfo) -> Moment:
        start = datetime.combine(START, time(), zone).timestamp()
        return start + ((moment - start) // self.seconds + 1) * self.seconds


@dataclass(frozen=True, slots=True)
class Calendar:
    """Days of every so many days, weeks, months or years, and times of these days on the local clock.

    A time that the clock skips in spring comes as much later; one that it shows twice in autumn comes once.

    Attributes:
        weekdays: of a week, or of a month where `nth` is set; Monday is 0.
        days: of a month, or of a year's month; one that a month lacks is its last, -1 always is.
        nth: the how-manieth of these weekdays in a month; -1: the last; 0: all that the unit says.
        month: of a year.

    Raises:
        InputError: there is no such day, or the next one may be ten years away.
    """

    unit: CalendarUnit
    times: tuple[time, ...]
    every: int = 1
    weekdays: frozenset[int] = frozenset(range(7))
    days: tuple[int, ...] = (1,)
    nth: int = 0
    month: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.every * DAYS[self.unit] <= LONGEST_DAYS:
            raise InputError(f"every {self.every} {self.unit}s: wanted is a time between a minute and ten years")
        longest = monthrange(2024, self.month)[1] if self.unit == "year" else 31
        if wrong := [day for day in self.days if not (1 <= day <= longest or day == -1)]:
            raise InputError(f"there is no day {wrong[0]} in a month" + " of that name" * (self.unit == "year"))

    def next_after(self, moment: Moment, zone: tzinfo) -> Moment:
        day = datetime.fromtimestamp(moment, zone).date() - timedelta(days=1)
        for _ in range(min(HORIZON_DAYS, (date.max - day).days - 2)):
            # the next day, too: where the clock skips midnight, this day's last time can come after its first
            near = [at for each in (day, day + timedelta(days=1)) for at in self._moments(each, zone) if at > moment]
            if near:
                return min(near)
            day += timedelta(days=1)
        raise InputError(f"there is no such day of a {self.unit} in the next {HORIZON_DAYS // 366} years")

    def _moments(self, day: date, zone: tzinfo) -> list[Moment]:
        if not self._holds(day):
            return []
        return [local_moment(day, at, zone) for at in self.times]

    def _holds(self, day: date) -> bool:
        if self.unit in ("day", "week"):
            apart = (day - START).days // DAYS[self.unit]
            return apart % self.every == 0 and day.weekday() in self.weekdays
        if self.unit == "month":
            right_month = ((day.year - START.year) * 12 + day.month - START.month) % self.every == 0
        else:
            right_month = day.month == self.month and (day.year - START.year) % self.every == 0
        return right_month and self._is_day_of_month(day)

    def _is_day_of_month(self, day: date) -> bool:
        last = monthrange(day.year, day.month)[1]
        if self.nth:
            count = -1 if self.nth < 0 and day.day > last - 7 else (day.day + 6) // 7
            return count == self.nth and day.weekday() in self.weekdays
        return any(day.day == (last if wanted < 0 else min(wanted, last)) for wanted in self.days)
