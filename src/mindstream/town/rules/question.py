"""What a question means before anything is looked up: whom it names, which time, what it wants to know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Literal, NamedTuple

from mindstream.text.kinship import find_kin, may_mean
from mindstream.text.words import STOP, plain_words, stem, terms
from mindstream.town.person import Relation
from mindstream.town.rules.times import read_days, read_part
from mindstream.town.world.hours import DAY_MINUTES

Focus = Literal["who", "what", "when", "where", "why", "how", "whether", ""]
LONGEST = 1_000
OPENING = re.compile(
    r"(?:(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening|day)|excuse me|sorry|please|so|well|and|oh"
    r"|ok(?:ay)?|(?:nice|good|pleased) to (?:meet|see) you|(?:many )?thanks|thank you)\b"
    r"(?: (?:there|again|a lot|(?:very|so) much)\b)*"
    r"[\s,.!;:-]*)+",
    re.IGNORECASE,
)
THANKS = re.compile(r"\bthank(?:s| you)\b", re.IGNORECASE)
LEAVES = re.compile(r"\b(?:good ?bye|bye|farewell|good ?night|see you|take care)\b", re.IGNORECASE)
ASKS_TO_TELL = re.compile(
    r"(?:(?:do|can|could|would|will) you (?:please |happen to )?(?:know|tell me|say|remember)|(?:please )?tell me"
    r"|have you (?:ever )?(?:heard|met))\b(?! (?:any|some)(?:thing|body|one)\b)"
    r"(?: (?:if|whether|about|of|from|someone called)\b)*\s*",
    re.IGNORECASE,
)
WHETHER = re.compile(r"\b(?:if|whether)\b", re.IGNORECASE)
QUESTION = re.compile(
    r"\b(?P<time>what time)\b|\b(?P<word>who|whom|whose|what|which|when|where|why|how)(?:'s|\b)", re.IGNORECASE
)
AUXILIARY = re.compile(
    r"(?:is|are|am|was|were|do|does|did|has|have|had|will|would|can|could|should)(?:n't)?\b", re.IGNORECASE
)
PAST = re.compile(r"\b(?:did|was|were|have|has|had|yesterday|last|earlier|lately|recently)\b", re.IGNORECASE)
FUTURE = re.compile(r"\b(?:will|going to|plans?|planning|tomorrow|tonight|later|next)\b|\b\w+'ll\b", re.IGNORECASE)
PRONOUN = re.compile(r"\b(?:he|she|him|her|his|they|them|it|there|that)\b", re.IGNORECASE)
YOU = re.compile(r"\byou(?:r|rs|rself)?\b", re.IGNORECASE)
CLOCK = re.compile(
    r"\b(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s?(?P<half>[ap])\.?m\b|\b(?P<h>[01]?\d|2[0-3]):(?P<m>\d\d)\b"
)
EMPTY = frozenset(
    stem(word)
    for word in plain_words(
        "do know hear tell think say mean want get go come take make happen be have see look talk about of please today"
        " tomorrow yesterday tonight now right currently morning afternoon evening night day week anybody anyone"
        " somebody someone anything something everybody thing time last next later lately recently other"
        " new news gossip interesting"
    )
)
"""What a question is asked with, and not what it is about."""


FOCUS: dict[str, Focus] = {
    "who": "who", "whom": "who", "whose": "who", "what": "what", "which": "what", "when": "when", "where": "where",
    "why": "why", "how": "how",
}  # fmt: skip


class Question(NamedTuple):
    """A question, read.

    Attributes:
        text: it, without greeting; "" where nothing else was said. core: that, without "do you know whether".
        about: the words that it is about, stemmed, names aside; where it has none of its own, those of the one before.
        past, future: by its words; neither: it is asked of the present.
    """

    said: str
    text: str
    core: str
    focus: Focus
    about: frozenset[str]
    past: bool
    future: bool
    you: bool

    @property
    def topic(self) -> str:
        """The words that it is about, as they were said."""
        return " ".join(word for word in plain_words(self.core) if stem(word) in self.about) or " ".join(
            sorted(self.about)
        )


def read_question(said: str, who: str, named: Iterable[str] = (), lines: Sequence[str] = ()) -> Question:
    """Read a question that is put to somebody; `lines`: what was asked and answered before."""
    said = said[:LONGEST].strip()
    text = _without_greeting(said, who)
    core = text[found.end() :] if (found := ASKS_TO_TELL.match(text)) else text
    is_either = AUXILIARY.match(core) is not None or (found is not None and WHETHER.search(found[0]) is not None)
    asked = None if is_either else QUESTION.search(core)
    focus: Focus = "whether" if is_either else ""
    if asked is not None:
        word = "when" if asked["time"] else asked["word"].lower()
        focus = FOCUS[word]
    names = frozenset(terms(" ".join((who, *named))))
    about = frozenset(terms(core)) - names - EMPTY
    if not about and refers_back(core):
        about = frozenset(terms(_before(who, lines))) - names - EMPTY
    past = bool(PAST.search(text))
    return Question(
        said, text, core, focus, about, past, not past and bool(FUTURE.search(text)), bool(YOU.search(core))
    )


def refers_back(text: str) -> bool:
    """Tell whether a question has to be read with the one before: it says "it" or "she", or two words at most."""
    return bool(PRONOUN.search(text)) or len(text.split()) <= 2


def _before(who: str, lines: Sequence[str]) -> str:
    """Return what was asked before."""
    asked = [line for line in lines if not line.startswith(f"{who}: ")]
    return _without_greeting(asked[-1].partition(": ")[2], who) if asked else ""


def _without_greeting(said: str, who: str) -> str:
    """Take off what is said before a question, and the name of whoever is asked."""
    own = "|".join(map(re.escape, (who, *who.split())))
    said = re.sub(rf"(?:^|(?<=[\s,]))(?:{own})(?=\s*[,.!?]|$)|^(?:{own}),", "", said, flags=re.IGNORECASE)
    said = said.strip(" ,")
    found = OPENING.match(said)
    rest = said[found.end() :].strip(" ,") if found else said
    return rest if re.search(r"\w", rest) else ""


def find_named(
    question: str, who: str, people: Iterable[str], relations: Sequence[Relation] = (), lines: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return whom a question means: by name, by a first name in any letters, by what they are to whoever is asked.

    One that names nobody and says "she" means whom the one before named.
    """
    others = [name for name in people if name != who]
    found = _by_name(question[:LONGEST], others) or _by_relation(question[:LONGEST], relations)
    if not found and PRONOUN.search(question):
        before = _before(who, lines)
        found = _by_name(before, others) or _by_relation(before, relations)
    known = {each.name for each in relations}
    by_first = [name for name in found if name in known and sum(_first(name) == _first(each) for each in found) > 1]
    return tuple(name for name in found if not by_first or name in by_first or name in question)


def _by_name(text: str, names: Sequence[str]) -> list[str]:
    low = text.casefold()
    whole = [name for name in names if name.casefold() in low]
    for name in whole:
        low = low.replace(name.casefold(), " ")
    words = set(plain_words(low))
    exact = set(re.findall(r"\w+", text))
    firsts = [
        name
        for name in names
        if name not in whole and _first(name) in words and (_first(name) not in STOP or name.split()[0] in exact)
    ]
    return [*whole, *firsts]


def _first(name: str) -> str:
    return name.split()[0].casefold()


def _by_relation(text: str, relations: Sequence[Relation]) -> list[str]:
    """Return who is meant by `your wife`, `your boss`."""
    if not re.search(r"\byour\b", text, re.IGNORECASE):
        return []
    return [each.name for each in relations if is_called(each.what, text)]


def is_called(what: str, text: str) -> bool:
    """Tell whether a text speaks of what somebody is to another: `wife`, `friend at the dorm`."""
    head = re.split(r" (?:at|in|of|from|who|and) ", what, maxsplit=1)[0]
    kin, spoken = find_kin(head), find_kin(text)
    return any(may_mean(one, other) for one in kin for other in spoken) or bool(
        terms(head) and set(terms(head)) <= set(terms(text))
    )


class AskedTime(NamedTuple):
    """A minute of today or tomorrow."""

    minute: int
    tomorrow: bool


def find_clock(text: str) -> AskedTime | None:
    """Return the time that a question names; None: it names none."""
    found = CLOCK.search(text[:1_000])
    if found is not None:
        return AskedTime(minute_said(found), "tomorrow" in text.lower())
    for word, minute in (("noon", 720), ("midnight", 0)):
        if word in text.lower():
            return AskedTime(minute, "tomorrow" in text.lower())
    return None


def minute_said(found: re.Match[str]) -> int:
    """Return the minute of the day that a match of CLOCK says."""
    if found["h"]:
        return int(found["h"]) * 60 + int(found["m"])
    return int(found["hour"]) % 12 * 60 + int(found["minute"] or 0) + 720 * (found["half"].lower() == "p")


class AskedSpan(NamedTuple):
    """A part of a day that a question means, in minutes from midnight; `days`: 0 is today, -1 yesterday."""

    days: int
    start: int = 0
    end: int = DAY_MINUTES
    is_named: bool = True


def read_span(question: Question, now: date, minute: int) -> AskedSpan:
    """Return the time that a question means; where it names none, what tense says of today."""
    low = question.text.lower()
    ahead = read_days(question.text, now)
    days = -1 if re.search(r"\byesterday|\blast night", low) else (ahead[0] - now).days if ahead else 0
    part = read_part(question.text)
    if part is not None and part.start is not None and part.end is not None:
        start, end = (
            (17 * 60, DAY_MINUTES)
            if part.start >= 17 * 60
            else (0 if days <= 0 and part.start < 12 * 60 else part.start, part.end)
        )
        return AskedSpan(days, start, end)
    named = bool(ahead) or days != 0
    if days == 0 and question.past:
        return AskedSpan(0, 0, minute + 1, named)
    if days == 0 and question.future:
        return AskedSpan(0, minute, DAY_MINUTES, named)
    return AskedSpan(days, is_named=named)


def day_of(now: date, span: AskedSpan) -> date:
    """Return the day that is meant."""
    return now + timedelta(days=span.days)
