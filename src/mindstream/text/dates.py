"""Find the times that a question names: 'last May', 'three days ago', '7 May 2023', '三天前', '去年五月'. No model is
called.

Days are in UTC. A month without a year, or a weekday, is the last one that has begun.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from re import Match

from mindstream.caches import remember
from mindstream.clock import Moment


@dataclass(frozen=True, slots=True)
class DateSpan:
    """A span of time; `until` is excluded."""

    since: Moment
    until: Moment


Days = tuple[datetime, datetime]

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
"""Month, first day, and number of days. Thanksgiving, a Thursday, covers all days on which it can be."""
CHINESE = "零一二三四五六七八九"
CHINESE_WEEKDAYS = "一二三四五六日天"
CHINESE_UNITS = {"天": "day", "日": "day", "星期": "week", "礼拜": "week", "周": "week", "月": "month", "年": "year"}
CHINESE_YEARS = {"今": 0, "去": 1, "前": 2}

PARTS = {
    "months": "|".join(MONTHS),
    "weekdays": "|".join(WEEKDAYS),
    "numbers": "|".join(NUMBERS[1:]),
    "seasons": "|".join(SEASONS),
    "holidays": "|".join(HOLIDAYS),
}
"""Named parts of patterns: `<name>` in a pattern is replaced by the part. The table below adds others."""
for _line in r"""
D         (?P<day>[0-3]?\d)(?:st|nd|rd|th)?
M         (?P<month><names>)\.?(?!\w)
FIRST     (?P<first><names>)\.?(?!\w)
names     jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|<autumn>
autumn    oct(?:ober)?|nov(?:ember)?|dec(?:ember)?
Y         (?P<year>(?:19|20)\d\d)
N         (?P<n>\d{1,6}|<numbers>|a couple of|a few|an?)
UNIT      (?P<unit>day|week|month|year)s?
WEEKDAY   (?P<weekday><weekdays>)
SEASON    (?P<season><seasons>)
to        (?:and|to|until|through|till)
数        (?P<n>(?<!\d)\d{1,6}|[零一二三四五六七八九十两几]{1,3})
单位      (?P<unit>天|日|个?星期|个?礼拜|周|个?月|年)
周期      (?P<unit>周|个?星期|个?礼拜|个?月)
星期      (?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])
月        (?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])月
日        (?P<day>[0-3]?\d)[日号]
""".strip().splitlines():
    PARTS[_line.split()[0]] = _line.split(maxsplit=1)[1]


def build_pattern(source: str) -> re.Pattern[str]:
    """Compile a pattern in which each `<name>` stands for the part of this name (PARTS); case is ignored."""
    while named := re.search(rf"(?<!\?P)<({'|'.join(PARTS)})>", source):
        source = source.replace(named[0], PARTS[named[1]])
    return re.compile(source, re.IGNORECASE)


STRETCH = build_pattern(r"(?:<N> )?(?P<unit>day|week|weekend|month|year)s? (?P<way>before|after)(?: the| on| in)* ?$")
HINT = build_pattern(
    r"\d|[年月日天周昨今]|星期|礼拜|<holidays>|\b(?:<months>|<seasons>|to(?:day|night)|yesterday|night|morning|evening)"
    r"|\b(?:after|fore)noon|(?:day|week|weekend|month|year)s?\b"
)
"""A quick test: in a text in which this pattern does not match, READINGS find no time."""
MAX_BEFORE = 60
"""Words that extend a time, such as 'a couple of weekends before the', are searched for in this number of characters
before the time."""


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
    for pattern, reading, n in _readings():
        for match in pattern.finditer(rest):
            with contextlib.suppress(ValueError, OverflowError):  # 31 February, or a year outside the calendar
                before = rest[max(0, match.start() - MAX_BEFORE) : match.start()]
                found[match.start()] = _stretched(reading(match, today, n), before)
                rest = rest[: match.start()] + "\0" * len(match[0]) + rest[match.end() :]
    named = dict.fromkeys(days for _, days in sorted(found.items()))
    return tuple(DateSpan(since.timestamp(), until.timestamp()) for since, until in named), rest.replace("\0", " ")


def _stretched(days: Days, before: str) -> Days:
    """Extend a span by a time before or after it, if the words before the span (`before`) name such a time.

    Example: 'two weeks before 3 May' gives 3 May and the two weeks before.
    """
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
    """Return the day, week, month or year n units ago.

    Two weeks or more are usually meant loosely, so the week returned is centred on the day n weeks ago; 'last week' is
    a calendar week.
    """
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


def _dated(match: Match[str], today: datetime, _: int) -> Days:
    """Return the day or the whole month that a match names. Without a year, it is the latest such day or month that has
    begun."""
    parts = match.groupdict()
    month = _month_number(parts["month"])
    year = int(parts["year"]) if parts.get("year") else today.year
    day = int(parts["day"]) if parts.get("day") else None
    if not parts.get("year") and datetime(year, month, day or 1, tzinfo=UTC) > today:
        year -= 1
    return _day(datetime(year, month, day, tzinfo=UTC)) if day else _month(year, month)


def _last_month_named(match: Match[str], today: datetime, _: int) -> Days:
    month = _month_number(match["month"])
    return _month(today.year - (month >= today.month), month)


def _months(match: Match[str], today: datetime, _: int) -> Days:
    """Read 'August and November 2023', 'from August to November'."""
    first, last = _month_number(match["first"]), _month_number(match["month"])
    since, until = _dated(match, today, 0)
    return since.replace(year=since.year - (first > last), month=first), until


def _holiday(match: Match[str], today: datetime, _: int) -> Days:
    month, day, days = next(when for name, when in HOLIDAYS.items() if name in match["holiday"].lower())
    year = int(match["year"]) if match["year"] else today.year
    if not match["year"] and datetime(year, month, day, tzinfo=UTC) > today:
        year -= 1
    since = datetime(year, month, day, tzinfo=UTC)
    return since, since + timedelta(days=days)


def _season(match: Match[str], today: datetime, _: int) -> Days:
    month = SEASONS[match["season"].lower()]
    year = match.groupdict().get("year")
    return _month(int(year) if year else today.year - (month + 2 >= today.month), month, 3)


def _last_weekday(match: Match[str], today: datetime, _: int) -> Days:
    back = (today.weekday() - _weekday(match["weekday"])) % 7
    return _day(today - timedelta(days=back or 7))


def _weekend(_: Match[str], today: datetime, weeks: int) -> Days:
    saturday = today - timedelta(days=today.weekday() - 5 + 7 * weeks)
    return saturday, saturday + timedelta(days=2)


def _lately(match: Match[str], today: datetime, _: int) -> Days:
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[_unit(match["unit"])] * _number(match["n"] or "one")
    return today - timedelta(days=days), today + timedelta(days=1)


def _ago(match: Match[str], today: datetime, n: int) -> Days:
    """Read 'three days ago'. If the text contains no number, as 'last week', the number is `n`."""
    parts = match.groupdict()
    return _back(today, _number(parts["n"]) if parts.get("n") else n, _unit(parts.get("unit") or "day"))


def _of_year(match: Match[str], _: datetime, __: int) -> Days:
    return _year(int(match["year"]))


def _chinese_date(match: Match[str], today: datetime, _: int) -> Days:
    return _dated(match, today, 0) if match["month"] else _of_year(match, today, 0)


def _chinese_year(match: Match[str], today: datetime, _: int) -> Days:
    year = today.year - CHINESE_YEARS[match["which"]]
    return _month(year, _month_number(match["month"])) if match["month"] else _year(year)


def _chinese_weekday(match: Match[str], today: datetime, _: int) -> Days:
    monday = today - timedelta(days=today.weekday() + 7 * match["which"].count("上"))
    return _day(monday + timedelta(days=_weekday(match["weekday"])))


Read = Callable[[Match[str], datetime, int], Days]
_FUNCTIONS: tuple[Read, ...] = (
    *(_dated, _months, _last_month_named, _season, _holiday, _of_year, _ago, _lately, _weekend, _last_weekday),
    *(_chinese_date, _chinese_year, _chinese_weekday),
)
_NAMED = {each.__name__: each for each in _FUNCTIONS}
READINGS = r"""
dated 0            \b(?P<year>(?:19|20)\d\d)[-/.](?P<month>[01]?\d)[-/.](?P<day>[0-3]?\d)\b
dated 0            \b<D>(?: of)? <M>,? <Y>\b
dated 0            \b<M> <D>,? <Y>\b
months 0           \b<FIRST> <to> <M>,? <Y>\b
months 0           \b(?:between|from) <FIRST> <to> <M>
dated 0            \b<M>(?: of)?,? <Y>\b
dated 0            \b<D>(?: of)? <M>
dated 0            \b<M> <D>\b(?! ?(?:am|pm|:))
last_month_named 0 \blast <M>
dated 0            \b(?:in|during|since|of|this|by|until|early|late|mid)[ -]<M>
season 0           \b<SEASON>(?: of)?,? <Y>\b
season 0           \b(?:last|this past) <SEASON>\b
holiday 0          (?P<holiday><holidays>)(?:'s)?(?: eve| day)?(?:(?: of)? <Y>)?
of_year 0          \b(?:in|during|since|of|year) <Y>\b
ago 2              \bday before yesterday\b
ago 1              \b(?:yesterday|last night)\b
ago 0              \b(?:today|tonight|this (?:morning|afternoon|evening))\b
ago 0              \b<N> <UNIT> (?:ago|back)\b
lately 0           \b(?:in|over|during|for|within) the (?:last|past) (?:<N> )?<UNIT>\b
lately 0           \b(?:last|past) <N> <UNIT>\b
weekend 1          \b(?:last|this past) weekend\b
weekend 0          \bthis weekend\b
ago 1              \blast <UNIT>\b
ago 0              \bthis <UNIT>\b
last_weekday 0     \b(?:last|on|this past) <WEEKDAY>\b
chinese_date 0     <Y>年(?:<月>(?:<日>)?)?
chinese_year 0     (?P<which>[今去前])年的?(?:<月>)?
dated 0            <月><日>
ago 0              <数><单位>(?:之|以)?前
lately 0           (?:最近|过去|近)<数><单位>
ago 3              大前[天日]
ago 2              前[天日]
ago 1              昨[天日晚夜]
ago 0              今[天日晚早]
weekend 1          上个?周末
weekend 0          这?个?周末
chinese_weekday 0  (?P<which>上上|上|这|本)个?<星期>
ago 2              上上<周期>
ago 1              上<周期>
ago 0              [这本]<周期>
last_weekday 0     <星期>
dated 0            (?<![\d个])<月>
"""
"""The readings, one per line, in the order in which they are tried. A line has the name of a function, the last
argument of this function, and a pattern. Words that one pattern has read are not read by later patterns."""


@lru_cache(1)
def _readings() -> list[tuple[re.Pattern[str], Read, int]]:
    """Return the compiled READINGS; compiling them takes 9 ms, and most commands read no dates."""
    lines = (line.split(maxsplit=2) for line in READINGS.strip().splitlines())
    return [(build_pattern(source), _NAMED[f"_{name}"], int(n)) for name, n, source in lines]
