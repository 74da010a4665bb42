"""Parse the question of a recall into words, speakers and dates; and filter the records that may be returned."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from pydantic import JsonValue
from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from mindstream.arrays import Array, Mask
from mindstream.caches import remember
from mindstream.clock import Moment
from mindstream.memory.store.columns import KIND_CODES, PORTION, Columns, entries, is_plain
from mindstream.memory.store.record import Kind, checked_fields, checked_kinds
from mindstream.memory.store.store import Store
from mindstream.text.dates import DateSpan, spans, without_dates
from mindstream.text.words import STOP, batches, both_ends, first_and_last, plain_words, terms

MOST_TERMS = 400
"""Maximum number of different words of a question that are used; of a longer question, the first and the last ones."""
CAPITAL = re.compile(r"\b[A-Z][a-z]{2,}")
MOST_CAPITALS = 20
"""Maximum number of capitalised words that are compared with names."""


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """A parsed question.

    Attributes:
        bare: the question without the names of the stream's speakers; its vector is compared with messages.
        wordings: the texts to embed. The first (`bare`) is compared with messages, the last (the whole question) with
            other records. There is only one if the question names no speaker, or the stream has only messages.
        terms: the terms to look up, without the speakers' names.
        name_terms: the terms of these names. They are looked up only in records that are not messages: in a message, a
            name addresses the listener; in other records it names the subject.
        who: the number of the speaker who is named, or meant by "I" or "you"; -1 if there is none, or several.
        spans: the periods that the question names.
        date_terms: the terms among `terms` that only name these periods.
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
    """Parse a question, using the names of a stream's speakers. Of a long question, only beginning and end are used."""
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
    """Return the words of a question that are short forms, misspellings or nicknames of speakers' names, each with the
    speaker's number."""
    found: dict[str, int] = {}
    for match in list(CAPITAL.finditer(query))[:MOST_CAPITALS]:
        begins = not query[: match.start()].rstrip() or query[: match.start()].rstrip()[-1] in ".!?"
        bearer = find_bearer(match[0], columns, begins)
        if bearer >= 0:
            found[match[0]] = bearer
    return found


def _meant(query: str, columns: Columns) -> set[int]:
    """Return the speakers that the question's pronouns mean; an empty set unless the stream has exactly one user and
    one agent."""
    user, agent = columns.speakers.user, columns.speakers.agent
    if user < 0 or agent < 0:
        return set()
    persons = find_persons(query)
    return {by for by, is_meant in ((user, persons.asker), (agent, persons.asked)) if is_meant}


@remember(1024)
def _calls(name: str) -> re.Pattern[str]:
    """Return a pattern that finds a speaker's whole or first name in a question.

    A name that is also a common word (Will) is found only with its capital letter.
    """
    whole = " ".join(name.split())
    first = whole.split(" ")[0] or whole
    if not first.isascii() and len(terms(first)) != 1:  # a script without spaces
        return re.compile(re.escape(whole))
    flags = re.NOFLAG if first.lower() in STOP else re.IGNORECASE
    both = "|".join(re.escape(part) for part in dict.fromkeys((whole, first)))
    return re.compile(rf"(?<!\w)(?:{both})(?:['’]s)?(?!\w)", flags)


# Other forms of speakers' names: short forms, misspellings, and nicknames that only the other speaker uses.


CHAT = KIND_CODES["chat"]
SHORT, LONG = 3, 5
"""Minimum number of letters of a short form (SHORT), and of a misspelt name (LONG)."""
OFTEN = 5
BY_ONE, EPISODES = 0.9, 0.5
"""Criteria for a word to be a nickname that one of two speakers (the caller) uses for the other. OFTEN: minimum number
of records with the word. BY_ONE: minimum share of these that are by the caller. EPISODES: minimum share of the episodes
in which the caller speaks that contain the word."""


def find_bearer(word: str, columns: Columns, begins_sentence: bool = False) -> int:
    """Return the number of the speaker whose nickname, short form or misspelt name a capitalised word is; -1 if there
    is none, or several."""
    lower = word.lower()
    if lower in STOP or lower in columns.named:
        return -1
    term = next(iter(terms(word)), "")
    count = columns.lexical.postings.count(term)
    if count >= OFTEN and not begins_sentence and (called := _find_called(term, columns)) >= 0:
        return called
    return _find_resembling(lower, columns, is_used=bool(count))


def _find_resembling(word: str, columns: Columns, is_used: bool) -> int:
    """Return the number of the speaker whose first name begins with a word, or differs from it in one letter.
    Misspellings are considered only if no record of the stream contains the word (`is_used` False). -1: no speaker, or
    several.
    """
    firsts = [first for first in columns.named if len(word) >= SHORT and first.startswith(word)]
    if not firsts and not is_used and len(word) >= LONG:
        long = [first for first in columns.named if len(first) >= LONG]
        firsts = [found[0] for found in extract(word, long, scorer=OSA.distance, score_cutoff=1, limit=2)]
    bearers = {columns.names[name] for first in firsts for name in columns.named[first]}
    return bearers.pop() if len(bearers) == 1 else -1


def _find_called(term: str, columns: Columns) -> int:
    """Return the number of the speaker whose nickname a word is; -1: none.

    In a stream with two speakers, a word is the nickname of one if nearly all of its uses are by the other (the
    caller), and it occurs in at least a share EPISODES of the episodes in which the caller speaks.
    """
    two = columns.speakers.taking_part()
    if len(two) != 2:
        return -1
    holds, _ = columns.lexical.matches(term)
    talk = columns.kind.values == CHAT
    by, group = columns.by.values, columns.group.values
    said = by[holds[talk[holds]]]
    caller, called = sorted(two, key=lambda each: -int(np.count_nonzero(said == each)))
    if np.count_nonzero(said == caller) < BY_ONE * len(holds):
        return -1
    episodes, index = _count_distinct(group[talk & (by == caller)]), columns.lexical
    if (  # first compare with the whole stream: records that were selected by this word contain it too often
        index.counts([term])[0] * index.groups < EPISODES * episodes * index.all_groups
    ):
        return -1
    if episodes < 2 or _count_distinct(group[holds]) < EPISODES * episodes:
        return -1
    return called


def _count_distinct(numbers: Array) -> int:
    """Return how many different numbers, each at least -1, there are."""
    return int(np.count_nonzero(np.bincount(numbers + 1)))


WISH = re.compile(r"\b(?:can|could|would|will|do)\s+you\b", re.IGNORECASE)
"""Phrases in which "you" requests something now, and does not refer to earlier messages."""
WORD = re.compile(r"[a-z]+|[我你您]们?", re.IGNORECASE)
ASKER = frozenset({"i", "me", "my", "mine", "myself", "我"})
ASKED = frozenset({"you", "your", "yours", "yourself", "你", "您"})
BOTH = frozenset({"we", "us", "our", "ours", "ourselves", "我们"})


class Persons(NamedTuple):
    """Whether a question has pronouns that mean the speaker who asks it, and whether it has some that mean the speaker
    who is asked."""

    asker: bool
    asked: bool


def find_persons(text: str) -> Persons:
    """Return whether the pronouns of an English or Chinese question mean the one who asks, the one who is asked, both,
    or neither."""
    words = set(WORD.findall(WISH.sub(" ", text).lower()))
    both = bool(words & BOTH)
    return Persons(both or bool(words & ASKER), both or bool(words & ASKED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Conditions on records. By default all records pass that are not archived and whose validity has not ended.

    Attributes:
        since, until: bounds of a record's `created`, both included.
        as_of: use the state of the stream at this moment.
        where: required values of `by`, `episode`, `slot` or fields of `data`.
        asked_in: the id of the record that contains the question itself; this record does not pass.
        over: superseded, expired and archived records pass, too.
    """

    kinds: Sequence[Kind] | None = None
    since: Moment | None = None
    until: Moment | None = None
    as_of: Moment | None = None
    where: Mapping[str, JsonValue] = field(default_factory=dict)
    asked_in: str = ""
    over: bool = False

    def __post_init__(self) -> None:
        if self.kinds is not None:
            checked_kinds(self.kinds)
        checked_fields(self.where, "where")


ALL = Filters()


def allowed_mask(
    columns: Columns, filters: Filters, now: Moment, alike: Mapping[str, Sequence[int]], held: Mask | None = None
) -> Mask:
    """Mark the records that pass the filters.

    Args:
        alike: for each field of `where` whose value is too large for the columns, the rows with this value (see
            `compare_large`).
        held: marks the valid records (`Columns.held_at`) at the moment of the filters, if the caller has them already.
    """
    at = now if filters.as_of is None else filters.as_of
    # With `over`, all records pass except erased ones, which have -infinity in this column.
    mask: Mask = (
        columns.forgotten.values > -np.inf if filters.over else columns.held_at(at) if held is None else held.copy()
    )
    if filters.as_of is not None:
        mask &= (columns.created.values <= at) & (columns.valid_from.values <= at)
    if filters.kinds is not None:
        kinds = np.zeros(len(KIND_CODES), np.bool_)
        kinds[[KIND_CODES[kind] for kind in filters.kinds]] = True
        mask &= kinds[columns.kind.values]
    if filters.since is not None:
        mask &= columns.created.values >= filters.since
    if filters.until is not None:
        mask &= columns.created.values <= filters.until
    for name, wanted in filters.where.items():
        mask &= _has(columns, name, wanted, alike)
    if (own := columns.position.get(filters.asked_in)) is not None:
        mask[own] = False
    return mask


def _has(columns: Columns, name: str, wanted: JsonValue, alike: Mapping[str, Sequence[int]]) -> Mask:
    """Mark the records in which a field has the wanted value."""
    named = {"by": (columns.names, columns.by), "episode": (columns.episodes, columns.episode)}
    if name in named:
        known, column = named[name]
        none = -1 if wanted == "" else -2
        has: Mask = column.values == (known.get(wanted, none) if isinstance(wanted, str) else -2)
        return has
    if is_plain(wanted):
        return columns.fields.having(name, wanted, len(columns))
    has = np.zeros(len(columns), np.bool_)
    has[list(alike[name])] = True
    return has


async def compare_large(store: Store, columns: Columns, filters: Filters) -> dict[str, list[int]]:
    """Return, for each field of `where` with a value too large for the columns, the rows whose value is equal."""
    alike: dict[str, list[int]] = {}
    for name, wanted in filters.where.items():
        if name in ("by", "episode") or is_plain(wanted):
            continue
        places, alike[name] = columns.fields.large(name), []
        for some in batches(places, PORTION):
            ids = [columns.ids[at] for at in some]
            records = await store.records(columns.stream, ids)
            found = [each.id for each in records if dict(entries(each)).get(name) == wanted]
            alike[name] += [columns.position[id_] for id_ in found if id_ in columns.position]
            await asyncio.sleep(0)
    return alike
