"""What somebody who is asked knows of others: who they are, what would please them, when they met."""

from __future__ import annotations

import re
from datetime import datetime

from mindstream.text.words import terms
from mindstream.town.prompts.answer_interview import AnswerInterview
from mindstream.town.rules.interview_memory import (
    TALKED,
    Said,
    first,
    now_of,
    own,
    relations,
    remembered,
)  # fmt: skip
from mindstream.town.rules.question import AskedSpan, Question, day_of
from mindstream.town.rules.times import names_time

OF_ITSELF = ("I am a ", "I am an ", "I am the ", "I like ")
SIGHT = re.compile(r"[A-Z][\w'-]{1,20}(?: [A-Z][\w'-]{1,20}){1,3} is [a-z]{2,20}ing\b")
SEES = re.compile(r"\b(?:see|saw|seen|meet|met)\b", re.IGNORECASE)
TALKS = re.compile(r"\b(?:talk\w*|spe?ak\w*|spoke|spoken|chat\w*|conversations?)\b", re.IGNORECASE)


def of(ask: AnswerInterview, name: str) -> list[str]:
    """Return what is known of somebody, what says most first: what one is, then what it said of itself, then sights."""
    related = [f"{other} is my {what}." for other, what in relations(ask) if other == name]
    said = [each for each in remembered(ask) if name in each.text or each.by == name]
    told = [each.text for each in said if each.text.startswith(f"{name} is ")]
    itself = [f"{name} said: {each.text}" for each in said if each.by == name and each.text.startswith(OF_ITSELF)]
    rest = [each.text for each in said if not each.by]
    rest = [each for each in rest if each not in told and " talked with " not in each and "'s plan for " not in each]
    told.sort(key=lambda text: ("(" in text, not re.search(r" is (?:an?|the|my|\w+'s) ", text[: len(name) + 24])))
    rest.sort(key=lambda text: not text.startswith(name))
    known = sorted((*told, *itself, *rest), key=is_sight)
    return first([*related, *(own(ask.who, each) for each in known)], 6)


def is_sight(text: str) -> bool:
    """Tell whether a text says only what somebody was doing."""
    return SIGHT.match(text) is not None and not names_time(text)


def who_is(ask: AnswerInterview, name: str) -> str:
    known = [each for each in of(ask, name) if not is_sight(each)] or of(ask, name)[:1]
    known = [each for each in known if not any(other in each and other != each for other in known)]
    return " ".join(known[:2]) if known else f"I do not know who {name} is."


def for_somebody(ask: AnswerInterview, name: str, question: str) -> str:
    """Say what would please somebody, from what is known of it."""
    known = [each for each in of(ask, name) if len(terms(each)) > len(terms(name)) + 1]
    if not known:
        return f"I do not know {name} well enough to say."
    what = (
        "I would tell them that I admire this" if "compliment" in question.lower() else "Something that goes with this"
    )
    return f"{what}: {' '.join(known[:2])}"


def company(ask: AnswerInterview) -> str:
    """Say with whom one would spend time, of those with whom one has talked, the last first, and why."""
    talked: dict[str, Said] = {}
    for said in sorted(remembered(ask), key=lambda each: each.at, reverse=True):
        found = TALKED.match(said.text)
        if found is not None and found["who"] == ask.who:
            talked.setdefault(found["other"], said)
        elif said.by and said.by != ask.who:
            talked.setdefault(said.by, said)
    for name in talked:
        known = [each for each in of(ask, name) if len(terms(each)) > len(terms(name)) + 1]
        if known:
            return f"I would like to spend time with {name}. {known[0]}"
    return f"I would like to spend time with {next(iter(talked))}." if talked else "I have not met anybody lately."


def meetings(ask: AnswerInterview, question: Question, span: AskedSpan) -> str:
    """Say with whom one talked, or whom one saw, at the time that is meant; "" where that is not asked."""
    if not question.past or not question.you or not (TALKS.search(question.text) or SEES.search(question.text)):
        return ""
    today, _ = now_of(ask)
    any_day = question.focus == "when" or (ask.named and not span.is_named)
    day = "" if any_day else f"{day_of(today, span):%Y-%m-%d}"
    met: dict[str, str] = {}
    about: list[str] = []
    for said in sorted(remembered(ask), key=lambda each: each.at, reverse=True):
        talk = TALKED.match(said.text)
        talk = talk if talk is not None and talk["who"] == ask.who and not said.by else None
        others = [talk["other"]] if talk else [] if TALKS.search(question.text) else _in_sight(ask, said)
        for name in others:
            if said.at.startswith(day or "2") and (not ask.named or name in ask.named):
                met.setdefault(name, _on(said.at, ask))
                about += [talk["about"]] if talk and talk["about"] not in (None, "this and that") else []
    verb = "talked with" if TALKS.search(question.text) else "saw"
    if ask.named and met and question.focus == "what":
        return f"We talked about this: {own(ask.who, about[0])}" if about else "I do not remember what about."
    if ask.named and met:
        name = next(iter(met))
        return f"{'Yes, ' if question.focus == 'whether' else ''}I {verb} {name} {met[name]}."
    if ask.named:
        return "Not that I remember."
    names = list(met)[:8]
    listed = ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)
    return f"I {verb} {listed}." if names else "Nobody that I remember."


def _in_sight(ask: AnswerInterview, said: Said) -> list[str]:
    """Return who was seen, of whom a memory says what they did."""
    if said.by or not said.at:
        return []
    found = re.match(r"(?P<name>[A-Z][\w'-]{1,20}(?: [A-Z][\w'-]{1,20}){1,3}) is ", said.text)
    return [found["name"]] if found and found["name"] != ask.who else []


def _on(at: str, ask: AnswerInterview) -> str:
    today, _ = now_of(ask)
    when = datetime.strptime(at, "%Y-%m-%d %H:%M")
    days = (today - when.date()).days
    day = ("today", "yesterday")[days] if days in (0, 1) else f"on {when:%A}"
    return f"{day} at {when:%H:%M}"
