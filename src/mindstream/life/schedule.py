"""Determine when a life wakes: by standing orders and their recurrence, active hours, and tasks."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from re import Match
from typing import Literal, Protocol, cast

from mindstream.clock import DAY_S, Moment
from mindstream.errors import InputError
from mindstream.life.state import LifeState
from mindstream.text.times import LIST, MORNING_S, RULE, local_moment, month_of, plain, read_clock, time_of, weekdays_in

CalendarUnit = Literal["day", "week", "month", "year"]
START = date(2024, 1, 1)
"""The day, a Monday, from which intervals such as "every 2 days" are counted."""
DAYS = {"day": 1, "week": 7, "month": 31, "year": 366}
LONGEST_DAYS, SHORTEST_S = 3_660, 60.0
HORIZON_DAYS = 2 * LONGEST_DAYS
"""Number of days that are searched for the next occurrence of a recurrence (20 years)."""


class Recurrence(Protocol):
    """A rule for times that recur without an end."""

    def next_after(self, moment: Moment, zone: tzinfo) -> Moment:
        """Return the first moment later than `moment`.

        Raises:
            InputError: there is no such moment within HORIZON_DAYS, or before the calendar ends.
        """


@dataclass(frozen=True, slots=True)
class Interval:
    """A fixed number of seconds of real time, unaffected by clock changes.

    Raises:
        InputError: the interval is shorter than a minute, or longer than ten years.
    """

    seconds: float

    def __post_init__(self) -> None:
        if not SHORTEST_S <= self.seconds <= LONGEST_DAYS * DAY_S:
            raise InputError(f"every {self.seconds:g} seconds: expected an interval between a minute and ten years")

    def next_after(self, moment: Moment, zone: tzinfo) -> Moment:
        start = datetime.combine(START, time(), zone).timestamp()
        return start + ((moment - start) // self.seconds + 1) * self.seconds


@dataclass(frozen=True, slots=True)
class Calendar:
    """Times of the local clock, on certain days of every n-th day, week, month or year.

    A time that the clock skips in spring is shifted by the skipped period. A time that occurs twice in autumn counts
    once.

    Attributes:
        times: the times of the day.
        every: n in "every n-th unit".
        weekdays: for days and weeks: the weekdays on which the times occur; Monday is 0. For months and years, weekdays
            count only if `nth` is set.
        days: for months and years without `nth`: the days of the month. -1: the last day. A day that a month lacks,
            such as the 31st of April, means the last day of the month.
        nth: for months and years: which day of the month counts, among the days that are `weekdays`. 1: the first; -1:
            the last; 0: `days` count instead.
        month: for years: the number of the month, 1 to 12.

    Raises:
        InputError: a day does not exist, or the interval is shorter than a day or longer than ten years.
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
            raise InputError(f"every {self.every} {self.unit}s: expected an interval between a day and ten years")
        longest = monthrange(2024, self.month)[1] if self.unit == "year" else 31
        if wrong := [day for day in self.days if not (1 <= day <= longest or day == -1)]:
            raise InputError(
                f"there is no day {wrong[0]} in " + (f"month {self.month}" if self.unit == "year" else "a month")
            )

    def next_after(self, moment: Moment, zone: tzinfo) -> Moment:
        day = datetime.fromtimestamp(moment, zone).date() - timedelta(days=1)
        for _ in range(min(HORIZON_DAYS, (date.max - day).days - 2)):
            # the next day, too: if the clock skips midnight, this day's last time can come after the next day's first
            near = [at for each in (day, day + timedelta(days=1)) for at in self._moments(each, zone) if at > moment]
            if near:
                return min(near)
            day += timedelta(days=1)
        raise InputError(
            f"no date in the next {HORIZON_DAYS // 366} years fits the days of this rule for every {self.every}"
            f" {self.unit}{'s' * (self.every > 1)}"
        )

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


LONGEST = 2_000
"""Maximum length of a standing order, in characters."""
SECONDS = {"second": 1, "minute": 60, "hour": 3_600}
NTHS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1}


@dataclass(frozen=True, slots=True)
class Order:
    """A standing order. Only its `text` is stored, from which the other attributes are read again.

    Attributes:
        what: the task.
        when: the recurrence.
        text: the order as it was given.
    """

    what: str
    when: Recurrence
    text: str

    def next_after(self, moment: Moment, zone: tzinfo) -> Moment:
        """Return when the order is next due after `moment`; times of day are those of the zone's local clock."""
        return self.when.next_after(moment, zone)


def read_order(text: str) -> Order:
    """Read a standing order: "every day at 8:00: ask me how I slept", "1st and 15th of the month: pay the rent".

    The first colon that is not part of a time separates time and task. A day without a time means nine in the morning.

    Raises:
        InputError: the text has another form, is too long, or has an impossible time, such as "every 0 hours" or
            "every day at 25:00".
    """
    when, _, what = _COLON.sub("\n", text, count=1).partition("\n")
    said = RULE.fullmatch(plain(when))
    if said is None or not what.strip() or len(text) > LONGEST:
        raise InputError(
            "a standing order needs a time and a task, such as 'every day at 8:00: ask me how I slept' or "
            f"'every monday and friday at 18:30: sum up my week', in at most {LONGEST:,} characters; found {text!r:.99}"
        )
    order = Order(what.strip(), _recurrence(said), text)
    order.next_after(datetime.combine(START, time(), UTC).timestamp(), UTC)  # raises if it never occurs
    return order


def _recurrence(said: Match[str]) -> Recurrence:
    """Return the recurrence that a match of RULE describes."""
    unit, every = said["unit"], int(said["every"] or 1)
    clocks = [read_clock(f"at {each}") or 0 for each in LIST.split(said["clocks"])] if said["clocks"] else [MORNING_S]
    if DAY_S in clocks:
        raise InputError("24:00 is not a valid time of a standing order; write 0:00 of the next day instead")
    times = tuple(sorted(map(time_of, {*clocks})))
    if unit in SECONDS:
        if said["clocks"]:
            raise InputError(f"an order for every {unit} cannot have a time of day; remove 'at …'")
        return Interval(SECONDS[unit] * every)
    if unit:
        days = range(1 if unit == "week" else 7)  # an order for every week is due on Monday
        return Calendar(cast("CalendarUnit", unit), times, every, frozenset(days))
    if said["weekdays"]:
        return Calendar("week", times, weekdays=weekdays_in(said["weekdays"]))
    if said["month"]:
        return Calendar("year", times, days=(int(said["day"]),), month=month_of(said["month"]))
    nths = tuple(NTHS.get(each) or int(each[:-2]) for each in LIST.split(said["nths"]))
    if not said["weekday"]:
        return Calendar("month", times, days=nths)
    if len(nths) > 1 or not (1 <= nths[0] <= 5 or nths[0] == -1):
        raise InputError(f"{said['nths']} {said['weekday']}: expected only one of first to fifth, or last")
    return Calendar("month", times, nth=nths[0], weekdays=weekdays_in(said["weekday"]))


_COLON = re.compile(r":(?!\d\d)|：")


@dataclass(frozen=True)
class ActiveHours:
    """The hours in which a life may act by itself, in a time zone: "08:00-22:00", or "22:00-06:00" across midnight.

    The end is excluded; two equal times mean all hours.

    Raises:
        InputError: the text does not consist of two times of a day.
    """

    hours: str
    zone: tzinfo = UTC
    since: time = field(init=False)
    until: time = field(init=False)

    def __post_init__(self) -> None:
        found = _HOURS.fullmatch(self.hours.strip())
        if not found or int(found[3]) * 60 + int(found[4] or 0) > 1_440:
            raise InputError(f"active hours {self.hours!r}: expected two times of a day, such as 08:00-22:00")
        object.__setattr__(self, "since", time(int(found[1]), int(found[2] or 0)))
        object.__setattr__(self, "until", time(int(found[3]) % 24, int(found[4] or 0)))

    def is_active(self, moment: Moment) -> bool:
        """Return whether a moment is within the active hours."""
        at = datetime.fromtimestamp(moment, self.zone).time()
        if self.since < self.until:
            return self.since <= at < self.until
        return at >= self.since or at < self.until

    def next_active(self, moment: Moment) -> Moment:
        """Return the moment itself if it is within the active hours, otherwise the next start of the active hours."""
        if self.is_active(moment):
            return moment
        today = datetime.fromtimestamp(moment, self.zone).date()
        days = [today + timedelta(days=ahead) for ahead in (0, 1, 2)]
        begins = [local_moment(day, self.since, self.zone, fold) for day in days for fold in (0, 1)]
        return min(at for at in begins if at >= moment and self.is_active(at))


_HOURS = re.compile(r"([01]?\d|2[0-3])(?::([0-5]\d))?\s*[-–—]\s*([01]?\d|2[0-4])(?::([0-5]\d))?")


MISSED = 10_000
"""Maximum number of missed occurrences of an order that are skipped one by one. If more were missed, the order counts
as due now."""


@dataclass(frozen=True, slots=True)
class DueOrder:
    """A standing order that is due. `number`: its number, from 1; `due`: the newest time at which it was due."""

    number: int
    order: Order
    due: Moment


@dataclass(frozen=True)
class Rhythm:
    """When a life may act by itself.

    Attributes:
        hours: the hours in which the life acts by itself (it answers its user at any time); None: always.
        zone: the time zone of orders and of shown times.
        beat_s: minimum interval in seconds at which the life looks for work of its own if no task can be done; None:
            never.
    """

    hours: ActiveHours | None = None
    zone: tzinfo = UTC
    beat_s: float | None = None

    def is_active(self, now: Moment) -> bool:
        return self.hours is None or self.hours.is_active(now)

    def due_orders(self, state: LifeState, now: Moment) -> list[DueOrder]:
        """Return the standing orders that are due; an order that was due several times is returned once."""
        found = []
        for number, order in known_orders(state.orders):
            due = self._last_due(order, state.beats.get(number, state.ordered), now)
            if due is not None:
                found.append(DueOrder(number, order, due))
        return found

    def next_wake(self, state: LifeState, now: Moment) -> Moment | None:
        """Return when the life will next have something to do, within the active hours.

        The result is `now` if there is something to do already and `now` is within the active hours. None: nothing is
        due before a person acts or the budget has room again.
        """
        if state.halted:
            return None
        times = [
            order.next_after(state.beats.get(number, state.ordered), self.zone)
            for number, order in known_orders(state.orders)
        ]
        if (due := state.ledger.next_due()) is not None:
            times.append(due)
        if (look := self.next_look(state)) is not None:
            times.append(look)
        if state.unread or any(state.ledger.to_do(now)):
            times.append(now)
        if not times:
            return None
        at = max(now, min(times))
        return self.hours.next_active(at) if self.hours else at

    def next_look(self, state: LifeState) -> Moment | None:
        """Return when the life may look for work of its own the next time; None: never.

        - A life that has not looked yet may look at once.
        - After a look that found work, or if a turn has begun since the look, the life waits one interval (`beat_s`).
        - After a look that found nothing, the life waits at least two intervals. It also waits until the time that M2
          (the role that decides) has named for the next look. If M2 has named no time, it waits until the next day
          (UTC).
        """
        if self.beat_s is None:
            return None
        if not state.idle:
            return state.looked + self.beat_s if state.looked else 0.0
        tomorrow = state.looked + DAY_S - state.looked % DAY_S
        return max(state.looked + 2 * self.beat_s, tomorrow if state.idle_until is None else state.idle_until)

    def _last_due(self, order: Order, since: Moment, now: Moment) -> Moment | None:
        due = order.next_after(since, self.zone)
        if due > now:
            return None
        for _ in range(MISSED):
            after = order.next_after(due, self.zone)
            if after > now:
                return due
            due = after
        return now


def known_orders(orders: Sequence[str]) -> Iterator[tuple[int, Order]]:
    """Yield the standing orders that can be read, with their numbers, from 1."""
    for number, text in enumerate(orders, 1):
        with suppress(InputError):
            yield number, read_order(text)


def unknown_orders(orders: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the numbers of standing orders that cannot be read, and why; earlier versions may have accepted them."""
    for number, text in enumerate(orders, 1):
        try:
            read_order(text)
        except InputError as error:
            yield number, str(error)
