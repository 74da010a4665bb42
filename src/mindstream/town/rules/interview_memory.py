"""What somebody who is asked knows, in sentences, and how it says them of itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from typing import NamedTuple

from mindstream.town.prompts.answer_interview import AnswerInterview
from mindstream.town.rules.talking import FORMULA, PHRASES
from mindstream.town.rules.times import names_time
from mindstream.town.sentences import sentences

MEMORY = re.compile(
    r"(?:\(\w{6,9} (?P<at>\d{4}-\d\d-\d\d \d\d:\d\d)\) )?(?:(?P<by>[A-Z][^:\n]{1,60}): )?(?P<text>.*)", re.DOTALL
)
REPEATED = "Since yesterday: "
HEADED = re.compile(
    r"'s plan for | (?:will (?:be there|help to prepare it)|cannot come because of [a-z ]{1,40}|does not want to come)$"
)
"""How a memory begins whose colon stands behind no speaker."""
A_NAME = re.compile(r"\b[A-Z][\w'-]{1,20}(?: [A-Z][\w'-]{1,20}){1,2}\b")
THIRD = re.compile(r"\b(?:he|she|his|her|hers|him|they|their|them)\b", re.IGNORECASE)
TALKED = re.compile(r"(?P<who>.{1,60}?) talked with (?P<other>.{1,60}?)(?: about (?P<about>.+))?$", re.DOTALL)

SIGHTED = re.compile(r" is [\w' ]{1,200}(?:\(|$)")
"""What somebody was seen to do, as it is written down: it ends without a full stop."""
LIES = re.compile(r"\b(?:at|in|on|behind|near|beside|from) (?:the |his |her |their |my |an? )?[A-Z]")


class Said(NamedTuple):
    """A sentence that somebody remembers, who said it ("": nobody), and when it was written down ("": from before)."""

    text: str
    by: str
    at: str = ""


def remembered(ask: AnswerInterview) -> Iterator[Said]:
    """Yield what is known in sentences: who one is, then what came to mind."""
    for line in ask.identity.splitlines():
        if not line.startswith(("Traits: ", "Knows: ")):
            yield from (Said(each.removeprefix(REPEATED), "") for each in sentences(line))
    for memory in ask.memories:
        found = MEMORY.match(memory)
        if found is None:
            continue
        by, text = found["by"] or "", found["text"]
        if by and HEADED.search(by):
            by, text = "", f"{by}: {text}"
        said = (each for each in sentences(text) if not (by and (each in PHRASES or FORMULA.match(each))))
        yield from (Said(each, by, found["at"] or "") for each in said)


def own(who: str, text: str) -> str:
    """Say a sentence about oneself as one says it oneself; one with "his" or "her" in it is quoted as it stands."""
    if not THIRD.search(text):
        text = text.replace(f"{who} is ", "I am ").replace(f"{who} has ", "I have ").replace(f"{who}'s ", "my ")
        text = text.replace(f"{who} was ", "I was ").replace(f"{who} talked ", "I talked ")
        text = text.replace(f"{who} will ", "I will ")
        if ", " not in text and " and " not in text:
            text = re.sub(
                rf"^{re.escape(who)} (?P<verb>[a-z]{{2,20}}s) ", lambda found: f"I {_base(found['verb'])} ", text
            )
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _base(verb: str) -> str:
    """Return a verb as it is said of oneself: `works`, `teaches`, `goes`, `tries`."""
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    return verb[:-2] if re.search(r"(?:s|sh|ch|x|o)es$", verb) else verb[:-1]


def fits(ask: AnswerInterview, focus: str, said: Said) -> bool:
    """Tell whether a sentence says what is asked for: a time, a place, somebody."""
    match focus:
        case "when":
            return names_time(said.text)
        case "where":
            return any(place in said.text for place in ask.places) or LIES.search(said.text) is not None
        case "who":
            return bool({*A_NAME.findall(said.text), said.by} - {"", *ask.places})
        case _:
            return True


def at_place(ask: AnswerInterview, place: str) -> str:
    """Say a place as whoever is asked says it: `the cafe of Hobbs Cafe`, `my room of the dorm`."""
    place = place.replace(f"{ask.who}'s ", "my ")
    return place if place.startswith("my ") or "'s " in place.partition(" of ")[0] else f"the {place}"


def quoted(ask: AnswerInterview, said: Said) -> str:
    """Say a memory, and who said it where it was another."""
    words = own(ask.who, said.text)
    return f"{said.by} said: {words}" if said.by and said.by != ask.who else words


def first(found: Iterable[str], most: int) -> list[str]:
    return list(dict.fromkeys(found))[:most]


def relations(ask: AnswerInterview) -> list[tuple[str, str]]:
    """Return whom one knows by description, and as what."""
    line = next((line for line in ask.identity.splitlines() if line.startswith("Knows: ")), "")
    parts = [each.strip() for each in line[len("Knows: ") :].split(";") if each.strip().endswith(")")]
    return [(name, what) for each in parts for name, _, what in [each[:-1].partition(" (")]]


def is_own(who: str, said: Said) -> bool:
    """Tell whether a sentence says of oneself what holds: no plan of a day, no talk."""
    return not said.by and who in said.text and "'s plan for " not in said.text and " talked with " not in said.text


def now_of(ask: AnswerInterview) -> tuple[date, int]:
    """Return the day and the minute of it at which somebody is asked."""
    try:
        when = datetime.strptime(ask.when, "%A, %B %d, %Y, %H:%M")
    except ValueError:
        return date(2000, 1, 1), 12 * 60
    return when.date(), when.hour * 60 + when.minute
