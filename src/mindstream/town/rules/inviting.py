"""Whether somebody takes an invitation up: by what it does then, how it stands to the host, and what it likes."""

from __future__ import annotations

import re
from datetime import date, datetime

from mindstream import chance
from mindstream.text.words import terms
from mindstream.town.prompts.utter import Utter
from mindstream.town.rules.appointments import NAME, REFUSES, is_open_to_all
from mindstream.town.rules.times import names_time, read_days, read_stretches

ASKED = ("Would you like to come?", "Can I count on you?")
ASKED_ALONG = ("Will you be there, too?", "Shall we see each other there?")
"""What hosts ask, and who comes itself."""
COMES, HELPS = "I would love to.", "And I will help to prepare it."
WORKS, ENGAGED, DECLINES = (
    "I am afraid I cannot, I have to work then.",
    "I am afraid I cannot, I have something else then.",
    "Thank you, but not this time.",
)
STILL_COMES, STILL_NOT = "I know, I will be there.", "I know, but it is not for me."
ANSWERS = {
    HELPS: "will help to prepare it", COMES: "will be there", STILL_COMES: "will be there",
    WORKS: "cannot come because of work", ENGAGED: "cannot come because of something else",
    DECLINES: "does not want to come", STILL_NOT: "does not want to come",
}  # fmt: skip
"""What is answered, and what is remembered of it."""
HELPFUL = 0.6
"""How probable it is that somebody who is asked by the host, and comes, helps."""
DUTY = re.compile(r"^(?:working|teaching|lecturing|taking classes|hearing lectures)\b")
CLOSE = re.compile(
    r"\b(?:friend|wife|husband|partner|son|daughter|mother|father|sister|brother|girlfriend|boyfriend)\b", re.I
)
AGAINST = re.compile(r"\b(?:rival|opponent|enemy|quarrel\w*|stranger)\b", re.I)
OUTGOING = re.compile(r"\b(?:outgoing|friendly|sociable|energetic|enthusiastic|cheerful|warm|talkative)\b", re.I)
RESERVED = re.compile(r"\b(?:shy|introverted|reserved|quiet|rude|withdrawn|grumpy|solitary)\b", re.I)
CLOCK = re.compile(r"\d{1,2}:\d\d")
MOMENT = re.compile(r"\b(?P<day>[A-Z][a-z]{2,8} \d{1,2}, \d{4}), (?P<hour>\d\d):(?P<minute>\d\d)")


def is_invitation(fact: str) -> bool:
    """Tell whether one can ask somebody to come: it says when, and that others may be there."""
    return names_time(fact) and is_open_to_all(fact)


def is_over(fact: str, situation: str) -> bool:
    """Tell whether what a memory names is over, or has begun."""
    today, minute = _now(situation)
    days = read_days(fact, today, today) if names_time(fact) else []
    start = _start(fact)
    return bool(days) and (max(days) < today or (max(days) == today and start is not None and start <= minute))


def invite(ask: Utter, fact: str) -> str:
    """Ask the other to come: a host does, and who comes itself; "" others only tell of it."""
    if next(iter(NAME.findall(fact)), "") == ask.who:
        return chance.pick(ASKED, ask.who, ask.other, fact)
    comes = any(memory.startswith(f"{ask.who} will ") and fact.rstrip(".!") in memory for memory in ask.memories)
    return chance.pick(ASKED_ALONG, ask.who, ask.other, fact) if comes else ""


def answer_invitation(ask: Utter, fact: str) -> str:
    """Answer whoever invites; who is asked again answers the same, unless somebody asks who is closer."""
    own = [memory for memory in ask.memories if memory.startswith(f"{ask.who} ") and fact.rstrip(".!") in memory]
    said = " ".join(each.partition(": ")[0] for each in own)
    if REFUSES.search(said):
        return STILL_NOT
    host = next(iter(NAME.findall(fact)), ask.other)
    helps = host == ask.other and chance.fraction("helps", ask.who, fact) < HELPFUL * (1.5 if ask.relation else 1)
    if own:
        return f"{STILL_COMES} {HELPS}" if helps and "help" not in said else STILL_COMES
    minute = _start(fact)
    doing = "" if minute is None else _at(ask.day, minute)
    works, engaged = bool(DUTY.match(doing)), minute is not None and _has_other(ask, fact, minute)
    p = _inclination(ask, host, fact) * (0.15 if works or engaged else 1.0)
    if not (works or engaged) and len(set(terms(doing)) & set(terms(ask.identity))) > 1:
        p *= 0.7  # what it does on its days at that time
    if chance.fraction("comes", ask.who, fact) >= p:
        return WORKS if works else ENGAGED if engaged else DECLINES
    return f"{COMES} {HELPS}" if helps else COMES


def _inclination(ask: Utter, host: str, fact: str) -> float:
    """Return how probable it is that somebody who is free comes."""
    known = re.search(rf"\b{re.escape(host)} \(([^()]{{1,80}})\)", ask.identity)
    if known and AGAINST.search(known[1]):
        return 0.05
    met = host == ask.other or any(f"talked with {host}" in memory for memory in ask.memories)
    p = (0.8 if CLOSE.search(known[1]) else 0.55) if known else 0.35 if met else 0.2
    traits = ask.identity[:300]
    p += 0.1 * bool(OUTGOING.search(traits)) - 0.15 * bool(RESERVED.search(traits)) + 0.1 * bool(ask.relation)
    about = set(terms(fact)) - set(terms(f"{host} {ask.who}"))
    return p + 0.05 * min(2, len(about & set(terms(ask.identity))))


def _has_other(ask: Utter, fact: str, minute: int) -> bool:
    """Tell whether somebody remembers that it has promised to be elsewhere at that time."""
    today, _ = _now(ask.situation)
    days = set(read_days(fact, today, today))
    return any(
        memory.startswith(f"{ask.who} ") and fact.rstrip(".!") not in memory and names_time(memory)
        and not REFUSES.search(memory) and _start(memory) is not None
        and abs((_start(memory) or 0) - minute) < 90 and bool(days & set(read_days(memory, today, today)))
        for memory in ask.memories
    )  # fmt: skip


def _start(text: str) -> int | None:
    return next((each.start for each in read_stretches(text) if each.start is not None), None)


def next_item(day: tuple[str, ...], situation: str) -> str:
    """Return what somebody does next on its day in broad strokes; "" nothing more."""
    _, now = _now(situation)
    return next((what for minute, what in _items(day) if minute > now), "")


def _at(day: tuple[str, ...], minute: int) -> str:
    """Return what a day in broad strokes has at a minute."""
    return next((what for start, what in reversed(_items(day)) if start <= minute), "")


def _items(day: tuple[str, ...]) -> list[tuple[int, str]]:
    split = (line.partition(" ") for line in day)
    return [(int(clock[:-3]) * 60 + int(clock[-2:]), what) for clock, _, what in split if CLOCK.fullmatch(clock)]


def _now(situation: str) -> tuple[date, int]:
    found = MOMENT.search(situation)
    if found is None:
        return date(2000, 1, 1), 0
    return datetime.strptime(found["day"], "%B %d, %Y").date(), int(found["hour"]) * 60 + int(found["minute"])
