"""Answers out of what R gave: the line that tells it, with its day; what only a dream holds is called a dream."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mindstream.clock import Moment, parse_iso
from mindstream.life.rules.phrases import CHINESE, ENGLISH, phrase
from mindstream.life.rules.quoting import DREAM, Passage, Quote, find_quotes, read_passages
from mindstream.life.rules.reading import READ
from mindstream.text.dates import spans

PERIODS = (
    (re.compile(r"\bmonths?\b|月", re.IGNORECASE), 30),
    (re.compile(r"\bweeks?\b|周|星期|礼拜", re.IGNORECASE), 6),
    (re.compile(r"\bdays?\b|[今一]天", re.IGNORECASE), 1),
)
CUT = "characters cut) …"
FOLD = re.compile(r"Turns \d+ to \d+:|第\d+到\d+轮：")
LEARNED = tuple(words["learned"].partition("{}")[0] for words in (ENGLISH, CHINESE))
DAY = re.compile(r"^\d{4}-\d\d-\d\d, ")
DATED = re.compile(
    r"\b(?:on|in|at|the|last|this|past|next|ago|days?|weeks?|months?|years?|yesterday|today|\d{1,4}(?:st|nd|rd|th)?"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october"
    r"|november|december)\b|(?:这|本|上|过去)?.?(?:周|星期|月|天|日)[一二三四五六日天]?|昨天|今天|\d+[年月日号]",
    re.IGNORECASE,
)


def answer_from_memory(question: str, recalled: str, now: Moment, language: str) -> str:
    """Return what answers a question among the lines of memory; "" where none does."""
    question = question[:READ]
    passages = of_time(question, read_memory(recalled), now)
    asked = DATED.sub(" ", question) if spans(question, now) else question
    for dreamt in (False, True):
        among = [each for each in passages if each.place.endswith(DREAM) is dreamt]
        if quotes := find_quotes(asked, "", among, 2):
            found = ((_source(each), each.place.removesuffix(DREAM), _bare(each.words)) for each in quotes)
            return "\n".join(phrase(source, language, day, words) for source, day, words in found)
    return ""


def _bare(words: str) -> str:
    """Return a line of memory without what it begins with for memory's sake: its day, that it was looked up."""
    words = DAY.sub("", words)
    return next((words.removeprefix(lead) for lead in LEARNED if words.startswith(lead)), words)


def _source(quote: Quote) -> str:
    """Return how it is said where a line of memory comes from: a dream, what was looked up, or the user."""
    learned = quote.words.startswith(LEARNED)
    return "faded" if quote.place.endswith(DREAM) else "looked_up" if learned else "told"


def review(about: str, recalled: Sequence[str], now: Moment, language: str) -> str:
    """Return what memory holds of something, day by day; dreams aside."""
    passages = dict.fromkeys(each for text in recalled for each in read_memory(text) if not each.place.endswith(DREAM))
    lines = [f"{each.place}: {DAY.sub('', each.text)}" for each in of_time(about, list(passages), now)]
    return phrase("review", language, "\n" + "\n".join(sorted(lines))) if lines else phrase("empty_review", language)


def period(about: str, now: Moment, language: str) -> str:
    """Return in plain words which days a review is of, where it says so loosely: my week, 这一周; else ""."""
    if spans(about, now):
        return ""
    days = next((days for pattern, days in PERIODS if pattern.search(about)), 0)
    return phrase("period", language, days) if days else ""


def read_memory(text: str) -> list[Passage]:
    """Read the lines that R gave, those that are whole; what folds say of turns is no memory of anything."""
    return [each for each in read_passages(text) if not each.name and not (CUT in each.text or FOLD.match(each.text))]


def of_time(words: str, passages: Sequence[Passage], now: Moment) -> list[Passage]:
    """Return what was told in the time that words name, or says it is of that time; all where they name none."""
    named = spans(words, now)
    if not named:
        return list(passages)
    days = [(each, parse_iso(each.place.removesuffix(DREAM))) for each in passages]
    return [
        each for each, day in days
        if any(span.since <= day < span.until for span in named)
        or any(own.since < span.until and span.since < own.until for own in spans(each.text, day) for span in named)
    ]  # fmt: skip
