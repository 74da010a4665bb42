"""Times as a person types them at a town: a day, a time of the day, or both, by the town's own clock."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from mindstream.clock import DAY_S
from mindstream.errors import InputError
from mindstream.text.dates import WEEKDAYS
from mindstream.text.times import plain, read_clock, read_day
from mindstream_town.setting import Setting

IGNORED = {*WEEKDAYS, *(day[:3] for day in WEEKDAYS)}
AROUND = timedelta(days=183)
"""A day without a year that is so long before the beginning is of the year after it."""


def read_moment(
    setting: Setting, typed: str, now: int, *, end: bool = False, day_of: int | None = None
) -> float | None:
    """Read "Feb 14 19:00", "2023-02-14 19:00", "day 2", "yesterday 10am", "tomorrow noon", "19:00" (today), "now".

    Args:
        now: the step that says which day today is.
        end: a day alone is its last step; else its first.
        day_of: a time of the day alone is of the day of this step; None: of today.

    Returns:
        The moment; None where it is no time.

    Raises:
        InputError: there is no such day, or no such time of the day.
    """
    first, today = setting.when(0).date(), setting.when(max(now, 0)).date()
    words = [word for word in plain(typed.replace(",", " ")).split() if word not in IGNORED]
    if words == ["now"]:
        return setting.moment(max(now, 0))
    at = words.index("day") if "day" in words[:-1] else -1
    if at >= 0 and words[at + 1].isdecimal():
        words[at : at + 2] = [_nth_day(first, words[at + 1]).isoformat()]
    day, rest = read_day(" ".join(words), today, first - AROUND)
    if not rest:
        return None if day is None else _midnight(day) + (DAY_S - setting.profile.step_s if end else 0)
    seconds = read_clock(rest)
    if seconds is None:
        return None
    return _midnight(day or setting.when(max(now if day_of is None else day_of, 0)).date()) + seconds


def format_time(setting: Setting, step: int) -> str:
    """Say when a step is, as everywhere: "Tue Feb 14, 17:05"; its seconds where it has some. -1 is the beginning."""
    when = setting.when(max(step, 0))
    return f"{when:%a %b} {when.day}, {when:%H:%M:%S}".removesuffix(":00" if when.second == 0 else "")


def _midnight(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def _nth_day(first: date, number: str) -> date:
    if not number.strip("0"):
        raise InputError("there is no day 0: day 1 is the day on which the town begins")
    try:
        return first + timedelta(days=int(number[:9]) - 1)
    except OverflowError:
        raise InputError(f"day {number:.20} is too far away") from None
