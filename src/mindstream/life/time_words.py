"""The words that name times, English and Chinese, as tokens of one grammar (life/time_grammar)."""

from __future__ import annotations

import re
from collections.abc import Callable
from re import Match
from typing import NamedTuple

from mindstream.text.dates import CHINESE_WEEKDAYS, MONTHS, WEEKDAYS
from mindstream.text.numerals import ONES, TENS, in_digits


class Token(NamedTuple):
    """A word or a few that mean one thing for a time; `other`: anything else (1: what parts sentences).
    `values` are what it says in numbers."""

    kind: str
    values: tuple[int, ...]
    start: int
    end: int


class DayPart(NamedTuple):
    """A part of the day: its hour where no other is said, and between which hours one lies that is said."""

    hour: int
    since: int
    until: int


UNITS = ("second", "minute", "hour", "day", "week", "month", "year")
PARTS = {
    "early morning|凌晨|清晨": DayPart(5, 0, 8),
    "mornings?|早上|早晨|上午": DayPart(8, 0, 12),
    "noon|midday|lunchtime|中午|正午": DayPart(12, 11, 14),
    "afternoons?|下午|午后": DayPart(15, 12, 18),
    "evenings?|傍晚|晚间": DayPart(19, 16, 24),
    "nights?|tonight|bedtime|晚上|夜里|夜晚|夜间": DayPart(21, 18, 30),
    "midnight|午夜|半夜|零点(?!\\d)": DayPart(0, 0, 6),
    r"(?<=[每今明天])早|早(?=\s*[\d一二三四五六七八九十])": DayPart(8, 0, 12),
    r"(?<=[每今明天])晚|晚(?=\s*[\d一二三四五六七八九十])": DayPart(21, 18, 30),
    r"a\.?m\b\.?": DayPart(8, 0, 12),
    r"p\.?m\b\.?": DayPart(15, 12, 24),
}
DAY_PARTS = tuple(PARTS.values())

_WORDS = "|".join(sorted((*ONES, *TENS), key=len, reverse=True))
_NUMBER = rf"\d{{1,5}}(?!\d|[:：]\d)|\b(?:{_WORDS})(?:-(?:{_WORDS}))?\b|[零一二两三四五六七八九十百]+"
_FULL_STOP = r"[:：;；。\n—]"
_UNITS = (
    "seconds?|secs?|秒钟?", "minutes?|mins?|分钟?", "hours?|hrs?|个?(?:小时|钟头)|(?<=一刻)钟", "days?|天|日",
    "weeks?|周|个?(?:星期|礼拜)", "months?|个?月", "years?|年",
)  # fmt: skip
_UNIT = "|".join(rf"\b(?:{each.split('|', 1)[0]})\b" for each in _UNITS)
_MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"  # noqa: E501
_YEAR = r"(?:,? (\d{4})\b)?"
_WEEKDAY = r"\b(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)"
_WEEK = "(?:周|星期|礼拜)"
_JOIN = "[、，,和]"
_MORE = "[一二三四五六](?![点时个次十月年天])"
_ORDINALS = ("last", "first", "second", "third", "fourth", "fifth")
_ADVERBS = ("secondly", "minutely", "hourly", "daily", "weekly", "monthly", "yearly|annually")


def number_of(words: str) -> int:
    """Return a number that is written in digits or words."""
    return int(in_digits(words.lower()))


def _numbers(found: Match[str]) -> tuple[int, ...]:
    return tuple(number_of(group) for group in found.groups() if group)


def _clock(found: Match[str]) -> tuple[int, ...]:
    return (*_numbers(found), 0)[:2]


def _chinese_clock(found: Match[str]) -> tuple[int, ...]:
    quarters = {"半": 30, "一刻": 15, "三刻": 45}
    minutes = found[2] or ""
    return number_of(found[1]), quarters[minutes] if minutes in quarters else number_of(minutes) if minutes else 0


def _spoken_clock(found: Match[str]) -> tuple[int, ...]:
    minutes, hour = (30 if found[1].lower() == "half" else 15), number_of(found[3])
    return (hour, minutes) if found[2].lower() == "past" else ((hour - 1) % 24, 60 - minutes)


def _weekday(found: Match[str]) -> tuple[int, ...]:
    return (next(n for n, name in enumerate(WEEKDAYS) if name.startswith(found[0][:3].lower())),)


def _chinese_weekdays(found: Match[str]) -> tuple[int, ...]:
    return tuple(min(CHINESE_WEEKDAYS.index(sign), 6) for sign in found[1] if sign in CHINESE_WEEKDAYS)


def _month_first(found: Match[str]) -> tuple[int, ...]:
    year = (int(found[3]),) if found[3] else ()
    return *year, MONTHS.index(found[1][:3].lower()) + 1, int(found[2])


def _day_first(found: Match[str]) -> tuple[int, ...]:
    year = (int(found[3]),) if found[3] else ()
    return *year, MONTHS.index(found[2][:3].lower()) + 1, int(found[1])


def _ordinal(found: Match[str]) -> tuple[int, ...]:
    digits = found[0][:-2]
    return (int(digits) if digits.isdigit() else _ORDINALS.index(found[0].lower()) or -1,)


def _says(*values: int) -> Callable[[Match[str]], tuple[int, ...]]:
    return lambda _: values


LEXEMES: list[tuple[str, str, Callable[[Match[str]], tuple[int, ...]]]] = [
    ("date", r"(\d{4})[-/](\d\d?)[-/](\d\d?)(?!\d)|(\d{4})年(\d\d?)月(\d\d?)[日号]", _numbers),
    ("date", rf"({_NUMBER})月({_NUMBER})[日号]", _numbers),
    ("date", rf"\b({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])\b{_YEAR}", _month_first),
    ("date", rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b{_YEAR}", _day_first),
    ("clock", r"(?<!\d)(\d{1,2})[:：](\d\d)(?!\d)(?:点|\s?o'clock)?", _clock),
    ("clock", rf"({_NUMBER})\s?(?:点钟?|點|时(?!间))(半|[一三]刻|(?:{_NUMBER})(?=分))?分?整?", _chinese_clock),
    ("clock", rf"\b(?:at )?(?:a )?(half|quarter) (past|to) ({_NUMBER})", _spoken_clock),
    ("clock", rf"\b({_NUMBER})(?:\s?o'clock|(?=\s?[ap]\.?m\b))", _clock),
    ("clock", rf"\b(?:at|around|by)\s+({_NUMBER})(?!\s*(?:{_UNIT}|%|\.\d))(?![\w.]\w)", _clock),
    ("day", r"(?:the )?day after tomorrow\b|后天", _says(2)),
    ("day", r"大后天", _says(3)),
    ("day", r"\btomorrow\b|明天|明日|明(?=[早晚])", _says(1)),
    ("day", r"\btoday\b|今天|今日|今(?=[早晚])", _says(0)),
    *(
        ("part", rf"(?<![a-z])(?:{words})" if words[0] in "(" else rf"(?<![a-z])(?:{words})(?![a-z])", _says(number))
        for number, words in enumerate(PARTS)
    ),
    ("weekdays", rf"{_WEEKDAY}(?:day)?s\b(?<!tues)(?<!thurs)", _weekday),
    ("weekdays", r"\b(?:weekdays|work(?:ing )?days|business days)\b|个?工作日|平日", _says(0, 1, 2, 3, 4)),
    ("weekdays", r"\bweekends\b", _says(5, 6)),
    ("weekday", rf"{_WEEKDAY}(?:day)?\b", _weekday),
    ("weekday", r"\b(?:weekday|workday|working day|business day)\b", _says(0, 1, 2, 3, 4)),
    ("weekday", rf"\bweekend\b|个?{_WEEK}末", _says(5, 6)),
    ("weekday", rf"个?{_WEEK}([{CHINESE_WEEKDAYS}](?!次)(?:{_JOIN}?{_MORE})*(?:{_JOIN}[日天]\b)?)", _chinese_weekdays),
    ("every", r"\bevery other\b|每隔[一1]?(?=[天日周])", _says(2)),
    ("every", r"\b(?:every(?: single)?|each|once (?:an?|per|every|each)|per)\b|每[隔逢]?", _says(1)),
    *(("adverb", rf"\b(?:{words})\b", _says(number)) for number, words in enumerate(_ADVERBS)),
    ("ordinal", rf"\bsecond(?= (?:{_UNIT}|{_WEEKDAY}))|\b(?:first|third|fourth|fifth|last)\b(?! day)", _ordinal),
    ("ordinal", r"\b\d{1,2}(?:st|nd|rd|th)\b", _ordinal),
    ("ordinal", rf"({_NUMBER})[日号](?!线)", _numbers),
    ("ordinal", r"\blast day\b|最后[一1]天|月末|月底", _says(-1)),
    ("ordinal", r"\bfirst day\b", _says(1)),
    ("once", "[一1]次", _says()),
    ("fraction", r"\b(?:a )?quarter(?: of an?)?(?= (?:hour|year))|一刻(?=钟)", _says(15)),
    ("fraction", r"\bhalf(?: an?)?\b|\ba half\b|个?半(?=个?[小钟天年])个?", _says(30)),
    ("number", rf"\ban?(?= (?:{_UNIT}))", _says(1)),
    ("number", r"\ba couple of\b", _says(2)),
    ("number", rf"({_NUMBER})", _numbers),
    *(
        ("unit", rf"(?<![a-z])(?:{words})(?![a-z])", _says(number)) for number, words in enumerate(_UNITS)
    ),
    ("glue", r"\bin the\b|\b(?:on|at|of|the)\b|的|在|于", _says()),
    ("ahead", r"\bin\b", _says()),
    ("ahead", r"\b(?:from now|later)\b|[以之]?后", _says()),
    ("next", r"\bnext\b", _says(0)),
    ("next", r"下下个?", _says(2)),
    ("next", r"下个?", _says(1)),
    ("glue", r"\bthis\b|这个?|本", _says()),
    ("range", r"\b(?:to|through|thru)\b|[-–~到至]", _says()),
    ("and", r"\band\b|[&和、及与]", _says()),
    ("comma", r"[,，]", _says()),
    ("bound", r"\b(?:until|till|between|except|unless|starting|beginning|after|before|when)\b", _says()),
    ("bound", rf"\bfrom(?= (?:{_NUMBER}|{_WEEKDAY}|{_MONTH}|next|tomorrow|today))", _says()),
    ("bound", rf"直到|除了|[以之]前|从(?=[\d今明下早晚周星{CHINESE_WEEKDAYS}])", _says()),
    ("other", _FULL_STOP, _says(1)),
]  # fmt: skip
_COMPILED = [(kind, re.compile(pattern, re.IGNORECASE), read) for kind, pattern, read in LEXEMES]
_OTHER = re.compile(r"[a-z']+|\S", re.IGNORECASE)
_SPACE = re.compile(r"[^\S\n]*")


def tokens_of(text: str) -> list[Token]:
    """Read a text as tokens, in its order."""
    found: list[Token] = []
    at = _end(_SPACE, text, 0)
    while at < len(text):
        token = _token(text, at)
        found.append(token)
        at = _end(_SPACE, text, token.end)
    return found


def _token(text: str, at: int) -> Token:
    for kind, pattern, read in _COMPILED:
        if found := pattern.match(text, at):
            return Token(kind, read(found), at, found.end())
    return Token("other", (), at, max(at + 1, _end(_OTHER, text, at)))


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
