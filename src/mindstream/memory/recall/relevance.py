"""How well each record of a stream answers a question: a sum of parts, all in units of BM25.

Tuned on LoCoMo and on talks of people and with an assistant (benchmarks/talks.py); every constant lies on a
plateau of all of them. What differs between talks is read from the stream: who says how much (store/column_lookups).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindstream.clock import DAY_S
from mindstream.memory.recall.question import RecallQuery
from mindstream.memory.store.columns import KIND_CODES, Columns
from mindstream.text.dates import DateSpan
from mindstream.text.lexical import K1, B, Matches, saturated, telling, telling_all

Floats = NDArray[np.float32]
Positions = NDArray[np.int64]
CHAT = KIND_CODES["chat"]
ALSO = 1000
"""So many of the best by words are compared by vector too, near or not."""
OTHERS = 100
"""A word is weighed against so many more records where a short stream should not make it light."""
TERMS_AT_ONCE = 16
"""So many words of a question are looked up at once; most questions have fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What each part counts. The last two are habits of one corpus (LoCoMo), so they are off.

    Attributes:
        vector: the cosine with the question, beyond what is usual in the stream.
        verbosity: how far a speaker who says more than the tersest one is measured by that one; 0: everybody alike.
        lends_all: a record of more words than this lends each of them less: it says more than one thing.
        next_to, second: the share of a word's weight that it lends next to it in the episode, and one further.
        same_speaker: one further, where the same one speaks again.
        answer: what a word of a question lends to what somebody else says next (the next record, or, where the one who
            asks goes on, the second): above 1, for it is the answer that is wanted.
        episode: BM25 of the whole episode.
        who: the only one that the question means said it; as a share of what a word weighs that one record alone
            holds, so that it decides as much in a long stream as in a short one.
        dates: it was written in the time that the question names.
        question: it is a question itself. opening: it is the first of its episode.
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
    question: float = 0.0
    opening: float = 0.0


def weights_for(embedder: str) -> Weights:
    """Return the weights for an embedder: a table of tokens is trusted less than a model that reads sentences."""
    return Weights(vector=16.0) if embedder == "wordllama" else Weights()


@dataclass(frozen=True, slots=True)
class Scored:
    """The relevance of all records of a stream; minus infinity: not a candidate."""

    total: Floats
    _parts: dict[str, Floats]

    def parts(self, rows: Positions) -> dict[str, list[float]]:
        """Return what some records' relevance is made of, row by row."""
        return {name: values[rows].tolist() for name, values in self._parts.items()}

    def highest(self, names: Sequence[str], among: NDArray[np.bool_]) -> float:
        """Return the highest sum of these parts among some records; 0: it is below that."""
        there = [self._parts[name] for name in names if name in self._parts]
        return float(np.max(sum(there), initial=0.0, where=among)) if there else 0.0


def relevance(
    columns: Columns, question: RecallQuery, vectors: Floats, candidates: NDArray[np.bool_], weights: Weights
) -> Scored:
    """Score all records of a stream; `vectors` are those of the question's wordings."""
    parts = _by_words(columns, question, weights)
    if question.who >= 0:
        parts["who"] = _said(columns, question) * np.float32(weights.who * telling(1, len(columns.lexical) + OTHERS))
    if question.spans:
        parts["dates"] = np.float32(weights.dates) * _dated(columns, question)
    if weights.question:
        parts["question"] = columns.ends_asking.values * np.float32(weights.question)
    if weights.opening:
        opens = (columns.group.values >= 0) & (columns.before.values < 0)
        parts["opening"] = opens * np.float32(weights.opening)
    total: Floats = sum(parts.values(), np.zeros(len(columns), np.float32))
    total[~candidates] = -np.inf
    parts["vector"] = np.float32(weights.vector) * _nearness(columns, vectors, candidates, total)
    return Scored(total + parts["vector"], parts)


def _by_words(columns: Columns, question: RecallQuery, weights: Weights) -> dict[str, Floats]:
    """Score by words, and in episodes by what neighbours and the whole episode lend.

    Each word counts once, where it weighs most: in the record itself or in a neighbour, times what that one lends.
    """
    index, count = columns.lexical, len(columns)
    words, reached = np.zeros(count, np.float32), np.zeros(count + 1, np.float32)
    episodes = np.zeros(index.groups + 1, np.float32)  # the last: in none
    resistance = Resistance(columns, weights.verbosity)
    reach = _Reach(columns, weights) if index.groups else None
    terms = list(dict.fromkeys(question.terms))
    for start in range(0, len(terms), TERMS_AT_ONCE):
        found = index.matches_of(terms[start : start + TERMS_AT_ONCE])
        lengths = index.lengths(found.documents)
        own = saturated(found.times, resistance(found.documents, lengths), index.idf_of(found), K1)
        words += np.bincount(found.documents, own, count).astype(np.float32)
        if reach:
            reach.add(reached, found, own, lengths)
            episodes[:-1] += index.group_scores(found)
    parts = {"words": words}
    if reach:
        parts["neighbours"] = reached[:-1] - words
        parts["episode"] = np.float32(weights.episode) * episodes[columns.group.values]
    if question.name_terms:
        named = index.scores(question.name_terms)
        named[columns.kind.values == CHAT] = 0
        parts["words"] = words + named
    return parts


class Resistance:
    """What the length of a record takes from each of its words.

    A message is measured by what its speaker usually says, and a speaker by the tersest of those who talk: so a long
    reply does not drown a short fact, while between people who say about as much nothing changes.
    """

    def __init__(self, columns: Columns, verbosity: float) -> None:
        others = max(1.0, columns.speakers.tersest() or columns.lexical.mean_length)
        usual = np.append(columns.speakers.usual_lengths(), others)
        factor = 1 + verbosity * (np.maximum(1, usual / others) - 1)
        self._still = (K1 * (1 - B) * factor).astype(np.float32)
        self._by_word = (K1 * B * factor / usual).astype(np.float32)
        self._by = columns.by.values
        self._kind = None if columns.only_talk else columns.kind.values
        self._others = len(usual) - 1

    def __call__(self, holds: Positions, lengths: Floats) -> Floats:
        """Return it for some records of these lengths."""
        by = self._by[holds]
        if self._kind is not None:
            by[(self._kind[holds] != CHAT) | (by >= self._others)] = -1
        resistance: Floats = self._by_word[by]
        resistance *= lengths
        resistance += self._still[by]
        return resistance


class _Reach:
    """Where a word counts: in the records that hold it and in their neighbours."""

    def __init__(self, columns: Columns, weights: Weights) -> None:
        self._weights = weights
        self._before = np.append(columns.before.values, np.int32(-1))
        self._after = np.append(columns.after.values, np.int32(-1))
        self._by = np.append(columns.by.values, np.int32(-1))
        self._asks = columns.asks.values
        self._best = np.zeros(len(columns) + 1, np.float32)

    def add(self, reached: Floats, found: Matches, own: Floats, lengths: Floats) -> None:
        """Add words' weights to all records that they reach; `lengths` are those of the records that hold them."""
        best, where, lent = self._best, *self._lend(found.documents, own, lengths)
        ends = 5 * np.cumsum(found.counts)
        for start, end in zip((0, *ends[:-1]), ends, strict=True):
            if start < end:
                best[:] = 0
                np.maximum.at(best, where[start:end], lent[start:end])
                reached += best

    def _lend(self, holds: Positions, own: Floats, lengths: Floats) -> tuple[Positions, Floats]:
        """Return the five records that each one reaches, itself among them, and with what."""
        weights = self._weights
        where, lent = np.empty((len(holds), 5), np.int64), np.empty((len(holds), 5), np.float32)
        where[:, 0], lent[:, 0] = holds, own
        where[:, 1], where[:, 2] = self._before[holds], self._after[holds]
        where[:, 3], where[:, 4] = self._before[where[:, 1]], self._after[where[:, 2]]
        by, asks = self._by[holds], self._asks[holds]
        goes_on = (by == self._by[where[:, 2]]) & (by >= 0)
        again = by == self._by[where[:, 4]]
        lent[:, 1], lent[:, 3] = weights.next_to, weights.second
        lent[:, 2] = np.where(asks & ~goes_on, weights.answer, weights.next_to)
        lent[:, 4] = np.where(again, weights.same_speaker, np.where(asks & goes_on, weights.answer, weights.second))
        lent[:, 1:] *= (own * np.minimum(1, weights.lends_all / np.maximum(lengths, 1)))[:, None]
        return where.reshape(-1), lent.reshape(-1)


def _said(columns: Columns, question: RecallQuery) -> NDArray[np.bool_]:
    """Mark what the one asked about has said; of one who is only meant by a pronoun, also what nobody else has said."""
    talk = columns.kind.values == CHAT
    said: NDArray[np.bool_] = (columns.by.values == question.who) & talk
    return said if question.name_terms or columns.only_talk else said | ~talk


def _written_in(columns: Columns, spans: Sequence[DateSpan]) -> NDArray[np.bool_]:
    """Mark the records that were written in any of these stretches of time."""
    created = columns.created.values
    inside = np.zeros(len(columns), np.bool_)
    for span in spans:
        inside |= (created >= span.since) & (created < span.until)
    return inside


def _dated(columns: Columns, question: RecallQuery) -> Floats:
    """Return how much it tells that a record lies in the time asked about; half of it shortly after."""
    created = columns.created.values
    inside = np.zeros(len(columns), np.float32)
    for span in question.spans:
        later = span.until + min(max(span.until - span.since, DAY_S), 7 * DAY_S)
        inside[(created >= span.until) & (created < later) & (inside < 0.5)] = 0.5
        inside[(created >= span.since) & (created < span.until)] = 1
    return inside * np.float32(telling(columns.entire.written_in(question.spans), len(columns.lexical)))


def _nearness(columns: Columns, vectors: Floats, candidates: NDArray[np.bool_], total: Floats) -> Floats:
    """Return how near the question records are: as worded for talk there, as it stands elsewhere; 0: as the average."""
    near = np.zeros(len(columns), np.float32)
    also = np.argpartition(-total, ALSO)[:ALSO] if len(total) > ALSO else np.arange(len(total))
    talk = columns.kind.values == CHAT
    for vector, these in ((vectors[0], candidates & talk), (vectors[-1], candidates & ~talk)):
        if len(vector) == columns.width and np.any(vector) and np.any(these):
            rows, cosines = columns.vectors.near(vector, these, also)
            near[rows] = cosines
    return near


# How sure recall is that anything in a stream answers a question: 0 to 1.
#
# Three things are looked at, each against the stream itself: how much of what the question asks for the best record
# and its neighbours cover (words count by how telling they are there), how much of it the stream has never mentioned,
# and how much nearer than the average the nearest record is. A logistic function of them, fitted on questions of a
# talk (sure) and of other talks (not), as many of each: benchmarks/talks.py measures it.


COVERED, UNHEARD_OF, NEAR, BIAS = 3.9, -5.0, 0.39, -2.2
"""What each counts; the nearness is in units of BM25."""
DATED = 2
"""Words that a time counts for at least, where a candidate was written then: it covers them."""
LOW_CERTAINTY = 0.1
"""The one threshold of certainty: what recall returns below it is marked "low confidence" by the command line, the
terminal, REST, MCP and the studio. Prompts leave it out (`floor=LOW_CERTAINTY`)."""
COVERED_BY_WORDS, UNHEARD_OF_BY_WORDS, BIAS_BY_WORDS = 5.6, -4.7, -1.3
"""The same where there are no vectors to compare."""


def certainty(
    columns: Columns,
    question: RecallQuery,
    scored: Scored,
    candidates: NDArray[np.bool_],
    by_words: bool = False,
    written_down: bool = False,
) -> float:
    """Return how sure it is that one of the candidates answers the question.

    `by_words`: there are no vectors. `written_down`: the question itself is a record of the stream, too.
    """
    covered, unheard_of, near = signs(columns, question, scored, candidates, int(written_down))
    if by_words:
        sure = BIAS_BY_WORDS + COVERED_BY_WORDS * covered + UNHEARD_OF_BY_WORDS * unheard_of
    else:
        sure = BIAS + COVERED * covered + UNHEARD_OF * unheard_of + NEAR * near
    return 1 / (1 + math.exp(-sure))


def signs(
    columns: Columns, question: RecallQuery, scored: Scored, candidates: NDArray[np.bool_], asked: int = 0
) -> tuple[float, float, float]:
    """Return what is covered and what is unheard of, as shares of the question, and how near the nearest record is."""
    if not np.any(candidates):
        return 0.0, 1.0, 0.0
    index = columns.lexical
    is_dated = bool(question.spans) and bool(np.any(candidates & _written_in(columns, question.spans)))
    dates = question.date_terms if is_dated else ()
    words = [term for term in question.terms if term not in dates] if dates else question.terms
    counts = np.maximum(index.counts(words) - asked, 0)  # to have been asked is not to have been told
    weights = telling_all(counts, len(index) + OTHERS)
    rarest = telling(0, len(index) + OTHERS)
    names = rarest * (len(set(question.name_terms)) + is_dated * max(DATED, len(dates)))
    known, total = float(weights[counts > 0].sum()), float(weights.sum()) + names
    most = float(telling_all(counts[counts > 0], len(index)).sum())
    best = scored.highest(("words", "neighbours"), candidates) / most if most else 0.0
    covered, unheard_of = (best * known + names, total - names - known) if total else (0.0, 0.0)
    return covered / (total or 1), unheard_of / (total or 1), scored.highest(("vector",), candidates)
