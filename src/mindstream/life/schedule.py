"""Standing orders in written form, "<when>: <what>", and what they mean; the hours in which a mind is awake."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, tzinfo
from re import Match
from typing import cast

from mindstream.clock import DAY_S, Moment
from mindstream.errors import InputError
from mindstream.life.recurrence import START, Calendar, CalendarUnit, Interval, Recurrence
from mindstream.text.times import LIST, MORNING_S, RULE, local_moment, month_of, plain, read_clock, time_of, weekdays_in

LONGEST = 2_000
"""A longer text is no standing order."""
SECONDS = {"second": 1, "minute": 60, "hour": 3_600}
NTHS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1}


@dataclass(frozen=True, slots=True)
class Order:
    """Something to do again and again; its `text` is all there is to keep, for it always reads the same.

    Attributes:
        what: what is to be done; "" where only times were said.
        when: when.
        text: the order as it was given.
    """

    what: str
    when: Recurrence
    text: str

    def next_after(self, moment: Moment, zone: tzinfo) -> Moment:
        """Return when it is due first after `moment`; a time of day is one of the local clock."""
        return self.when.next_after(moment, zone)


def read_order(text: str) -> Order:
    """Read a standing order: "every day at 8:00: ask me how I slept", "1st and 15th of the month: pay the rent".

    A colon that is not part of a time of the day parts when from what; a day without a time means nine in the morning.

    Raises:
        InputError: it is not written so, or cannot be kept: every 0 hours, every day at 25:00.
    """
    when, _, what = _COLON.sub("\n", text, count=1).partition("\n")
    said = RULE.fullmatch(plain(when))
    if said is None or not what.strip() or len(text) > LONGEST:
        raise InputError(
            "a standing order says when and what: 'every day at 8:00: ask me how I slept', "
            f"'every monday and friday at 18:30: sum up my week'; not {text!r:.99}"
        )
    order = Order(what.strip(), _recurrence(said), text)
    order.next_after(datetime.combine(START, time(), UTC).timestamp(), UTC)  # what never comes is no order
    return order


def _recurrence(said: Match[str]) -> Recurrence:
    """Return what a written recurrence means."""
    unit, every = said["unit"], int(said["every"] or 1)
    clocks = [read_clock(f"at {each}") or 0 for each in LIST.split(said["clocks"])] if said["clocks"] else [MORNING_S]
    if DAY_S in clocks:
        raise InputError("24:00 is 0:00 of the day after: say that day")
    times = tuple(sorted(map(time_of, {*clocks})))
    if unit in SECONDS:
        if said["clocks"]:
            raise InputError(f"what comes every {unit} has no time of the day")
        return Interval(SECONDS[unit] * every)
    if unit:
        days = range(1 if unit == "week" else 7)  # a week's is Monday
        return Calendar(cast("CalendarUnit", unit), times, every, frozenset(days))
    if said["weekdays"]:
        return Calendar("week", times, weekdays=weekdays_in(said["weekdays"]))
    if said["month"]:
        return Calendar("year", times, days=(int(said["day"]),), month=month_of(said["month"]))
    nths = tuple(NTHS.get(each) or int(each[:-2]) for each in LIST.split(said["nths"]))
    if not said["weekday"]:
        return Calendar("month", times, days=nths)
    if len(nths) > 1 or not (1 <= nths[0] <= 5 or nths[0] == -1):
        raise InputError(f"{said['nths']} {said['weekday']}: wanted is one of the first to fifth, or the last")
    return Calendar("month", times, nth=nths[0], weekdays=weekdays_in(said["weekday"]))


_COLON = re.compile(r":(?!\d\d)|：")


@dataclass(frozen=True)
class ActiveHours:
    """The hours of the day in which a mind may act, by a zone's clock: "08:00-22:00", "22:00-06:00" over midnight.

    The end is no longer part of them; where both are alike, all hours are.

    Raises:
        InputError: the words name no two times of a day.
    """

    hours: str
    zone: tzinfo = UTC
    since: time = field(init=False)
    until: time = field(init=False)

    def __post_init__(self) -> None:
        found = _HOURS.fullmatch(self.hours.strip())
        if not found or int(found[3]) * 60 + int(found[4] or 0) > 1_440:
            raise InputError(f"active hours {self.hours!r}: wanted are two times of a day, like 08:00-22:00")
        object.__setattr__(self, "since", time(int(found[1]), int(found[2] or 0)))
        object.__setattr__(self, "until", time(int(found[3]) % 24, int(found[4] or 0)))

    def is_active(self, moment: Moment) -> bool:
        """Tell whether a moment lies in them."""
        at = datetime.fromtimestamp(moment, self.zone).time()
        if self.since < self.until:
            return self.since <= at < self.until
        return at >= self.since or at < self.until

    def next_active(self, moment: Moment) -> Moment:
        """Return the moment itself where it lies in them, else when they begin next."""
        if self.is_active(moment):
            return moment
        today = datetime.fromtimestamp(moment, self.zone).date()
        days = [today + timedelta(days=ahead) for ahead in (0, 1, 2)]
        begins = [local_moment(day, self.since, self.zone, fold) for day in days for fold in (0, 1)]
        return min(at for at in begins if at >= moment and self.is_active(at))


_HOURS = re.compile(r"([01]?\d|2[0-3])(?::([0-5]\d))?\s*[-–—]\s*([01]?\d|2[0-4])(?::([0-5]\d))?")
