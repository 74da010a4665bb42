"""What somebody will be doing at a time, in an interview: from the day's plan, what was agreed on, or its habits."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import NamedTuple

from mindstream.town.prompts.answer_interview import AnswerInterview
from mindstream.town.rules.worth import sentences

CLOCK = re.compile(
    r"\b(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s?(?P<half>[ap])\.?m\b|\b(?P<h>[01]?\d|2[0-3]):(?P<m>\d\d)\b"
)
SPAN = re.compile(
    r"\b(?:from|between) (?:about |around )?(\d{1,2}(?::\d\d)?\s?(?:[ap]m)?) (?:to|until|till|and|-) "
    r"(?:about |around )?(\d{1,2}(?::\d\d)?\s?[ap]m)\b",
    re.IGNORECASE,
)
BED = re.compile(r"\bbed\w* (?:at |around |about )*(\d{1,2}(?::\d\d)?\s?[ap]m|midnight)", re.IGNORECASE)
UP = re.compile(r"\b(?:wakes?|awakes?|gets?)(?: up)? (?:at |around |about )*(\d{1,2}(?::\d\d)?\s?[ap]m)", re.IGNORECASE)
DAY = 24 * 60


class AskedTime(NamedTuple):
    """A minute of today or tomorrow."""

    minute: int
    tomorrow: bool


def find_clock(text: str) -> AskedTime | None:
    """Return the time that a question names; None: it names none."""
    found = CLOCK.search(text[:1_000])
    if found is not None:
        return AskedTime(_minute(found), "tomorrow" in text.lower())
    for word, minute in (("noon", 720), ("midnight", 0)):
        if word in text.lower():
            return AskedTime(minute, "tomorrow" in text.lower())
    return None


def _minute(found: re.Match[str]) -> int:
    if found["h"]:
        return int(found["h"]) * 60 + int(found["m"])
    return int(found["hour"]) % 12 * 60 + int(found["minute"] or 0) + 720 * (found["half"].lower() == "p")


def plan_at(ask: AnswerInterview, at: AskedTime, question: str) -> str:
    """Say what is done then; "" where nothing says so."""
    if not at.tomorrow and (what := _by_day(ask, at.minute)):
        return f"I will be {what}." if "will" in question else f"{what[:1].upper()}{what[1:]}."
    if agreed := _agreed(ask, at):
        return agreed
    return _by_habit(ask, at.minute) or (
        f"The same as today, I suppose: {what}." if (what := _by_day(ask, at.minute)) else ""
    )


def _by_day(ask: AnswerInterview, minute: int) -> str:
    """Return what the day's plan says for a minute."""
    found = ""
    for line in ask.day:
        if int(line[:2]) * 60 + int(line[3:5]) <= minute:
            found = line[6:]
    return found


def _agreed(ask: AnswerInterview, at: AskedTime) -> str:
    """Return what a memory says of that day at that time."""
    try:
        today = datetime.strptime(", ".join(ask.when.split(", ")[1:3]), "%B %d, %Y")
    except ValueError:
        return ""
    day = today + timedelta(days=at.tomorrow)
    named = re.compile(rf"\b{day:%B} {day.day}(?:st|nd|rd|th)?\b|\b{day:%A}\b")
    for memory in ask.memories:
        for sentence in sentences(memory.partition(") ")[2] if memory.startswith("(") else memory):
            if named.search(sentence) and _covers(sentence, at.minute) and _is_of(ask.who, sentence):
                return sentence.replace(f"{ask.who} will", "I will").replace(f"{ask.who} is", "I am")
    return ""


def _is_of(who: str, sentence: str) -> bool:
    return sentence.startswith(f"{who} ") and not sentence.startswith(f"{who} talked")


def _by_habit(ask: AnswerInterview, minute: int) -> str:
    """Return what somebody does at that time on most days, by who it is."""
    said = [each for line in ask.identity.splitlines() for each in sentences(line)]
    bed = next((_read(found[1]) for each in said if (found := BED.search(each))), None)
    up = next((_read(found[1]) for each in said if (found := UP.search(each))), None)
    if bed is not None and up is not None and _within(minute, bed, up):
        return "I will be sleeping."
    return next((f"On most days this holds: {each}" for each in said if _covers(each, minute)), "")


def _covers(sentence: str, minute: int) -> bool:
    """Tell whether a sentence names a stretch of time with that minute in it."""
    for start, end in SPAN.findall(sentence[:1_000]):
        until = _read(end)
        since = _read(start if start.lower().endswith("m") else start + end[-2:])
        if _within(minute, since if since < until else (since + 720) % DAY, until):
            return True
    return False


def _read(clock: str) -> int:
    if clock.lower() == "midnight":
        return 0
    found = CLOCK.search(clock if ":" in clock or clock.lower().endswith("m") else f"{clock}:00")
    return _minute(found) if found else 0


def _within(minute: int, start: int, end: int) -> bool:
    return start <= minute < end if start < end else minute >= start or minute < end
