"""A question as recall understands it: its words, who it is about, and when."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from mindstream.caches import remember
from mindstream.clock import Moment
from mindstream.memory.store.columns import KIND_CODES, Columns
from mindstream.text.dates import DateSpan, spans, without_dates
from mindstream.text.words import STOP, both_ends, first_and_last, plain_words, terms

MOST_TERMS = 400
"""So many words of a question are looked up, the first and the last of it."""
CAPITAL = re.compile(r"\b[A-Z][a-z]{2,}")
MOST_CAPITALS = 20
"""So many words with a capital may be somebody's name."""


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """What is asked of a stream.

    Attributes:
        bare: the question without the names of those who speak in the stream: what is embedded to look through talk.
        wordings: what is to be embedded: for talk, and, where that differs and there are any, for other records.
        terms: what is looked up in the index, those names aside.
        name_terms: those names; in talk a name is an address, in other records a subject.
        who: the number of the only one who is named, or meant by "I" or "you"; -1: nobody, or several.
        spans: the stretches of time that it names; date_terms: the words that name them.
    """

    text: str
    bare: str
    wordings: list[str]
    terms: Sequence[str]
    name_terms: list[str]
    who: int
    spans: list[DateSpan]
    date_terms: Sequence[str] = ()


def understood(query: str, columns: Columns, now: Moment) -> RecallQuery:
    """Read a question against a stream: its speakers' names decide who is asked about. Of a long one, both ends."""
    query = both_ends(query)
    rest, named, called = query, set[int](), []
    names = {name: columns.names[name] for word in plain_words(query) for name in columns.named.get(word, ())}
    for name, by in (names | _nicknames(query, columns)).items():
        pattern = _calls(name)
        if pattern.search(query):
            named.add(by)
            called += [match[0] for match in pattern.finditer(query)]
            rest = pattern.sub(" ", rest)
    bare = " ".join(rest.split()) or query
    asked = first_and_last(list(dict.fromkeys(terms(rest))), MOST_TERMS)
    dated = spans(query, now)
    others = set(terms(without_dates(query, now))) if dated else set()
    meant = named | _meant(query, columns)
    return RecallQuery(
        text=query,
        bare=bare,
        wordings=[bare] if columns.only_talk or not named else [bare, query],
        terms=asked,
        name_terms=terms(" ".join(called)),
        who=meant.pop() if len(meant) == 1 else -1,
        spans=dated,
        date_terms=[term for term in asked if dated and term not in others],
    )


def _nicknames(query: str, columns: Columns) -> dict[str, int]:
    """Return the words of a question that are other names of somebody who speaks, and whose."""
    found: dict[str, int] = {}
    for match in list(CAPITAL.finditer(query))[:MOST_CAPITALS]:
        begins = not query[: match.start()].rstrip() or query[: match.start()].rstrip()[-1] in ".!?"
        bearer = find_bearer(match[0], columns, begins)
        if bearer >= 0:
            found[match[0]] = bearer
    return found


def _meant(query: str, columns: Columns) -> set[int]:
    """Return who is meant by pronouns, where it is known who is the user and who the agent."""
    user, agent = columns.speakers.user, columns.speakers.agent
    if user < 0 or agent < 0:
        return set()
    persons = find_persons(query)
    return {by for by, is_meant in ((user, persons.asker), (agent, persons.asked)) if is_meant}


@remember(1024)
def _calls(name: str) -> re.Pattern[str]:
    """Return what finds somebody's name in a question: whole, or its first word.

    Names that are everyday words as well (Will) are told by their capital.
    """
    whole = " ".join(name.split())
    first = whole.split(" ")[0] or whole
    if not first.isascii() and len(terms(first)) != 1:  # written without spaces
        return re.compile(re.escape(whole))
    flags = re.NOFLAG if first.lower() in STOP else re.IGNORECASE
    both = "|".join(re.escape(part) for part in dict.fromkeys((whole, first)))
    return re.compile(rf"(?<!\w)(?:{both})(?:['’]s)?(?!\w)", flags)


# Other names of those who speak: short forms, misspelt ones, and what the other one calls them.


CHAT = KIND_CODES["chat"]
SHORT, LONG = 3, 5
"""A short form has so many letters at least; a name that is recognised though it is misspelt, so many."""
OFTEN = 5
BY_ONE, EPISODES = 0.9, 0.5
"""What one of two is called by the other: a word said so often, in so large a part by one of them, and in so large a
part of that one's episodes."""


def find_bearer(word: str, columns: Columns, begins_sentence: bool = False) -> int:
    """Return the number of the speaker whose name a capitalised word is in another form; -1: nobody's, or several."""
    lower = word.lower()
    if lower in STOP or lower in columns.named:
        return -1
    term = next(iter(terms(word)), "")
    holds = columns.lexical.matches(term)[0]
    if len(holds) >= OFTEN and not begins_sentence and (called := _find_called(term, holds, columns)) >= 0:
        return called
    return _find_resembling(lower, columns, is_used=bool(len(holds)))


def _find_resembling(word: str, columns: Columns, is_used: bool) -> int:
    """Return whose first name begins with a word, or is it but for one letter if the stream does not use the word."""
    firsts = [first for first in columns.named if len(word) >= SHORT and first.startswith(word)]
    if not firsts and not is_used and len(word) >= LONG:
        long = [first for first in columns.named if len(first) >= LONG]
        firsts = [found[0] for found in extract(word, long, scorer=OSA.distance, score_cutoff=1, limit=2)]
    bearers = {columns.names[name] for first in firsts for name in columns.named[first]}
    return bearers.pop() if len(bearers) == 1 else -1


def _find_called(term: str, holds: NDArray[np.int64], columns: Columns) -> int:
    """Return whom of two the other calls by a word: nobody else says it, and that one does whenever they talk."""
    talk = columns.kind.values == CHAT
    by, group = columns.by.values, columns.group.values
    two, said = columns.speakers.taking_part(), by[holds[talk[holds]]]
    if len(two) != 2:
        return -1
    caller, called = sorted(two, key=lambda each: -int(np.count_nonzero(said == each)))
    if np.count_nonzero(said == caller) < BY_ONE * len(holds):
        return -1
    episodes, index = len(np.unique(group[talk & (by == caller)])), columns.lexical
    if index.counts([term])[0] * index.groups < EPISODES * episodes * index.all_groups:  # found by it: all here have it
        return -1
    if episodes < 2 or len(np.unique(group[holds])) < EPISODES * episodes:
        return -1
    return called


WISH = re.compile(r"\b(?:can|could|would|will|do)\s+you\b", re.IGNORECASE)
"""Such a "you" wants something done or thought now; it does not ask what was said."""
WORD = re.compile(r"[a-z]+|[我你您]们?", re.IGNORECASE)
ASKER = frozenset({"i", "me", "my", "mine", "myself", "我"})
ASKED = frozenset({"you", "your", "yours", "yourself", "你", "您"})
BOTH = frozenset({"we", "us", "our", "ours", "ourselves", "我们"})


class Persons(NamedTuple):
    """Whether a question means the one who asks, and the one who is asked."""

    asker: bool
    asked: bool


def find_persons(text: str) -> Persons:
    """Return whom the pronouns of a question in English or Chinese mean."""
    words = set(WORD.findall(WISH.sub(" ", text).lower()))
    both = bool(words & BOTH)
    return Persons(both or bool(words & ASKER), both or bool(words & ASKED))
