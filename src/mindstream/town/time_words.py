"""Times as a person types them at a town: a day, a time of the day, or both."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from mindstream.errors import InputError
from mindstream.text.dates import MONTHS, WEEKDAYS
from mindstream.town.rules.times import DAY, MONTH_DAY, PARTS
from mindstream.town.setting import Setting

ISO_T = re.compile(r"(?<=\d)t(?=\d)")
NTH_DAY = re.compile(r"\bday (?P<n>\d{1,6})\b")
YEAR = re.compile(r"^\s{0,9},?\s{0,9}(?P<year>(?:19|20)\d\d)\b(?!:)|(?<!\d)(?P<before>(?:19|20)\d\d)\s{0,9}$")
"""A year behind a day ("Feb 13 2023") or before it."""
RELATIVE = re.compile(r"\b(?P<word>today|yesterday|tomorrow|tonight)\b")
WEEKDAY = re.compile(rf"\b(?:{'|'.join(f'{day[:3]}(?:{day[3:]})?' for day in WEEKDAYS)})\b")
FILLERS = re.compile(r"\b(?:at|on|the|in|of|o'?clock)\b|[,]")
CLOCK = re.compile(r"(?P<hour>\d{1,2})(?:[:.h](?P<minute>\d\d)(?::(?P<second>\d\d))?)?\s?(?:(?P<half>[ap])\.?m\.?)?")
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
    text = ISO_T.sub(" ", " ".join(typed.casefold().split()))
    if text in ("now", "right now"):
        return setting.moment(max(now, 0))
    day, rest = _read_day(setting, text, setting.when(max(now, 0)).date())
    rest = " ".join(FILLERS.sub(" ", rest).split())
    if not rest:
        if day is None:
            return None
        midnight = _midnight(day)
        return midnight + (DAY * 60 - setting.profile.step_s if end else 0)
    seconds = _read_clock(rest, typed)
    if seconds is None:
        return None
    return _midnight(day or setting.when(max(now if day_of is None else day_of, 0)).date()) + seconds


def format_time(setting: Setting, step: int) -> str:
    """Say when a step is, as everywhere: "Tue Feb 14, 17:05"; its seconds where it has some. -1 is the beginning."""
    when = setting.when(max(step, 0))
    return f"{when:%a %b} {when.day}, {when:%H:%M:%S}".removesuffix(":00" if when.second == 0 else "")


def _midnight(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def _read_day(setting: Setting, text: str, today: date) -> tuple[date | None, str]:
    """Return the day that a text names, and what is left of the text."""
    if found := NTH_DAY.search(text):
        if found["n"].strip("0") == "":
            raise InputError("there is no day 0: day 1 is the day on which the town begins")
        try:
            day = setting.when(0).date() + timedelta(days=int(found["n"]) - 1)
        except OverflowError:
            raise InputError(f"day {found['n']} is too far away") from None
        return day, _without(text, found)
    if found := MONTH_DAY.search(text):
        rest = f"{text[: found.start()]} {WEEKDAY.sub(' ', text[found.end() :])}"
        month = found["month"] or found["month2"]
        number = MONTHS.index(month) + 1 if month else int(found["month3"])
        said = found["day"] or found["day2"] or found["day3"]
        year = int(found["year"]) if found["year"] else 0
        if not year and (named := YEAR.search(text[found.end() :]) or YEAR.search(text[: found.start()])):
            year, rest = int(named["year"] or named["before"]), rest.replace(named[0], " ", 1)
        return _day_of(setting, year, number, int(said), today), WEEKDAY.sub(" ", rest)
    if found := RELATIVE.search(text):
        far = {"yesterday": -1, "tomorrow": 1}.get(found["word"], 0)
        left = _without(text, found)
        return today + timedelta(days=far), f"{left} evening" if found["word"] == "tonight" and not left else left
    return None, text


def _day_of(setting: Setting, year: int, month: int, day: int, today: date) -> date:
    first = setting.when(0).date()
    try:
        found = date(year or today.year, month, day)
        if not year and (first - found).days > AROUND:
            found = date(today.year + 1, month, day)
    except ValueError:
        name = MONTHS[month - 1].capitalize() if 1 <= month <= 12 else f"month {month}"
        raise InputError(f"there is no {name} {day} in {year or today.year}") from None
    return found


def _without(text: str, found: re.Match[str]) -> str:
    return f"{text[: found.start()]} {text[found.end() :]}".strip()


def _read_clock(text: str, typed: str) -> int | None:
    """Return the second of the day that a text says; None: it says none."""
    if text in ("noon", "midday"):
        return DAY // 2 * 60
    if text == "midnight":
        return 0
    if text in PARTS:
        return PARTS[text][0] * 60
    found = CLOCK.fullmatch(text)
    if found is None or not (found["minute"] or found["half"]):
        return None
    hour, minute, second = int(found["hour"]), int(found["minute"] or 0), int(found["second"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            raise InputError(f"{typed!r:.99}: there is no hour {hour} of a half day")
        hour = hour % 12 + 12 * (found["half"] == "p")
    if minute > 59 or second > 59 or hour * 60 + minute > DAY:
        raise InputError(f"{typed!r:.99}: a day has no time {text}")
    return (hour * 60 + minute) * 60 + second
