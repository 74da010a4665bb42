"""The question of a recall, the records that may be returned, their relevance and certainty, and the policies that rank
them.

A question is parsed into words, speakers and dates (`RecallQuery`). The relevance measures how well a record of a
stream answers a question: a sum of parts in units of BM25. A policy then ranks the candidates; `Bounded`, the default,
by relevance, recency, importance and strength.

The constants were tuned on LoCoMo and on conversations between people and with an assistant (benchmarks/talks.py);
small changes of a constant do not change the results on any of these corpora. How much each speaker says is measured in
the stream (store/columns).
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue
from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from mindstream.arrays import Array, Doubles, Floats, Ints, Mask
from mindstream.caches import remember
from mindstream.clock import DAY_S, HOUR_S, Moment
from mindstream.memory.store.columns import KIND_CODES, PORTION, Columns, entries, is_plain
from mindstream.memory.store.record import Kind, checked_fields, checked_kinds
from mindstream.memory.store.store import Store
from mindstream.text.dates import DateSpan, spans, without_dates
from mindstream.text.lexical import K1, B, Matches, saturated, telling, telling_all
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
            other records. If the question names no speaker, or the stream has only messages, there is only one text.
        terms: the terms to look up, without the speakers' names.
        name_terms: the terms of the speakers' names in the question. They are looked up only in records that are not
            messages: in a message, a name addresses the listener; in other records it names the subject.
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
    """Return the capitalised words of a question that are short forms, misspellings or nicknames of speakers' names,
    each with the speaker's number. Only the first MOST_CAPITALS capitalised words are examined."""
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
"""Minimum number of letters of the short form of a name (SHORT), and of a misspelt name (LONG)."""
OFTEN = 5
"""Minimum number of records with a word if the word is to count as a nickname. One of two speakers (the caller) calls
the other by the nickname."""
BY_ONE, EPISODES = 0.9, 0.5
"""Further criteria for a nickname. BY_ONE: of the records with the word, the minimum share that the caller wrote.
EPISODES: of the episodes in which the caller speaks, the minimum share that contains the word."""


def find_bearer(word: str, columns: Columns, begins_sentence: bool = False) -> int:
    """Return the number of the speaker that a capitalised word means: the word is the speaker's nickname, or a short or
    misspelt form of the first name. -1: no speaker, or several."""
    lower = word.lower()
    if lower in STOP or lower in columns.named:
        return -1
    term = next(iter(terms(word)), "")
    count = columns.lexical.postings.count(term)
    if count >= OFTEN and not begins_sentence and (called := _find_called(term, columns)) >= 0:
        return called
    return _find_resembling(lower, columns, is_used=bool(count))


def _find_resembling(word: str, columns: Columns, is_used: bool) -> int:
    """Return the number of the speaker whose first name begins with `word`; -1: no speaker, or several.

    The word must have at least SHORT letters. If no first name begins with the word, it may be a misspelt name: the
    result is the speaker whose first name differs from the word in one letter. A misspelt name is considered only if no
    record of the stream contains the word (`is_used` False), and if word and name have at least LONG letters.
    """
    firsts = [first for first in columns.named if len(word) >= SHORT and first.startswith(word)]
    if not firsts and not is_used and len(word) >= LONG:
        long = [first for first in columns.named if len(first) >= LONG]
        firsts = [found[0] for found in extract(word, long, scorer=OSA.distance, score_cutoff=1, limit=2)]
    bearers = {columns.names[name] for first in firsts for name in columns.named[first]}
    return bearers.pop() if len(bearers) == 1 else -1


def _find_called(term: str, columns: Columns) -> int:
    """Return the number of the speaker whose nickname a word is; -1: none.

    The stream must have two speakers. A word is one speaker's nickname under these conditions:
    - the other speaker (the caller) has written nearly all records with the word (the share BY_ONE),
    - the caller speaks in two or more episodes,
    - the word occurs in a sufficient share of these episodes (EPISODES).
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
    if (  # compare with the whole stream first: records that this word has selected contain it too often
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
    """The people that the pronouns of a question mean. `asker`: the speaker who asks the question; `asked`: the speaker
    who is asked."""

    asker: bool
    asked: bool


def find_persons(text: str) -> Persons:
    """Return which people the pronouns of an English or Chinese question mean: who asks, who is asked, both, or
    neither."""
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
        over: whether superseded, expired and archived records pass, too.
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


Rows = Ints
ALSO = 1000
"""Maximum number of records whose vectors are compared in any case, even if the vectors are not among the most similar.
These are the records with the best word scores."""
OTHERS = 100
"""Number that is added to the number of records when the rarity of words is computed: without it, all words would seem
common in a short stream."""
TERMS_AT_ONCE = 16
"""Maximum number of words that are processed in one step; most questions have fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weight of each part of the relevance. `opening` improves one corpus only (LoCoMo), so it is 0.

    Attributes:
        vector: weight of the cosine similarity of a record's vector with the question's, after the stream's average
            similarity has been subtracted.
        verbosity: 0 to 1. 0: a message's length is compared with its own speaker's usual length. 1: the length is
            compared with the tersest speaker's usual length, so the words of a verbose speaker weigh less.
        lends_all: number of words of a record above which each word contributes less to neighbouring records.
        next_to: share of a word's weight that the record before and the record after get, in the same episode.
        second: share that the records two places before and two places after get.
        same_speaker: share that the record two places after gets if both records are by the same speaker.
        answer: share that the answer to a question gets. The answer is the record after the question; if the asker
            wrote this record, too, the answer is the record two places after the question. The share is above 1,
            because the answer is more relevant than the question.
        episode: weight of the BM25 score of the whole episode.
        who: weight of records by the speaker that the question means, if the question means only one speaker. The value
            is a share of the weight of a word that only one record contains, so the speaker matters equally in long and
            short streams.
        dates: weight of records that were written in a period that the question names.
        asks: for records that contain only questions: the number of terms outside the query from which a record counts
            in full. With fewer such terms, the record counts less. With none, its relevance is at most 0, because an
            earlier question answers nothing. 0: records with only questions always count in full.
        opening: weight of the first record of an episode.
    """

    vector: float = 22.0
    verbosity: float = 0.75
    lends_all: float = 16.0
    next_to: float = 0.3
    second: float = 0.3
    same_speaker: float = 0.6
    answer: float = 1.3
    episode: float = 1.25
    who: float = 0.67
    dates: float = 3.0
    asks: float = 3.0
    opening: float = 0.0


def weights_for(embedder: str) -> Weights:
    """Return the weights for an embedder: vectors of a token-table model (wordllama) count less than others."""
    return Weights(vector=16.0) if embedder == "wordllama" else Weights()


@dataclass(frozen=True, slots=True)
class Scored:
    """The relevance of all records of a stream; minus infinity for a record that the recall may not return."""

    total: Floats
    _parts: dict[str, Floats]

    def parts(self, rows: Rows) -> dict[str, list[float]]:
        """Return the parts of the relevance of some rows, by name."""
        return {name: values[rows].tolist() for name, values in self._parts.items()}

    def highest(self, names: Sequence[str], among: Mask) -> float:
        """Return the highest sum of these parts of the score among the records marked in `among`, but at least 0."""
        if not (there := [self._parts[name] for name in names if name in self._parts]):
            return 0.0
        values = reduce(np.add, there)
        if not among.all():
            values = np.where(among, values, 0)  # np.max with `where` takes three times as long
        return float(np.max(values, initial=0.0))


def relevance(
    columns: Columns,
    question: RecallQuery,
    vectors: Floats,
    candidates: Mask,
    weights: Weights,
    valid: Rows | None = None,
) -> Scored:
    """Score all records of a stream.

    Args:
        vectors: the vectors of the question's wordings.
        candidates: marks the records that may be returned; all other records get the score -infinity.
        valid: the rows over which the average similarity is computed, without superseded and archived records. None:
            all rows.
    """
    parts, held = _by_words(columns, question, weights)
    if question.who >= 0:
        parts["who"] = _said(columns, question) * np.float32(weights.who * telling(1, len(columns.lexical) + OTHERS))
    if question.spans:
        parts["dates"] = np.float32(weights.dates) * _dated(columns, question)
    if weights.opening:
        opens = (columns.group.values >= 0) & (columns.before.values < 0)
        parts["opening"] = opens * np.float32(weights.opening)
    total: Floats = sum(parts.values(), np.zeros(len(columns), np.float32))
    total[~candidates] = -np.inf
    parts["vector"] = np.float32(weights.vector) * _nearness(columns, vectors, candidates, total, valid)
    total = total + parts["vector"]
    if weights.asks and (asking := columns.only_asks.values & candidates).any():
        rows = np.flatnonzero(asking)
        added = columns.lexical.lengths(rows) - held[rows]  # for each row: number of terms that are not in the query
        share = np.minimum(np.maximum(added / np.float32(weights.asks), 0), 1)
        for values in (total, *parts.values()):
            values[rows] = np.where(values[rows] > 0, values[rows] * share, values[rows])
    return Scored(total, parts)


def _by_words(columns: Columns, question: RecallQuery, weights: Weights) -> tuple[dict[str, Floats], Floats]:
    """Score records by their words. A record in an episode is also scored by its neighbours' words and by the whole
    episode.

    The first result has the scores. In a score, a word counts once per record, with the highest weight: its own weight
    in the record, or a share from a neighbour. The second result is the number of words in each record that are terms
    of the question. In this number, a repeated word counts each time.
    """
    index, count = columns.lexical, len(columns)
    words, reached = np.zeros(count, np.float32), np.zeros(count + 1, np.float32)
    held = np.zeros(count, np.float32)
    episodes = np.zeros(index.groups + 1, np.float32)  # the last element is for records without an episode
    resistance = Resistance(columns, weights.verbosity)
    reach = _Reach(columns, weights) if index.groups else None
    terms = list(dict.fromkeys(question.terms))
    for some in batches(terms, TERMS_AT_ONCE):
        found = index.matches_of(some)
        lengths = index.lengths(found.documents)
        own = saturated(found.times, resistance(found.documents, lengths), index.idf_of(found), K1)
        words += np.bincount(found.documents, own, count).astype(np.float32)
        held += np.bincount(found.documents, found.times, count).astype(np.float32)
        if reach:
            reach.add(reached, found, own, lengths)
            episodes[:-1] += index.group_scores(found)
    parts = {"words": words}
    if reach:
        parts["neighbours"] = reached[:-1] - words
        parts["episode"] = np.float32(weights.episode) * episodes[columns.group.values]
    if question.name_terms:
        called = index.matches_of(list(dict.fromkeys(question.name_terms)))
        named = index.scores_of(called)
        named[columns.kind.values == CHAT] = 0
        parts["words"] = words + named
        held += np.bincount(called.documents, called.times, count).astype(np.float32)
    return parts, held


class Resistance:
    """Computes how much the length of a record reduces the weight of each of its words.

    The length of a message is compared with the usual length of its speaker's messages; that usual length is compared
    with the tersest speaker's. So a long reply does not outweigh a short fact, and speakers who say about the same
    amount are treated alike.
    """

    def __init__(self, columns: Columns, verbosity: float) -> None:
        others = max(1.0, columns.speakers.tersest() or columns.lexical.mean_length)
        usual = columns.speakers.usual_lengths()
        # `usual` has one element for each name, by the name's number, up to the last speaker. Append `others` for each
        # name with a higher number, and once more at the end: index -1 is for records that are no messages or have no
        # name.
        usual = np.append(usual, np.full(max(1, len(columns.names) + 1 - len(usual)), others))
        factor = 1 + verbosity * (np.maximum(1, usual / others) - 1)
        self._still = (K1 * (1 - B) * factor).astype(np.float32)
        self._by_word = (K1 * B * factor / usual).astype(np.float32)
        self._by = columns.by.values
        self._kind = None if columns.only_talk else columns.kind.values

    def __call__(self, holds: Rows, lengths: Floats) -> Floats:
        by = self._by[holds].astype(np.intp)
        if self._kind is not None:
            by[self._kind[holds] != CHAT] = -1
        resistance: Floats = self._by_word.take(by)
        resistance *= lengths
        resistance += self._still.take(by)
        return resistance


class _Reach:
    """The records in which a word counts: the records that contain the word, and the neighbours of these records."""

    def __init__(self, columns: Columns, weights: Weights) -> None:
        self._weights = weights
        none = np.array([-1], np.int32)
        self._before, self._after, self._by = (
            np.concatenate((each.values, none)) for each in (columns.before, columns.after, columns.by)
        )
        self._asks = columns.asks.values
        self._best = np.zeros(len(columns) + 1, np.float32)

    def add(self, reached: Floats, found: Matches, own: Floats, lengths: Floats) -> None:
        """Add the weights of words to the records that contain the words and, in part, to neighbouring records.

        Args:
            reached: for each record of the stream, the sum to which the weights are added.
            found: the records that contain the words.
            own: for each record in `found`, the weight of the word.
            lengths: for each record in `found`, the length of the record.
        """
        best, where, lent = self._best, *self._lend(found.documents, own, lengths)
        ends = np.cumsum(found.counts).tolist()
        for start, end in zip((0, *ends[:-1]), ends, strict=True):
            if start < end:
                best[:] = 0
                np.maximum.at(best, where[:, start:end].ravel(), lent[:, start:end].ravel())
                reached += best

    def _lend(self, holds: Rows, own: Floats, lengths: Floats) -> tuple[Rows, Floats]:
        """Return the records that get weight from a word, and their weights: two arrays with five rows. A column is for
        one record with the word. It has this record, then two records on each side in its episode."""
        weights = self._weights
        where, lent = np.empty((5, len(holds)), np.int64), np.empty((5, len(holds)), np.float32)
        where[0], lent[0] = holds, own
        where[1], where[2] = self._before[holds], self._after[holds]
        where[3], where[4] = self._before[where[1]], self._after[where[2]]
        by, asks = self._by[holds], self._asks[holds]
        goes_on = (by == self._by[where[2]]) & (by >= 0)
        again = by == self._by[where[4]]
        lent[1], lent[3] = weights.next_to, weights.second
        lent[2] = np.where(asks & ~goes_on, weights.answer, weights.next_to)
        lent[4] = np.where(again, weights.same_speaker, np.where(asks & goes_on, weights.answer, weights.second))
        lent[1:] *= own * np.minimum(1, weights.lends_all / np.maximum(lengths, 1))
        return where, lent


def _said(columns: Columns, question: RecallQuery) -> Mask:
    """Mark the messages of the speaker asked about. If only a pronoun names the speaker, also mark all records that are
    not messages."""
    talk = columns.kind.values == CHAT
    said: Mask = (columns.by.values == question.who) & talk
    return said if question.name_terms or columns.only_talk else said | ~talk


def _dated(columns: Columns, question: RecallQuery) -> Floats:
    """Return for each record how well its time fits the periods that the question names.

    The value is 1 if the record was written in a period, 0.5 if shortly after a period, otherwise 0. "Shortly after"
    lasts as long as the period, but at least 1 day and at most 7 days. All values are multiplied by the rarity of
    records from these periods.
    """
    created = columns.created.values
    inside = np.zeros(len(columns), np.float32)
    for span in question.spans:
        later = span.until + min(max(span.until - span.since, DAY_S), 7 * DAY_S)
        inside[(created >= span.until) & (created < later) & (inside < 0.5)] = 0.5
        inside[(created >= span.since) & (created < span.until)] = 1
    return inside * np.float32(telling(columns.entire.written_in(question.spans), len(columns.lexical)))


def _nearness(columns: Columns, vectors: Floats, candidates: Mask, total: Floats, valid: Rows | None) -> Floats:
    """Return for each record how much its similarity to the question is above the average; 0 if it was not compared.

    The similarity is that of the vectors. Messages are compared with the question's first wording, other records with
    the last wording.
    """
    near = np.zeros(len(columns), np.float32)

    def also() -> Rows:
        return highest_rows(total, ALSO) if len(total) > ALSO else np.arange(len(total))

    talk = columns.kind.values == CHAT
    for vector, these in ((vectors[0], candidates & talk), (vectors[-1], candidates & ~talk)):
        if len(vector) == columns.width and these.any() and vector.any():
            rows, cosines = columns.vectors.near(vector, these, also)
            near[rows] = cosines
            if valid is not None:
                has_vector = columns.vectors.lengths.values > 0
                average = columns.vectors.nearer(vector, valid[has_vector[valid]])
                near[rows[has_vector[rows]]] -= average.sum() / np.float32(max(1, len(average)))
    return near


# Certainty: the probability, 0 to 1, that a record answers the question. It is a logistic function of three signals:
# the share of the question's words (weighted by rarity) that the best record and its neighbours contain, the share that
# no record of the stream contains, and how much more similar than average the most similar record is. It was fitted on
# an equal number of questions about the conversation in the stream (probability 1) and about other conversations
# (probability 0): benchmarks/talks.py.


COVERED, UNHEARD_OF, NEAR, BIAS = 3.9, -5.0, 0.39, -2.2
"""COVERED, UNHEARD_OF, NEAR: coefficients of the three signals of certainty (see `signs`). BIAS: the constant of the
logistic function. NEAR is small because its signal, the similarity of vectors, is scaled like a BM25 score."""
DATED = 2
"""A period in the question counts as at least this number of words. They count as found if a record that may be
returned was written in that period."""
LOW_CERTAINTY = 0.1
"""Certainty below which prompts leave out the results (`floor=LOW_CERTAINTY`). All interfaces (command line, terminal,
REST, MCP, studio) mark such results as "low confidence", unless a hit reaches LOW_CONFIDENCE."""
LOW_CONFIDENCE = 0.3
"""Confidence of a hit from which the results are not marked as "low confidence", even if the certainty is low."""
COVERED_BY_WORDS, UNHEARD_OF_BY_WORDS, BIAS_BY_WORDS = 5.6, -4.7, -1.3
"""COVERED, UNHEARD_OF and BIAS for a question without a compared vector. The signal of NEAR is not used then."""


def certainty(
    columns: Columns,
    question: RecallQuery,
    scored: Scored,
    candidates: Mask,
    by_words: bool = False,
    written_down: bool = False,
) -> float:
    """Return the certainty that one of the candidates answers the question.

    Args:
        candidates: marks the records that may be returned.
        by_words: whether only words were compared, not vectors.
        written_down: whether the question itself is a record of the stream.
    """
    covered, unheard_of, near = signs(columns, question, scored, candidates, int(written_down))
    if by_words:
        sure = BIAS_BY_WORDS + COVERED_BY_WORDS * covered + UNHEARD_OF_BY_WORDS * unheard_of
    else:
        sure = BIAS + COVERED * covered + UNHEARD_OF * unheard_of + NEAR * near
    return 1 / (1 + math.exp(-sure))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Coefficients of the confidence in a hit: the product of two logistic functions.

    The first function is the probability that the hit is right if the memory has an answer. The second function limits
    this probability by the evidence that the memory has an answer.

    Attributes:
        bias: the constant of the first function.
        certainty: coefficient of the log odds of the certainty.
        size: coefficient of the logarithm of the number of valid records in the stream; a higher number than `largest`
            counts as `largest`.
        gap: coefficient of the signed logarithm of the difference in relevance between the hit and the best of the
            other records.
        relevance: coefficient of the logarithm of the hit's relevance.
        largest: number of records above which the size of the memory makes no further difference.
        limit_bias, limit_certainty, limit_vector: the constant of the second function, and its coefficients of the log
            odds of the certainty and of the part `vector` of the hit's relevance.
    """

    bias: float = 2.947
    certainty: float = 0.177
    size: float = -1.744
    gap: float = 1.267
    relevance: float = 1.692
    largest: int = 700
    limit_bias: float = 1.0
    limit_certainty: float = 0.8
    limit_vector: float = 0.94

    def limit(self, certain: float, vector: float) -> float:
        """Return the maximum confidence of a hit, by the certainty of the whole recall and the part `vector` of the
        hit's relevance."""
        return _logistic(self.limit_bias + self.limit_certainty * log_odds(certain) + self.limit_vector * vector)


CALIBRATION = Calibration()
"""The coefficients were fitted on 2026-11-29 by `python benchmarks/confidence.py --fit` on half of the questions of
LoCoMo, REALTALK and BEAM, and on synthetic memories of 3 to 50 notes. One in four questions has no answer in the
memory. The coefficients `limit_*` were chosen on the same questions."""
NO_EVIDENCE = 0.002
"""If the certainty is below this, all confidences stay below LOW_CONFIDENCE."""


def confidences(certain: float, size: int, relevances: Sequence[float], vectors: Sequence[float]) -> list[float]:
    """Return for each of the best hits the probability that it answers the question, 0 to 1.

    Args:
        certain: the certainty that any record answers the question.
        size: number of valid records of the stream.
        relevances: relevance of the hits and of the next best records, in the order in which the policy ranks them.
        vectors: the part `vector` of the relevance of each hit; its length is the number of hits.
    """
    fit, odds = CALIBRATION, log_odds(certain)
    same = fit.bias + fit.certainty * odds + fit.size * math.log(max(1, min(size, fit.largest)))
    first, second = [*sorted(relevances, reverse=True), 0.0, 0.0][:2]
    own, near = np.array(relevances[: len(vectors)]), np.array(vectors)
    gap = own - np.where(own == first, second, first)
    sure = same + fit.gap * np.copysign(np.log1p(np.abs(gap)), gap) + fit.relevance * np.log1p(np.maximum(own, 0))
    limit = fit.limit_bias + fit.limit_certainty * odds + fit.limit_vector * near
    most = 0.99 * LOW_CONFIDENCE if certain < NO_EVIDENCE else 1.0
    found: list[float] = np.minimum(most, 1 / ((1 + np.exp(-sure)) * (1 + np.exp(-limit)))).tolist()
    return found


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-max(value, -500.0)))


def log_odds(probability: float) -> float:
    """Return the logarithm of the odds of a probability; 0 and 1 are replaced by values close to them."""
    within = min(max(probability, 1e-6), 1 - 1e-6)
    return math.log(within / (1 - within))


def signs(
    columns: Columns, question: RecallQuery, scored: Scored, candidates: Mask, asked: int = 0
) -> tuple[float, float, float]:
    """Return three signals of certainty:
    1. the share of the question's words that the best candidate and its neighbours cover;
    2. the share of the question's words that no record mentions;
    3. the highest score part `vector` of a candidate.

    Both shares are weighted by the rarity of the words. Names of speakers count as covered. Dates count as covered if a
    candidate was written on these dates.

    `candidates` marks the records that may be returned. `asked` is 1 if the question itself is a record of the stream;
    that record is not counted.
    """
    if not candidates.any():
        return 0.0, 1.0, 0.0
    index = columns.lexical
    is_dated = bool(question.spans) and bool(np.any(candidates & columns.inside(question.spans)))
    dates = question.date_terms if is_dated else ()
    words = [term for term in question.terms if term not in dates] if dates else question.terms
    counts = np.maximum(index.counts(words) - asked, 0)  # the record with the question itself does not count
    weights = telling_all(counts, len(index) + OTHERS)
    rarest = telling(0, len(index) + OTHERS)
    names = rarest * (len(set(question.name_terms)) + is_dated * max(DATED, len(dates)))
    known, total = float(weights[counts > 0].sum()), float(weights.sum()) + names
    most = float(telling_all(counts[counts > 0], len(index)).sum())
    best = scored.highest(("words", "neighbours"), candidates) / most if most else 0.0
    covered, unheard_of = (best * known + names, total - names - known) if total else (0.0, 0.0)
    return covered / (total or 1), unheard_of / (total or 1), scored.highest(("vector",), candidates)


@dataclass(frozen=True, slots=True)
class Signals:
    """Properties of some records, one row each.

    Attributes:
        relevance: how well the record answers the question.
        accessed: when a recall last returned the record; if none did, when it was written.
        importance: 1 to 10; NaN: not rated.
        strength: 0 to 1; 1/2 for kinds that neither strengthen nor decay.
    """

    relevance: Doubles
    accessed: Doubles
    importance: Doubles
    strength: Doubles


@dataclass(frozen=True, slots=True)
class Candidates:
    """All records that pass the filters.

    Attributes:
        relevance: the relevance of every record of the stream; minus infinity: the record is not a candidate.
        now: the moment of the question.
        signals: returns the properties of some rows.
        cosines: returns the cosine of the question's vector with the vector of each row; 0 without a vector.
        question: the question's own vector, of length 1; all zeros if there is none.
        vectors: returns the vector of each row, of length 1; all zeros if there is none.
    """

    relevance: NDArray[np.floating]
    now: Moment
    signals: Callable[[Rows], Signals]
    cosines: Callable[[Rows], Doubles]
    question: Floats
    vectors: Callable[[Rows], Floats]

    @property
    def rows(self) -> Rows:
        """The rows of the records that may be returned."""
        return np.flatnonzero(self.relevance > -np.inf)


class Ranking(NamedTuple):
    """The records that a policy ranks first, best first: their rows, their scores, and the parts of the scores."""

    rows: Rows
    scores: Doubles
    parts: Mapping[str, Doubles] = {}


SAMPLED = 8
"""Interval of the sample that `highest_rows` takes of the values: every eighth one."""
GROUPS_PER_VALUE = 4
"""`nth_highest` divides its values into GROUPS_PER_VALUE * n groups."""


class Policy(Protocol):
    """Ranks the records that a recall may return (the candidates)."""

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        """Return the n best candidates; of two with equal scores, the newer one comes first."""


def nth_highest(values: NDArray[np.floating], n: int) -> np.floating:
    """Return the n-th highest of at least n values.

    The values are divided into groups. Only the values that reach the n-th highest of the groups' maxima are
    partitioned; at least n values reach it. `np.partition` of all values takes up to a hundred times as long, above all
    if many values are equal.
    """
    groups = GROUPS_PER_VALUE * n
    if (each := len(values) // groups) > 1:
        maxima = values[: each * groups].reshape(each, groups).max(0)
        reaching = values[values >= np.partition(maxima, -n)[-n]]
        values = reaching if len(reaching) >= n else values  # fewer only if some values are NaN
    found: np.floating = np.partition(values, -n)[-n]
    return found


def highest_rows(values: Floats, n: int) -> Rows:
    """Return the rows of the n highest of more than n values, in any order. Of equal values, the result has the values
    that np.argpartition puts first.

    Only the values that reach a threshold are partitioned, which halves the time for 10,000 values. The threshold is
    estimated from a sample. All values are partitioned if at most n or at least 3 n values reach the threshold, or if
    the n-th and the next highest value are equal.
    """
    among = np.flatnonzero(values >= np.sort(values[::SAMPLED])[-(3 * n // (2 * SAMPLED)) :][0])
    if n < len(among) < 3 * n:
        order = np.argpartition(-values[among], n)
        rows = among[order[:n]]
        if values[rows].min() > values[among[order[n]]]:
            return rows
    return np.argpartition(-values, n)[:n]


def best(rows: Rows, scores: NDArray[np.floating], n: int, parts: Mapping[str, Doubles] | None = None) -> Ranking:
    """Return the n best of some rows by their scores; of two with equal scores, the newer one comes first."""
    among = np.arange(len(rows))
    if 0 < n < len(rows):
        among = np.flatnonzero(scores >= nth_highest(scores, n))
    order = among[np.lexsort((-rows[among], -scores[among]))][:n]
    return Ranking(
        rows[order], scores[order].astype(np.float64), {name: values[order] for name, values in (parts or {}).items()}
    )


@dataclass(frozen=True, slots=True)
class Bounded:
    """Ranks by relevance times three factors: for recency, importance and strength. Each factor raises or lowers the
    relevance by at most its share (0.05: five percent).

    The shares are small because an unbounded recency factor ruins recall. With a half-life of 30 days, the recall at 10
    on LoCoMo fell from 74.5 to 34.5 %.
    """

    recency: float = 0.05
    importance: float = 0.1
    strength: float = 0.1
    half_life_s: float = 7 * DAY_S
    by_relevance: ClassVar[bool] = True
    """True: only records with a relevance near the highest can be ranked first. So of a long stream, it is enough to
    rank a selection."""

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        rows = self._within_reach(candidates.relevance, n)
        signals = candidates.signals(rows)
        age = np.maximum(candidates.now - signals.accessed, 0)
        nudges = {
            "recency": 1 + self.recency * (2 * 0.5 ** (age / self.half_life_s) - 1),
            "importance": 1 + self.importance * (2 * rated(signals.importance) - 1),
            "strength": 1 + self.strength * (2 * signals.strength - 1),
        }
        factor = nudges["recency"] * nudges["importance"] * nudges["strength"]
        return best(rows, signals.relevance + np.abs(signals.relevance) * (factor - 1), n, nudges)

    def _within_reach(self, relevance: NDArray[np.floating], n: int) -> Rows:
        """Return the rows that can be among the n best.

        Each of the n most relevant rows scores at least the n-th highest relevance times the lowest factors. Rows whose
        relevance does not reach this score even with the highest factors are left out.
        """
        if n >= len(relevance):
            return np.flatnonzero(relevance > -np.inf)
        shares = [abs(self.recency), abs(self.importance), abs(self.strength)]
        least, most = math.prod(1 - share for share in shares) - 1, math.prod(1 + share for share in shares) - 1
        last = float(nth_highest(relevance, n))
        if last == -np.inf or max(shares) >= 1 or most >= 1:
            return np.flatnonzero(relevance > -np.inf)
        at_worst = last + abs(last) * least
        reach = at_worst / (1 + most if at_worst > 0 else 1 - most)
        return np.flatnonzero(relevance >= reach - 1e-6 * abs(reach))


@dataclass(frozen=True, slots=True)
class Generative:
    """Rank by the weighted sum of recency, importance and relevance, each min-max normalised over all candidates.

    Source: Generative Agents (Park 2023), section 4.1, with the weights (1, 1, 1). The code of the paper's authors uses
    (0.5, 2, 3) and a decay of 0.99.
    """

    recency: float = 1.0
    importance: float = 1.0
    relevance: float = 1.0
    decay: float = 0.995

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        rows = candidates.rows
        signals = candidates.signals(rows)
        hours = np.maximum(candidates.now - signals.accessed, 0) / HOUR_S
        parts = {
            "recency": self.recency * spread(self.decay**hours),
            "importance": self.importance * spread(rated(signals.importance)),
            "relevance": self.relevance * spread(signals.relevance),
        }
        return best(rows, parts["recency"] + parts["importance"] + parts["relevance"], n, parts)


@dataclass(frozen=True, slots=True)
class Cosine:
    """Rank only by the cosine of the record's vector and the question's vector (Gao 2024)."""

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        rows = candidates.rows
        return best(rows, candidates.cosines(rows), n)


def rated(importance: Doubles) -> Doubles:
    """Scale importance from 1 … 10 to 0 … 1; a record without a rating gets 0.5."""
    return np.where(np.isnan(importance), 0.5, np.minimum(np.maximum((importance - 1) / 9, 0), 1))


def spread(values: Doubles) -> Doubles:
    """Scale values to 0 … 1 between the lowest and the highest; if all are equal, each gets 0.5."""
    if not len(values):
        return values
    low, high = values.min(), values.max()
    if high - low < 1e-12:
        return np.full(len(values), 0.5)
    spread: Doubles = (values - low) / (high - low)
    return spread
