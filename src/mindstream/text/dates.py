"""Find the time that a question is about: 'last May', 'three days ago', '7 May 2023', '三天前', '去年五月'. No model is
called.

Days are in UTC. A month or weekday without a year is the last one that has begun.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from re import Match

from mindstream.caches import remember
from mindstream.clock import Moment


@dataclass(frozen=True, slots=True)
class DateSpan:
    """A span of time; `until` is excluded."""

    since: Moment
    until: Moment


Days = tuple[datetime, datetime]
Reading = Callable[[Match[str], datetime], Days]

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
VAGUE = {"a couple of": 2, "a few": 3, "a": 1, "an": 1}
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
HOLIDAYS = {
    "christmas": (12, 24, 3),
    "new year": (12, 31, 2),
    "halloween": (10, 31, 1),
    "valentine": (2, 14, 1),
    "thanksgiving": (11, 22, 7),
    "圣诞": (12, 24, 3),
    "元旦": (1, 1, 1),
    "国庆": (10, 1, 7),
}
"""Month, first day, and number of days. Thanksgiving, a Thursday, covers all its possible days."""
CHINESE = "零一二三四五六七八九"
CHINESE_WEEKDAYS = "一二三四五六日天"
CHINESE_UNITS = {"天": "day", "日": "day", "星期": "week", "礼拜": "week", "周": "week", "月": "month", "年": "year"}
CHINESE_YEARS = {"今": 0, "去": 1, "前": 2}

M = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?(?!\w)"
)
D = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
Y = r"(?P<year>(?:19|20)\d\d)"
N = rf"(?P<n>\d{{1,6}}|{'|'.join(NUMBERS[1:])}|a couple of|a few|an?)"
UNIT = r"(?P<unit>day|week|month|year)s?"
WEEKDAY = rf"(?P<weekday>{'|'.join(WEEKDAYS)})"
SEASON = rf"(?P<season>{'|'.join(SEASONS)})"
C_N = rf"(?P<n>(?<!\d)\d{{1,6}}|[{CHINESE}十两几]{{1,3}})"
C_UNIT = r"(?P<unit>天|日|个?星期|个?礼拜|周|个?月|年)"
C_PERIOD = r"(?P<unit>周|个?星期|个?礼拜|个?月)"
C_WEEKDAY = rf"(?:周|星期|礼拜)(?P<weekday>[{CHINESE_WEEKDAYS}])"
C_MONTH = r"(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])月"
C_DAY = r"(?P<day>[0-3]?\d)[日号]"
STRETCH = re.compile(
    rf"(?:{N} )?(?P<unit>day|week|weekend|month|year)s? (?P<way>before|after)(?: the| on| in)* ?$", re.IGNORECASE
)
HINT = re.compile(
    rf"\d|[年月日天周]|星期|礼拜|{'|'.join(HOLIDAYS)}|\b(?:{'|'.join(MONTHS)}|{'|'.join(SEASONS)}|to(?:day|night)|yesterday|night|morning|evening)"
    r"|\b(?:after|fore)noon|(?:day|week|weekend|month|year)s?\b",
    re.IGNORECASE,
)
"""A text without any of these names no time; most texts have none."""
MAX_BEFORE = 60
"""Maximum number of characters before a time that are searched for words that extend it: 'a couple of weekends before
the'."""


def spans(text: str, now: Moment) -> list[DateSpan]:
    """Return the spans of time that a text names, in the order of the text."""
    return list(_spans(text, _today(now))[0])


def without_dates(text: str, now: Moment) -> str:
    """Return a text without the words that name spans of time."""
    return _spans(text, _today(now))[1]


def _today(now: Moment) -> datetime:
    return datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)


@remember(1024)
def _spans(text: str, today: datetime) -> tuple[tuple[DateSpan, ...], str]:
    if not HINT.search(text):
        return (), text
    found: dict[int, Days] = {}
    rest = text
    for pattern, reading in READINGS:
        for match in pattern.finditer(rest):
            with contextlib.suppress(ValueError, OverflowError):  # 31 February, or a year outside the calendar
                before = rest[max(0, match.start() - MAX_BEFORE) : match.start()]
                found[match.start()] = _stretched(reading(match, today), before)
                rest = rest[: match.start()] + "\0" * len(match[0]) + rest[match.end() :]
    named = dict.fromkeys(days for _, days in sorted(found.items()))
    return tuple(DateSpan(since.timestamp(), until.timestamp()) for since, until in named), rest.replace("\0", " ")


def _stretched(days: Days, before: str) -> Days:
    """Extend a span by the time before or after it that the preceding words name: 'two weeks before' 3 May."""
    asked = STRETCH.search(before)
    if not asked:
        return days
    unit = "week" if asked["unit"].lower() == "weekend" else asked["unit"].lower()
    far = timedelta(days={"day": 1, "week": 7, "month": 31, "year": 366}[unit] * _number(asked["n"] or "one"))
    return (days[0] - far, days[1]) if asked["way"].lower() == "before" else (days[0], days[1] + far)


def _day(at: datetime) -> Days:
    return at, at + timedelta(days=1)


def _month(year: int, month: int, months: int = 1) -> Days:
    end = month - 1 + months
    return datetime(year, month, 1, tzinfo=UTC), datetime(year + end // 12, end % 12 + 1, 1, tzinfo=UTC)


def _year(year: int) -> Days:
    return _month(year, 1, 12)


def _back(today: datetime, n: int, unit: str) -> Days:
    """Return the day, week, month or year n units ago; two weeks or more are meant loosely, so the span is centred on
    the day."""
    if unit == "day":
        return _day(today - timedelta(days=n))
    if unit == "week":
        start = today - timedelta(days=7 * n + today.weekday() if n < 2 else 7 * n + 3)
        return start, start + timedelta(days=7)
    if unit == "month":
        index = today.year * 12 + today.month - 1 - n
        return _month(index // 12, index % 12 + 1)
    return _year(today.year - n)


def _number(word: str) -> int:
    word = word.lower()
    if word.isdigit():
        return int(word)
    if word in VAGUE:
        return VAGUE[word]
    if word in NUMBERS:
        return NUMBERS.index(word)
    tens, ten, ones = word.replace("两", "二").replace("几", "三").rpartition("十")
    if not ten:
        return CHINESE.index(ones[-1])
    return 10 * (CHINESE.index(tens) if tens else 1) + (CHINESE.index(ones) if ones else 0)


def _month_number(word: str) -> int:
    start = word[:3].lower()
    return MONTHS.index(start) + 1 if start in MONTHS else _number(word)


def _unit(word: str) -> str:
    return CHINESE_UNITS.get(word.removeprefix("个"), word.lower())


def _weekday(word: str) -> int:
    word = word.lower()
    return WEEKDAYS.index(word) if word in WEEKDAYS else min(CHINESE_WEEKDAYS.index(word), 6)


def _dated(match: Match[str], today: datetime) -> Days:
    """Read day, month and year, as far as they are given."""
    parts = match.groupdict()
    month = _month_number(parts["month"])
    year = int(parts["year"]) if parts.get("year") else today.year
    day = int(parts["day"]) if parts.get("day") else None
    if not parts.get("year") and datetime(year, month, day or 1, tzinfo=UTC) > today:
        year -= 1
    return _day(datetime(year, month, day, tzinfo=UTC)) if day else _month(year, month)


def _last_month_named(match: Match[str], today: datetime) -> Days:
    month = _month_number(match["month"])
    return _month(today.year - (month >= today.month), month)


def _months(match: Match[str], today: datetime) -> Days:
    """Read 'August and November 2023', 'from August to November'."""
    first, last = _month_number(match["first"]), _month_number(match["month"])
    since, until = _dated(match, today)
    return since.replace(year=since.year - (first > last), month=first), until


def _holiday(match: Match[str], today: datetime) -> Days:
    month, day, days = next(when for name, when in HOLIDAYS.items() if name in match["holiday"].lower())
    year = int(match["year"]) if match["year"] else today.year
    if not match["year"] and datetime(year, month, day, tzinfo=UTC) > today:
        year -= 1
    since = datetime(year, month, day, tzinfo=UTC)
    return since, since + timedelta(days=days)


def _season(match: Match[str], today: datetime) -> Days:
    month = SEASONS[match["season"].lower()]
    year = match.groupdict().get("year")
    return _month(int(year) if year else today.year - (month + 2 >= today.month), month, 3)


def _last_weekday(match: Match[str], today: datetime) -> Days:
    back = (today.weekday() - _weekday(match["weekday"])) % 7
    return _day(today - timedelta(days=back or 7))


def _weekend(today: datetime, weeks: int) -> Days:
    saturday = today - timedelta(days=today.weekday() - 5 + 7 * weeks)
    return saturday, saturday + timedelta(days=2)


def _lately(match: Match[str], today: datetime) -> Days:
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[_unit(match["unit"])] * _number(match["n"] or "one")
    return today - timedelta(days=days), today + timedelta(days=1)


def _ago(match: Match[str], today: datetime) -> Days:
    return _back(today, _number(match["n"]), _unit(match["unit"]))


def _back_by(n: int) -> Reading:
    return lambda match, today: _back(today, n, _unit(match["unit"]))


def _days_back(n: int) -> Reading:
    return lambda _, today: _back(today, n, "day")


def _of_year(match: Match[str], _: datetime) -> Days:
    return _year(int(match["year"]))


def _chinese_date(match: Match[str], today: datetime) -> Days:
    return _dated(match, today) if match["month"] else _of_year(match, today)


def _chinese_year(match: Match[str], today: datetime) -> Days:
    year = today.year - CHINESE_YEARS[match["which"]]
    return _month(year, _month_number(match["month"])) if match["month"] else _year(year)


def _chinese_weekday(match: Match[str], today: datetime) -> Days:
    monday = today - timedelta(days=today.weekday() + 7 * match["which"].count("上"))
    return _day(monday + timedelta(days=_weekday(match["weekday"])))


ENGLISH: list[tuple[str, Reading]] = [
    (r"\b(?P<year>(?:19|20)\d\d)[-/.](?P<month>[01]?\d)[-/.](?P<day>[0-3]?\d)\b", _dated),
    (rf"\b{D}(?: of)? {M},? {Y}\b", _dated),
    (rf"\b{M} {D},? {Y}\b", _dated),
    (rf"\b{M.replace('month', 'first')} (?:and|to|until|through|till) {M},? {Y}\b", _months),
    (rf"\b(?:between|from) {M.replace('month', 'first')} (?:and|to|until|through|till) {M}", _months),
    (rf"\b{M}(?: of)?,? {Y}\b", _dated),
    (rf"\b{D}(?: of)? {M}", _dated),
    (rf"\b{M} {D}\b(?! ?(?:am|pm|:))", _dated),
    (rf"\blast {M}", _last_month_named),
    (rf"\b(?:in|during|since|of|this|by|until|early|late|mid)[ -]{M}", _dated),
    (rf"\b{SEASON}(?: of)?,? {Y}\b", _season),
    (rf"\b(?:last|this past) {SEASON}\b", _season),
    (rf"(?P<holiday>{'|'.join(HOLIDAYS)})(?:'s)?(?: eve| day)?(?:(?: of)? {Y})?", _holiday),
    (rf"\b(?:in|during|since|of|year) {Y}\b", _of_year),
    (r"\bday before yesterday\b", _days_back(2)),
    (r"\b(?:yesterday|last night)\b", _days_back(1)),
    (r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b", _days_back(0)),
    (rf"\b{N} {UNIT} (?:ago|back)\b", _ago),
    (rf"\b(?:in|over|during|for|within) the (?:last|past) (?:{N} )?{UNIT}\b", _lately),
    (rf"\b(?:last|past) {N} {UNIT}\b", _lately),
    (r"\b(?:last|this past) weekend\b", lambda _, today: _weekend(today, 1)),
    (r"\bthis weekend\b", lambda _, today: _weekend(today, 0)),
    (rf"\blast {UNIT}\b", _back_by(1)),
    (rf"\bthis {UNIT}\b", _back_by(0)),
    (rf"\b(?:last|on|this past) {WEEKDAY}\b", _last_weekday),
]
IN_CHINESE: list[tuple[str, Reading]] = [
    (rf"{Y}年(?:{C_MONTH}(?:{C_DAY})?)?", _chinese_date),
    (rf"(?P<which>[今去前])年的?(?:{C_MONTH})?", _chinese_year),
    (rf"{C_MONTH}{C_DAY}", _dated),
    (rf"{C_N}{C_UNIT}(?:之|以)?前", _ago),
    (rf"(?:最近|过去|近){C_N}{C_UNIT}", _lately),
    (r"大前[天日]", _days_back(3)),
    (r"前[天日]", _days_back(2)),
    (r"昨[天日晚夜]", _days_back(1)),
    (r"今[天日晚早]", _days_back(0)),
    (r"上个?周末", lambda _, today: _weekend(today, 1)),
    (r"这?个?周末", lambda _, today: _weekend(today, 0)),
    (rf"(?P<which>上上|上|这|本)个?{C_WEEKDAY}", _chinese_weekday),
    (rf"上上{C_PERIOD}", _back_by(2)),
    (rf"上{C_PERIOD}", _back_by(1)),
    (rf"[这本]{C_PERIOD}", _back_by(0)),
    (C_WEEKDAY, _last_weekday),
    (rf"(?<![\d个]){C_MONTH}", _dated),
]
READINGS = [(re.compile(pattern, re.IGNORECASE), reading) for pattern, reading in (*ENGLISH, *IN_CHINESE)]
"""Tried in this order; words that one pattern has read are not read by later ones."""
