"""What somebody will be doing at a time, in an interview: from the day's plan, what was agreed on, or its habits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from mindstream.text.words import stem, terms
from mindstream.town.prompts.answer_interview import AnswerInterview
from mindstream.town.rules.interview_memory import Said, now_of, own, quoted, remembered
from mindstream.town.rules.interview_self import present
from mindstream.town.rules.question import CLOCK, AskedSpan, AskedTime, Question, day_of, minute_said
from mindstream.town.rules.times import names_time
from mindstream.town.sentences import sentences
from mindstream.town.world.hours import DAY_MINUTES, minute_of

SPAN = re.compile(
    r"\b(?:from|between) (?:about |around )?(\d{1,2}(?::\d\d)?\s?(?:[ap]m)?) (?:to|until|till|and|-) "
    r"(?:about |around )?(\d{1,2}(?::\d\d)?\s?[ap]m)\b",
    re.IGNORECASE,
)
BED = re.compile(r"\bbed\w* (?:at |around |about )*(\d{1,2}(?::\d\d)?\s?[ap]m|midnight)", re.IGNORECASE)
UP = re.compile(r"\b(?:wakes?|awakes?|gets?)(?: up)? (?:at |around |about )*(\d{1,2}(?::\d\d)?\s?[ap]m)", re.IGNORECASE)


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
        if minute_of(line[:5]) <= minute:
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
    said = [each.text for each in remembered(ask) if not each.at and not each.by]
    bed = next((_read(found[1]) for each in said if (found := BED.search(each))), None)
    up = next((_read(found[1]) for each in said if (found := UP.search(each))), None)
    if bed is not None and up is not None and _within(minute, bed, up):
        return "I will be sleeping."
    return next((f"On most days this holds: {own(ask.who, each)}" for each in said if _covers(each, minute)), "")


def _covers(sentence: str, minute: int) -> bool:
    """Tell whether a sentence names a stretch of time with that minute in it."""
    for start, end in SPAN.findall(sentence[:1_000]):
        until = _read(end)
        since = _read(start if start.lower().endswith("m") else start + end[-2:])
        if _within(minute, since if since < until else (since + 720) % DAY_MINUTES, until):
            return True
    return False


def _read(clock: str) -> int:
    if clock.lower() == "midnight":
        return 0
    found = CLOCK.search(clock if ":" in clock or clock.lower().endswith("m") else f"{clock}:00")
    return minute_said(found) if found else 0


def _within(minute: int, start: int, end: int) -> bool:
    return start <= minute < end if start < end else minute >= start or minute < end


ABOUT_DOING = re.compile(
    r"\b(?:do|doing|done|plans?|planned|planning|up to|been|happening|happened|go(?:ing)? on)\b", re.IGNORECASE
)
OF_DOING = frozenset(map(stem, ("do", "plan", "happening", "up", "spend", "gonna", "rest", "while")))


def activity(ask: AnswerInterview, question: Question, span: AskedSpan) -> str:
    """Say what one does at the time that is meant; "" where something else is asked."""
    is_asked = question.you and question.focus in ("what", "how") and ABOUT_DOING.search(question.text)
    if not is_asked or question.about - OF_DOING or ask.named:
        return ""
    if not (question.past or question.future or span.is_named) and re.search(r"\bdo you do\b", question.text):
        return ""  # that asks for a profession
    if (
        (question.future and span.days == 0)
        or question.past
        or span.days
        or (span.is_named and span.end - span.start < DAY_MINUTES)
    ):
        return _in_span(ask, span) or ("I do not remember." if question.past else "I do not know yet.")
    return present(ask)


def _in_span(ask: AnswerInterview, span: AskedSpan) -> str:
    today, _ = now_of(ask)
    if span.days == 0:
        lines = _lines(ask.day, span.start, span.end)
        return f"Today: {'; '.join(lines)}." if lines else ""
    day = day_of(today, span)
    if span.days < 0:
        plan = _plan_of(ask, f"{day:%A %B} {day.day}, {day.year}")
        lines = _lines(plan, span.start, span.end)
        return (
            f"My plan for {'yesterday' if span.days == -1 else f'{day:%A}'} was: {'; '.join(lines)}." if lines else ""
        )
    for hour in range(span.start, span.end, 60):
        if agreed := _agreed(ask, AskedTime(hour, span.days == 1)):
            return agreed
    middle = (max(span.start, 8 * 60) + min(span.end, 20 * 60)) // 2
    return plan_at(ask, AskedTime(middle, tomorrow=True), "will")


def _plan_of(ask: AnswerInterview, day: str) -> list[str]:
    """Return what was planned for a day, as it is remembered, `HH:MM what`."""
    said = next((each for each in ask.memories if f"{ask.who}'s plan for {day}" in each), "")
    return [each.strip() for each in re.findall(r"\b\d\d:\d\d [^;]+(?=;|\.$)", said.partition(f"plan for {day}")[2])]


def _lines(day: Sequence[str], start: int, end: int) -> list[str]:
    """Return what a day's plan says of a part of it, in broad strokes."""
    found: dict[str, str] = {}
    for line, after in zip(day, (*day[1:], "24:00"), strict=False):
        if minute_of(line[:5]) < end and minute_of(after[:5]) > start and not line[6:].startswith("sleep"):
            what = line[6:].partition(" (")[0].rstrip(".")
            found.setdefault(what, f"{line[:5]} {what}")
    return list(found.values())[:10]


def day_sentences(ask: AnswerInterview, question: Question) -> list[Said]:
    """Return the day's plan in sentences about oneself: asked of what was, until now; of what will be, from now."""
    if not question.you or ask.named:
        return []
    _, now = now_of(ask)
    return [
        Said(f"At {line[:5]} {ask.who} {verb} {line[6:].partition(' (')[0]}.", "")
        for line in ask.day
        for verb in (("was" if question.past else "is") if minute_of(line[:5]) <= now else "will be",)
        if (minute_of(line[:5]) <= now or not question.past) and (minute_of(line[:5]) > now or not question.future)
    ]


def why_here(ask: AnswerInterview) -> str:
    """Say why one does what one does: it was planned, and what one knows of it."""
    _, minute = now_of(ask)
    planned = _by_day(ask, minute).partition(" (")[0]
    if not planned:
        return ""
    words = frozenset(terms(planned)) - OF_DOING
    known = [
        each
        for each in remembered(ask)
        if names_time(each.text) and len(words & set(terms(each.text))) > len(words) / 2
    ]
    told = next((quoted(ask, each) for each in known if "'s plan for " not in each.text), "")
    return f"I had planned it: {planned}. {told}".strip()
