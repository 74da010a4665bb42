"""What tokens of time mean together: a rule that comes again, or the next moment of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta, tzinfo
from typing import cast

from mindstream.clock import Moment
from mindstream.errors import InputError
from mindstream.life.recurrence import Calendar, CalendarUnit, Interval, Recurrence, local_moment
from mindstream.life.time_reading import NotUnderstoodError, TimeReading
from mindstream.life.time_words import Token

SECONDS = {"second": 1, "minute": 60, "hour": 3_600}
MORNING = time(9)
"""The time of a day for which none is said."""


def recurrence_of(tokens: Sequence[Token]) -> Recurrence:
    """Return the rule that tokens name.

    Raises:
        NotUnderstoodError: they name none.
        InputError: they name one that cannot be kept.
    """
    reading = TimeReading(tokens).read()
    once = reading.day is not None or reading.lengths or reading.weeks or reading.next_unit or reading.is_ahead
    if once or not reading.recurs or len(reading.date) == 3:
        raise NotUnderstoodError("once")
    if reading.unit in SECONDS:
        if reading.clocks or reading.weekdays or reading.ordinals or reading.date:
            raise NotUnderstoodError("an interval has no times")
        return Interval(SECONDS[reading.unit] * (reading.every + reading.fraction))
    if reading.fraction:
        raise NotUnderstoodError("half a day")
    return _calendar(reading)


def _calendar(reading: TimeReading) -> Calendar:
    """Return the days and times that a reading names."""
    times = reading.times()
    rule = Calendar("day", times or (MORNING,), reading.every)
    unit = reading.unit
    if reading.date:
        if unit not in ("", "year") or reading.weekdays or reading.ordinals:
            raise NotUnderstoodError("too many days")
        return replace(rule, unit="year", month=reading.date[-2], days=(reading.date[-1],))
    if reading.ordinals and reading.weekdays:
        if unit not in ("", "month") or len(reading.ordinals) > 1 or not -1 <= reading.ordinals[0] <= 5:
            raise NotUnderstoodError("too many days")
        return replace(rule, unit="month", nth=reading.ordinals[0], weekdays=frozenset(reading.weekdays))
    if reading.ordinals:
        if unit not in ("", "month"):
            raise NotUnderstoodError("the 1st of what")
        return replace(rule, unit="month", days=tuple(reading.ordinals))
    if reading.weekdays:
        if unit not in ("", "week"):
            raise NotUnderstoodError("a weekday of what")
        return replace(rule, unit="week", weekdays=frozenset(reading.weekdays))
    if unit == "year" or not (unit or times):
        raise NotUnderstoodError("which day")
    weekdays = frozenset({0}) if unit == "week" else rule.weekdays
    return replace(rule, unit=cast("CalendarUnit", unit or "day"), weekdays=weekdays)


def moment_of(tokens: Sequence[Token], now: Moment, zone: tzinfo) -> Moment:
    """Return the moment that tokens name, the next such one.

    Raises:
        NotUnderstoodError: they name none.
        InputError: they name one that there is not, or that has passed.
    """
    reading = TimeReading(tokens).read()
    if reading.recurs or len(reading.clocks) > 1 or len(reading.weekdays) > 1:
        raise NotUnderstoodError("again and again")
    if reading.lengths:
        return _later(reading, now, zone)
    if reading.is_ahead:
        raise NotUnderstoodError("in what")
    times = reading.times() or (MORNING,)
    if (day := _day_named(reading, now, zone)) is None:
        return _calendar(reading).next_after(now, zone)
    at = local_moment(day, times[0], zone)
    if at <= now:
        raise InputError(f"{day} {times[0]:%H:%M} has passed")
    return at


def _later(reading: TimeReading, now: Moment, zone: tzinfo) -> Moment:
    """Return now and as much later as is said; days and longer by the calendar."""
    times = reading.times()
    units = {unit for _, unit in reading.lengths}
    if not reading.is_ahead or reading.weekdays or reading.ordinals or reading.date or reading.day is not None:
        raise NotUnderstoodError("too many days")
    if times and units & SECONDS.keys():
        raise NotUnderstoodError("a time in hours")
    seconds = sum(number * SECONDS.get(unit, 0) for number, unit in reading.lengths)
    days = sum(number * {"day": 1, "week": 7}.get(unit, 0) for number, unit in reading.lengths)
    months = sum(number * {"month": 1, "year": 12}.get(unit, 0) for number, unit in reading.lengths)
    start = datetime.fromtimestamp(now, zone)
    try:
        day = _months_later(start.date(), int(months)) + timedelta(days=int(days))
        rest = seconds + (days % 1 + 30 * (months % 1)) * 86_400
        if day == start.date() and not times:
            return now + rest
        return local_moment(day, times[0] if times else start.time(), zone) + rest
    except (ValueError, OverflowError):
        raise InputError("that lies further ahead than any calendar") from None


def _months_later(day: date, months: int) -> date:
    index = day.year * 12 + day.month - 1 + months
    after = date(index // 12, index % 12 + 1, 1)
    following = date((index + 1) // 12, (index + 1) % 12 + 1, 1)
    return min(after.replace(day=1) + timedelta(days=day.day - 1), following - timedelta(days=1))


def _day_named(reading: TimeReading, now: Moment, zone: tzinfo) -> date | None:
    """Return the one day that is said, where it is no matter of the next such day."""
    today = datetime.fromtimestamp(now, zone).date()
    if reading.next_unit == "week":
        monday = today + timedelta(days=7 - today.weekday())
        return monday + timedelta(days=min(reading.weekdays, default=0))
    if reading.weeks and len(reading.weekdays) == 1:
        wanted = next(iter(reading.weekdays))
        if reading.weeks > 1:
            return today + timedelta(days=7 * (reading.weeks - 1) - today.weekday() + wanted)
        return today + timedelta(days=(wanted - today.weekday() - 1) % 7 + 1)
    if reading.next_unit in ("month", "year"):
        later = _months_later(today.replace(day=1), 1 if reading.next_unit == "month" else 12)
        first = later if reading.next_unit == "month" else later.replace(month=1)
        return _months_later(first, 0) + timedelta(days=(reading.ordinals or [1])[0] - 1)
    if reading.next_unit or reading.weeks:
        raise NotUnderstoodError("next what")
    if len(reading.date) == 3:
        try:
            return date(*reading.date)
        except ValueError:
            raise InputError(f"there is no day {'-'.join(map(str, reading.date))}") from None
    return None if reading.day is None else today + timedelta(days=reading.day)
