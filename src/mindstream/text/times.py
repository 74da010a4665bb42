"""Parse times as people type them ("tomorrow 9:00", "in 20 minutes", "Feb 14 19:00"), and recurrence rules.

This is not for sentences: a text that contains anything else is not a time.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from re import Match

from mindstream.clock import DAY_S, Moment
from mindstream.errors import InputError
from mindstream.text.dates import MONTHS, WEEKDAYS, build_pattern

MORNING_S = 9 * 3_600
"""Default time of day, in seconds after midnight."""
SPANS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
FAR = {"yesterday": -1, "today": 0, "tomorrow": 1}
NAMED_HOURS_S = {"noon": 12 * 3_600, "midnight": 0}
STARTS = {"weekd": range(5), "weeke": range(5, 7)} | {day[:3]: range(n, n + 1) for n, day in enumerate(WEEKDAYS)}
"""Prefixes of words for days of the week, and the days that they mean."""

_WEEKDAY = "|".join(f"{day[:3]}(?:{day[3:]})?" for day in WEEKDAYS)
_NTH = r"\d\d?(?:st|nd|rd|th)|first|second|third|fourth|last"
_HOUR = r"noon|midnight|\d\d?(?:[:.]\d\d)?(?: ?[ap]m)?"
_YEAR = r"(?![\w:])(?: (?P<year>\d{4})(?![\w:]))?"
SPAN = re.compile(
    r"(?:and )?(\d{1,6}(?:\.\d{1,3})?) ?(s(?:ec(?:ond)?)?|m(?:in(?:ute)?)?|h(?:(?:ou)?r)?|d(?:ay)?|w(?:eek)?)s?"
    r"(?![a-z]) ?"
)
CLOCK = re.compile(
    r"(?P<at>at )?(?:(?P<named>noon|midnight)|(?P<hour>\d\d?)(?:[:.](?P<minute>\d\d)(?::(?P<second>\d\d))?)?"
    r"(?: ?(?P<half>[ap])\.?m\.?)?)"
)
DATES = [
    build_pattern(rf"\b{form}")
    for form in (
        rf"(?P<far>{'|'.join(FAR)})\b",
        r"(?P<year>\d{4})-(?P<month>\d\d?)-(?P<day>\d\d?)(?:t(?=\d)|(?!\w))",
        f"<D> (?:of )?<M>{_YEAR}",
        f"<M> <D>{_YEAR}",
    )
]
DAY_OF_WEEK = re.compile(rf"\b(?:{_WEEKDAY})\b")
LIST = re.compile(r",? and |, ")
"""Separators of several days or times in a rule."""


def _several(one: str) -> str:
    return rf"(?:{one})(?:(?:,| and|, and) (?:{one}))*"


RULE = build_pattern(
    r"(?:every )?(?:on )?(?:the )?(?:"
    r"(?:(?P<every>\d{1,5}) )?(?P<unit>second|minute|hour|day|week|month)s?"
    rf"|(?P<weekdays>{_several(f'(?:weekday|weekend|{_WEEKDAY})s?')})"
    rf"|(?P<nths>{_several(_NTH)})(?: (?:day|(?P<weekday>{_WEEKDAY})))? of (?:the|every|each) month"
    "|year on <M> <D>"
    rf")(?:,? (?:at )?(?P<clocks>{_several(_HOUR)}))?"
)
"""A recurrence: "every day at 8:00 and 20:00", "last day of the month"; interpreted by `life/schedule.py`."""


def plain(text: str) -> str:
    """Return a text in lower case with single spaces."""
    return " ".join(text.casefold().split())


def read_moment(text: str, now: Moment, zone: tzinfo) -> Moment | None:
    """Return the next moment that a text names, such as "in 20 minutes", "2h", "18:00" or "monday 8:00".

    A day alone means 9:00 on that day. The result is None if the text names no moment, or contains other words.

    Raises:
        InputError: the moment has passed, or does not exist.
    """
    words = plain(text).strip(" .,;")
    try:
        if spans := read_spans(words):
            return _later(spans, now, zone)
        today = datetime.fromtimestamp(now, zone).date()
        for since in (today, today + timedelta(days=1)):
            day, rest = read_day(words, today, since)
            seconds = read_clock(rest) if rest or day is None else MORNING_S
            if seconds is None:
                return None
            at = local_moment((day or since) + timedelta(days=seconds == DAY_S), time_of(seconds), zone)
            if at > now:
                return at
    except (ValueError, OverflowError):
        raise InputError(f"{text!r:.99} is outside the calendar, which has the years 1 to 9999") from None
    raise InputError(f"{text!r:.99} is in the past: name a later time")


def read_spans(text: str) -> list[tuple[str, str]]:
    """Return the time spans of a text ("in 20 minutes", "1 day 2h"), each as number and unit.

    Return [] if the text contains anything else.
    """
    words = plain(text).strip(" .,;")
    return SPAN.findall(words) if SPAN.sub("", words).strip() in ("", "in") else []


def _later(spans: list[tuple[str, str]], now: Moment, zone: tzinfo) -> Moment:
    """Return now plus the given spans. Whole days keep the local time of day, also across a change of the clock."""
    seconds = sum(float(number) * SPANS_S[unit[0]] for number, unit in spans)
    if not seconds % DAY_S and all(unit[0] in "dw" for _, unit in spans):
        return (datetime.fromtimestamp(now, zone) + timedelta(seconds=seconds)).timestamp()
    return now + seconds


def read_day(text: str, today: date, since: date) -> tuple[date | None, str]:
    """Return the day that a text names (None: it names none), and the rest of the text.

    Args:
        text: the result of `plain`.
        since: the earliest day. A weekday means the first such weekday from `since` on. A date without a year means the
            date in this year; if this date is before `since`, the date in the next year.

    Raises:
        InputError: there is no such day.
    """
    day: date | None = None
    text = text.replace(",", " ")
    if found := DAY_OF_WEEK.search(text):
        text = _cut(text, found)
        day = since + timedelta(days=(min(weekdays_in(found[0])) - since.weekday()) % 7)
    if found := next(filter(None, (form.search(text) for form in DATES)), None):
        text, said = _cut(text, found), found.groupdict()
        day = today + timedelta(days=FAR[found[0]]) if said.get("far") else _date(said, today, since)
    return day, " ".join(word for word in text.split() if word not in ("on", "the"))


def _cut(text: str, found: Match[str]) -> str:
    return f"{text[: found.start()]} {text[found.end() :]}"


def _date(said: dict[str, str | None], today: date, since: date) -> date:
    month, year = month_of(said["month"] or ""), int(said["year"] or today.year)
    try:
        day = date(year, month, int(said["day"] or 0))
        if day < since and not said["year"]:
            year += 1
            day = day.replace(year=year)
    except ValueError:
        day_of = f"{MONTHS[month - 1].capitalize()} {said['day']} in {year}" if 1 <= month <= 12 else f"month {month}"
        raise InputError(f"there is no {day_of}") from None
    return day


def read_clock(text: str) -> int | None:
    """Return the second of the day that a text names; None: the text is not a time of day.

    Examples are "18:00", "6 pm", "at 8", "noon" and "24:00".

    Raises:
        InputError: a day has no such time.
    """
    found = CLOCK.fullmatch(text)
    if found is None or not (found["at"] or found["named"] or found["minute"] or found["half"]):
        return None
    if found["named"]:
        return NAMED_HOURS_S[found["named"]]
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    if found["half"]:
        if not 1 <= hour <= 12:
            raise InputError(f"{text.removeprefix('at ')}: with am or pm, the hour must be 1 to 12, not {hour}")
        hour = hour % 12 + 12 * (found["half"] == "p")
    seconds = (hour * 60 + minute) * 60 + second
    if minute > 59 or second > 59 or seconds > DAY_S:
        raise InputError(f"a day has no time {text.removeprefix('at ')}: the times are 00:00 to 24:00")
    return seconds


def time_of(seconds: int) -> time:
    """Return the time of a second of the day; 86,400 is midnight."""
    return (datetime.min + timedelta(seconds=seconds)).time()


def weekdays_in(text: str) -> frozenset[int]:
    """Return the days of the week that a text names, by name or as "weekdays" or "weekend". Monday is 0."""
    words = re.findall("[a-z]+", text)
    return frozenset(day for word in words for start, days in STARTS.items() if word.startswith(start) for day in days)


def month_of(text: str) -> int:
    """Return the number of a month, given by number or name."""
    return int(text) if text.isdecimal() else MONTHS.index(text[:3]) + 1


def local_moment(day: date, at: time, zone: tzinfo, fold: int = 0) -> Moment:
    """Return the moment at which the clock of a zone shows a time of a day. If the clock shows it twice, because it was
    set back, `fold` 1 means the second moment."""
    return datetime.combine(day, at.replace(fold=fold), zone).astimezone(UTC).timestamp()
