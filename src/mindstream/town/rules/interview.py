"""An answer in an interview without a model: from who somebody is, what it remembers and what it plans, or none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mindstream.models.prompt import rule
from mindstream.text.words import terms
from mindstream.town.prompts.answer_interview import AnswerInterview
from mindstream.town.rules.interview_day import find_clock, plan_at
from mindstream.town.rules.times import names_time
from mindstream.town.rules.worth import TOLD, worth
from mindstream.town.sentences import sentences

UNKNOWN = "I do not know."
OF_QUESTION = 0.75
"""So much of a question's words must stand in what answers it."""
MEMORY = re.compile(
    r"(?:\(\w{6,9} \d{4}-\d\d-\d\d \d\d:\d\d\) )?(?:(?P<by>[A-Z][^:\n]{1,60}): )?(?P<text>.*)", re.DOTALL
)
A_NAME = re.compile(r"\b[A-Z][\w'-]{1,20}(?: [A-Z][\w'-]{1,20}){1,2}\b")
SELF = (
    (r"\b(?:introduc\w*|about yourself|who are you)\b", r""),
    (r"\b(?:occupation|jobs?|profession|for a living)\b", r"\b(?:is an?|works?|working|runs?|owns?|studies|teaches)\b"),
    (
        r"\b(?:interests?|passion\w*|hobb\w+|inspir\w*|enjoy)\b",
        r"\b(?:lov\w+|likes?|enjoy\w*|interest\w*|passion\w*|avid|fond|curious|hop(?:e|es|ing)|dream\w*|explor\w*|writing)\b",
    ),
    (
        r"\b(?:live with|your family|household|housemates?)\b",
        r"\b(?:liv(?:e|es|ing) with|husband|wife|son|daughter|mother|father|partner|room-?mates?|housemates?)\b",
    ),
    (
        r"\b(?:schedule|routine|typical)\b",
        r"\b(?:bed|wakes?|awakes?|[ap]m|noon|midnight|every|daily|usually|days?|weekdays?)\b|\d[ap]m\b",
    ),
)
"""What is asked of oneself, and what the sentences that answer it say."""
DANGER = re.compile(r"\b(?:fires?|burn\w*|smok\w*|leak\w*|flood\w*|explod\w*|accident|hurt|bleed\w*)\b", re.IGNORECASE)
TAKEN = re.compile(r"\b(?:occupied|in use|taken|locked|closed|full)\b", re.IGNORECASE)
LACKING = re.compile(r"\b(?:empty|out of|run out|missing|gone|broken)\b", re.IGNORECASE)
PASSING = re.compile(r"\b(?:walk\w* by|pass\w* by|comes? in|meet|greets?|waves?|friend)\b", re.IGNORECASE)
SHOPS = ("market", "grocer", "bakery", "store", "shop")
GIVES = re.compile(r"\b(?:gift|present|book|compliment|surprise|cook|say to|tell)\b", re.IGNORECASE)
ASKS = re.compile(r"\?$|\b(?:about|knows?|asks?|asking|wonders?|tell) (?:who|whether|if|what)\b", re.IGNORECASE)
THIRD = re.compile(r"\b(?:he|she|his|her|hers|him|they|their|them)\b", re.IGNORECASE)
WHO_IS = re.compile(r"who (?:is|are) ", re.IGNORECASE)
RECENT = re.compile(r"\b(?:recently met|met recently|spend time with|spend an? \w+ with)\b", re.IGNORECASE)


class Said(NamedTuple):
    """A sentence that somebody remembers, and who said it; "" nobody."""

    text: str
    by: str


@rule(AnswerInterview)
def answer_from_memory(ask: AnswerInterview) -> str:
    """Answer by the kind of the question; what nothing supports is not known."""
    question = ask.question[:1_000].strip()
    clock = find_clock(question)
    if clock is not None and re.search(r"\b(?:doing|do|be|plans?)\b", question):
        return plan_at(ask, clock, question) or UNKNOWN
    named = _named(ask, question)
    if RECENT.search(question):
        return _company(ask)
    if named and WHO_IS.match(question) and len(terms(question)) <= len(terms(named[0])):
        return _who_is(ask, named[0])
    if named and GIVES.search(question):
        return _for_somebody(ask, named[0], question)
    if "what would you" in question.lower() or question.rstrip().endswith("!"):
        return _reaction(ask, question)
    return _about_self(ask, question) or _look_up(ask, question) or UNKNOWN


def _named(ask: AnswerInterview, question: str) -> list[str]:
    """Return the names of others in a question, without a first word of the sentence ("Is Ada Brook")."""
    first = question.split(maxsplit=1)[0] if question.split() else ""
    found = [name.removeprefix(f"{first} ") for name in A_NAME.findall(question)]
    return [name for name in found if name != ask.who and " " in name]


def _remembered(ask: AnswerInterview) -> Iterator[Said]:
    """Yield what is known in sentences: who one is, then what came to mind."""
    for line in ask.identity.splitlines():
        if not line.startswith(("Traits: ", "Knows: ")):
            yield from (Said(each, "") for each in sentences(line))
    for memory in ask.memories:
        found = MEMORY.match(memory)
        if found is not None:
            yield from (Said(each, found["by"] or "") for each in sentences(found["text"]))


def _own(who: str, text: str) -> str:
    """Say a sentence about oneself as one says it oneself; one with "his" or "her" in it is quoted as it stands."""
    if not THIRD.search(text):
        text = text.replace(f"{who} is ", "I am ").replace(f"{who} has ", "I have ").replace(f"{who}'s ", "my ")
        text = text.replace(f"{who} was ", "I was ")
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _first(found: Iterable[str], most: int) -> list[str]:
    return list(dict.fromkeys(found))[:most]


def _about_self(ask: AnswerInterview, question: str) -> str:
    """Answer what is asked of oneself, from who one is and what one remembers of oneself."""
    for asked, answers in SELF:
        if not re.search(asked, question, re.IGNORECASE):
            continue
        if not answers:
            head, *rest = ask.identity.splitlines()
            told = [f"I am {head}.", *(_own(ask.who, line) for line in rest if not line.startswith("Knows: "))]
            return " ".join(told)[:900]
        pattern = re.compile(answers, re.IGNORECASE)
        own = [
            _own(ask.who, each.text)
            for each in _remembered(ask)
            if _is_own(ask.who, each) and pattern.search(each.text)
        ]
        if "live" in asked:
            own += [f"I know {known}." for known in _relations(ask) if pattern.search(known)]
        if "interest" in asked and not own:  # then it is what one is and does
            own = [_own(ask.who, each.text) for each in _remembered(ask) if _is_own(ask.who, each)][:2]
        return " ".join(_first(own, 3)) or UNKNOWN
    return ""


def _is_own(who: str, said: Said) -> bool:
    return not said.by and who in said.text and "'s plan for " not in said.text and " talked with " not in said.text


def _relations(ask: AnswerInterview) -> list[str]:
    """Return `name (what)` of those whom one knows by description."""
    line = next((line for line in ask.identity.splitlines() if line.startswith("Knows: ")), "")
    return [each.strip() for each in line[len("Knows: ") :].split(";") if each.strip()]


def _of(ask: AnswerInterview, name: str) -> list[str]:
    """Return what is known of somebody, what says most first: what one is, then what it said of itself, then sights."""
    related = [f"{name} is my {each[len(name) + 2 : -1]}." for each in _relations(ask) if each.startswith(f"{name} (")]
    said = [each for each in _remembered(ask) if name in each.text or each.by == name]
    told = [each.text for each in said if each.text.startswith(f"{name} is ")]
    own = [
        f"{name} said: {each.text}" for each in said if each.by == name and each.text.startswith(("I am ", "I like "))
    ]
    rest = [each.text for each in said if not each.by and not each.text.startswith(f"With {name}")]
    rest = [each for each in rest if each not in told and " talked with " not in each]
    told.sort(key=lambda text: ("(" in text, not re.search(r" is (?:an?|the|my|\w+'s) ", text[: len(name) + 24])))
    return _first([*related, *(_own(ask.who, each) for each in (*told, *own, *rest))], 6)


def _who_is(ask: AnswerInterview, name: str) -> str:
    known = _of(ask, name)
    return " ".join(known[:2]) if known else f"I do not know who {name} is."


def _for_somebody(ask: AnswerInterview, name: str, question: str) -> str:
    """Say what would please somebody, from what is known of it."""
    known = [each for each in _of(ask, name) if len(terms(each)) > len(terms(name)) + 1]
    if not known:
        return f"I do not know {name} well enough to say."
    what = (
        "I would tell them that I admire this" if "compliment" in question.lower() else "Something that goes with this"
    )
    return f"{what}: {' '.join(known[:2])}"


def _company(ask: AnswerInterview) -> str:
    """Say with whom one would spend time, of those with whom one has talked, the last first, and why."""
    talked: dict[str, str] = {}
    for memory in sorted(ask.memories, key=_written, reverse=True):
        found = re.search(rf"{re.escape(ask.who)} talked with (?P<name>[^.:]{{2,60}}?) about", memory)
        if found is not None:
            talked.setdefault(found["name"], memory)
        elif (said := MEMORY.match(memory)) and said["by"] and said["by"] != ask.who:
            talked.setdefault(said["by"], memory)
    for name in talked:
        known = [each for each in _of(ask, name) if len(terms(each)) > len(terms(name)) + 1]
        if known:
            return f"I would like to spend time with {name}. {known[0]}"
    return f"I would like to spend time with {next(iter(talked))}." if talked else "I have not met anybody lately."


def _written(memory: str) -> str:
    found = re.match(r"\(\w+ (\d{4}-\d\d-\d\d \d\d:\d\d)\) ", memory)
    return found[1] if found else ""


def _reaction(ask: AnswerInterview, question: str) -> str:
    """Say what one would do about something that happens now."""
    near, doing = " and ".join(ask.near[:2]), ask.doing.partition(" (")[0]
    stop = "I would get up" if doing.startswith("sleep") else f"I would stop {doing}" if doing else "I would stop"
    if PASSING.search(question):
        name = (
            next((each for each in A_NAME.findall(question) if each in " ".join(ask.memories)), "")
            or (ask.near or ("",))[0]
        )
        news = _news(ask)
        told = f" and tell them this: {_own(ask.who, news)}" if news else "."
        return f"I would say hello{f' to {name}' if name else ''}{told}"
    if DANGER.search(question):
        warned = f", and warn {near}" if near else ""
        return f"{stop} at once, see to it or call for help{warned}."
    if TAKEN.search(question):
        return f"I would wait until it is free{f' and go on {doing} meanwhile' if doing else ''}."
    if LACKING.search(question):
        shop = next((place for word in SHOPS for place in ask.places if word in place.lower()), "")
        return f"I would go to {shop} and buy what is missing." if shop else "I would go and buy what is missing."
    return f"{stop} and see to it."


def _news(ask: AnswerInterview) -> str:
    """Return what weighs most of what one could tell."""
    told = [each.text for each in _remembered(ask) if names_time(each.text) and worth(each.text) >= TOLD]
    return max(told, key=worth, default="")


def _look_up(ask: AnswerInterview, question: str) -> str:
    """Return what was said that has the question's words; yes or no is answered by whether there is any."""
    wanted = set(terms(question)) - set(terms("anybody anyone somebody someone know heard tell"))
    if not wanted:
        return ""
    found: list[tuple[float, str]] = []
    for number, said in enumerate(_remembered(ask)):
        held = wanted & set(terms(f"{said.by} {said.text}"))
        if len(held) >= OF_QUESTION * len(wanted) and not ASKS.search(said.text):
            words = _own(ask.who, said.text)
            found.append(
                (len(held) - number * 1e-3, f"{said.by} said: {words}" if said.by and said.by != ask.who else words)
            )
    if not found:
        return ""
    yes = re.match(r"(?:was|is|are|were|did|does|do|has|have|will)\b", question, re.IGNORECASE)
    return f"{'Yes. ' if yes else ''}{max(found)[1]}"
