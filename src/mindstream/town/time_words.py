"""Times as a person types them at a town: a day, a time of the day, or both, in written form."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from mindstream.errors import InputError
from mindstream.text.dates import MONTHS, WEEKDAYS
from mindstream.town.setting import Setting

DAY_S = 86_400
CLOCK = re.compile(r"(?P<hour>\d{1,2})(?:[:.](?P<minute>\d\d)(?::(?P<second>\d\d))?)?(?P<half>[ap]m)?")
NAMED_HOURS = {"noon": DAY_S // 2, "midnight": 0}
FAR = {"yesterday": -1, "today": 0, "tomorrow": 1}
FILLERS = {"at", "on", "the", "of", *WEEKDAYS, *(day[:3] for day in WEEKDAYS)}
AROUND = 183
"""A day without a year that is so many days before the beginning is of the year after it."""


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
    today = setting.when(max(now, 0))
    words = [word for word in _split(typed) if word not in FILLERS]
    if words == ["now"]:
        return setting.moment(max(now, 0))
    day, rest = _read_day(setting, words, today.date())
    if not rest:
        return None if day is None else _midnight(day) + (DAY_S - setting.profile.step_s if end else 0)
    seconds = _read_clock("".join(rest), typed)
    if seconds is None:
        return None
    return _midnight(day or setting.when(max(now if day_of is None else day_of, 0)).date()) + seconds


def format_time(setting: Setting, step: int) -> str:
    """Say when a step is, as everywhere: "Tue Feb 14, 17:05"; its seconds where it has some. -1 is the beginning."""
    when = setting.when(max(step, 0))
    return f"{when:%a %b} {when.day}, {when:%H:%M:%S}".removesuffix(":00" if when.second == 0 else "")


def _split(typed: str) -> list[str]:
    """Return what was typed by its words; a date and a time with a T between them are two."""
    words: list[str] = []
    for word in typed.casefold().replace(",", " ").split():
        day, t, clock = word.partition("t")
        words += (day, clock) if t and day[-1:].isdigit() and clock[:1].isdigit() else (word,)
    return words


def _midnight(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def _read_day(setting: Setting, words: list[str], today: date) -> tuple[date | None, list[str]]:
    """Return the day that words name, and the other words."""
    for at, word in enumerate(words):
        before, after = words[:at], words[at + 1 :]
        if word in FAR:
            return today + timedelta(days=FAR[word]), before + after
        if word == "day" and after and after[0].isdecimal():
            return _nth_day(setting, after[0]), before + after[1:]
        if word.count("-") == 2 and all(part.isdecimal() for part in word.split("-")):
            year, month, day = map(int, word.split("-"))
            return _day_of(setting, year, month, day, today), before + after
        if word[:3] in MONTHS and word.isalpha():
            return _month_day(setting, MONTHS.index(word[:3]) + 1, before, after, today)
    return None, words


def _nth_day(setting: Setting, number: str) -> date:
    if not number.strip("0"):
        raise InputError("there is no day 0: day 1 is the day on which the town begins")
    try:
        return setting.when(0).date() + timedelta(days=int(number[:9]) - 1)
    except OverflowError:
        raise InputError(f"day {number:.20} is too far away") from None


def _month_day(
    setting: Setting, month: int, before: list[str], after: list[str], today: date
) -> tuple[date | None, list[str]]:
    """Read "Feb 14 2023", "14 Feb": the day stands beside the month, a year behind them."""
    number = next((each for each in (after[:1], before[-1:]) if each and _number(each[0])), None)
    if number is None:
        return None, [*before, *after]
    before, after = (before, after[1:]) if number == after[:1] else (before[:-1], after)
    year = int(after.pop(0)) if after and len(after[0]) == 4 and after[0].isdecimal() else 0
    return _day_of(setting, year, month, _number(number[0]), today), before + after


def _number(word: str) -> int:
    """Return the day of a month: "14", "14th"; 0: it is none."""
    digits = word[:-2] if word.endswith(("st", "nd", "rd", "th")) else word
    return int(digits) if digits.isdecimal() and len(digits) < 3 else 0


def _day_of(setting: Setting, year: int, month: int, day: int, today: date) -> date:
    first = setting.when(0).date()
    try:
        found = date(year or today.year, month, day)
        if not year and (first - found).days > AROUND:
            found = date(today.year + 1, month, day)
    except (ValueError, OverflowError):
        name = MONTHS[month - 1].capitalize() if 1 <= month <= 12 else f"month {month}"
        raise InputError(f"there is no {name} {day} in {year or today.year}") from None
    return found


def _read_clock(text: str, typed: str) -> int | None:
    """Return the second of the day that a text says; None: it says none."""
    if text in NAMED_HOURS:
        return NAMED_HOURS[text]
    found = CLOCK.fullmatch(text)
    if found is None or not (found["minute"] or found["half"]):
        return None
    hour, minute, second = int(found["hour"]), int(found["minute"] or 0), int(found["second"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            raise InputError(f"{typed!r:.99}: there is no hour {hour} of a half day")
        hour = hour % 12 + 12 * (found["half"] == "pm")
    if minute > 59 or second > 59 or (hour * 60 + minute) * 60 + second > DAY_S:
        raise InputError(f"{typed!r:.99}: a day has no time {text}")
    return (hour * 60 + minute) * 60 + second
