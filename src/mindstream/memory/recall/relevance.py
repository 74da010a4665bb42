"""How well each record of a stream answers a question: a sum of parts in units of BM25, and how certain recall is.

Tuned on LoCoMo and on conversations of people and with an assistant (benchmarks/talks.py); every constant is on a
plateau of all of them. How much each speaker says is read from the stream (store/column_lookups).
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
from mindstream.text.lexical import K1, B, Matches, saturated, telling, telling_all

Floats = NDArray[np.float32]
Positions = NDArray[np.int64]
CHAT = KIND_CODES["chat"]
ALSO = 1000
"""Number of the best records by words whose vectors are compared, near or not."""
OTHERS = 100
"""Number of records added to the size of a stream, so that words keep their weight in a short one."""
TERMS_AT_ONCE = 16
"""Number of words that are processed at once; most questions have fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weight of each part. The last two fit one corpus (LoCoMo), so they are off.

    Attributes:
        vector: of the cosine with the question, minus the average of the stream.
        verbosity: how far a verbose speaker's messages are measured by the tersest speaker; 0: all speakers alike.
        lends_all: number of words of a record from which on each of them contributes less to neighbours.
        next_to, second: share of a word's weight that neighbours in the episode get, and those one further.
        same_speaker: share one further, if the same speaker talks again.
        answer: share of a question's word that the answer gets, which is the next record of another speaker (the
            second one, if the asker goes on): above 1, because the answer is wanted.
        episode: of BM25 of the whole episode.
        who: of records by the only speaker that the question means; as a share of the weight of a word that only one
            record contains, so that it decides as much in a long stream as in a short one.
        dates: of records that were written in the period that the question names.
        question: of records that end with a question. opening: of the first record of an episode.
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
    """Return the weights for an embedder: vectors of a token table count less than those of a sentence model."""
    return Weights(vector=16.0) if embedder == "wordllama" else Weights()


@dataclass(frozen=True, slots=True)
class Scored:
    """The relevance of all records of a stream; minus infinity: no candidate."""

    total: Floats
    _parts: dict[str, Floats]

    def parts(self, rows: Positions) -> dict[str, list[float]]:
        """Return the parts of the relevance of some rows."""
        return {name: values[rows].tolist() for name, values in self._parts.items()}

    def highest(self, names: Sequence[str], among: NDArray[np.bool_]) -> float:
        """Return the highest sum of these parts among some records, at least 0."""
        there = [self._parts[name] for name in names if name in self._parts]
        return float(np.max(sum(there), initial=0.0, where=among)) if there else 0.0


def relevance(
    columns: Columns, question: RecallQuery, vectors: Floats, candidates: NDArray[np.bool_], weights: Weights
) -> Scored:
    """Score all records of a stream; `vectors`: of the question's wordings."""
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
    """Score by words, and in episodes by the words of neighbours and of the whole episode.

    Each word counts once, with its highest weight: in the record itself, or in a neighbour times its share.
    """
    index, count = columns.lexical, len(columns)
    words, reached = np.zeros(count, np.float32), np.zeros(count + 1, np.float32)
    episodes = np.zeros(index.groups + 1, np.float32)  # the last: no episode
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
    """How much the length of a record reduces the weight of each of its words.

    A message is compared with its speaker's usual length, and a speaker with the tersest one: so a long reply does not
    outweigh a short fact, and nothing changes between speakers who say about the same.
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
        by = self._by[holds]
        if self._kind is not None:
            by[(self._kind[holds] != CHAT) | (by >= self._others)] = -1
        resistance: Floats = self._by_word[by]
        resistance *= lengths
        resistance += self._still[by]
        return resistance


class _Reach:
    """The records in which a word counts: those that contain it, and their neighbours."""

    def __init__(self, columns: Columns, weights: Weights) -> None:
        self._weights = weights
        self._before = np.append(columns.before.values, np.int32(-1))
        self._after = np.append(columns.after.values, np.int32(-1))
        self._by = np.append(columns.by.values, np.int32(-1))
        self._asks = columns.asks.values
        self._best = np.zeros(len(columns) + 1, np.float32)

    def add(self, reached: Floats, found: Matches, own: Floats, lengths: Floats) -> None:
        """Add words' weights to all records that they reach; `lengths`: of the records that contain them."""
        best, where, lent = self._best, *self._lend(found.documents, own, lengths)
        ends = 5 * np.cumsum(found.counts)
        for start, end in zip((0, *ends[:-1]), ends, strict=True):
            if start < end:
                best[:] = 0
                np.maximum.at(best, where[start:end], lent[start:end])
                reached += best

    def _lend(self, holds: Positions, own: Floats, lengths: Floats) -> tuple[Positions, Floats]:
        """Return the five records that each one reaches, including itself, and the weights that they get."""
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
    """Mark the messages of the speaker asked about; if only a pronoun names it, also records that are no messages."""
    talk = columns.kind.values == CHAT
    said: NDArray[np.bool_] = (columns.by.values == question.who) & talk
    return said if question.name_terms or columns.only_talk else said | ~talk


def _dated(columns: Columns, question: RecallQuery) -> Floats:
    """Return the weight of having been written in the period asked about; half of it shortly after."""
    created = columns.created.values
    inside = np.zeros(len(columns), np.float32)
    for span in question.spans:
        later = span.until + min(max(span.until - span.since, DAY_S), 7 * DAY_S)
        inside[(created >= span.until) & (created < later) & (inside < 0.5)] = 0.5
        inside[(created >= span.since) & (created < span.until)] = 1
    return inside * np.float32(telling(columns.entire.written_in(question.spans), len(columns.lexical)))


def _nearness(columns: Columns, vectors: Floats, candidates: NDArray[np.bool_], total: Floats) -> Floats:
    """Return how much nearer than average records are: messages to the first wording, other records to the last."""
    near = np.zeros(len(columns), np.float32)
    also = np.argpartition(-total, ALSO)[:ALSO] if len(total) > ALSO else np.arange(len(total))
    talk = columns.kind.values == CHAT
    for vector, these in ((vectors[0], candidates & talk), (vectors[-1], candidates & ~talk)):
        if len(vector) == columns.width and np.any(vector) and np.any(these):
            rows, cosines = columns.vectors.near(vector, these, also)
            near[rows] = cosines
    return near


# Certainty, 0 to 1, that a record answers the question: a logistic function of three signs, relative to the stream:
# which share of the question the best record and its neighbours cover (words weighted by their rarity), which share the
# stream has never mentioned, and how much nearer than average the nearest record is. Fitted on questions of a
# conversation (certain) and of other conversations (not), the same number of each: benchmarks/talks.py measures it.


COVERED, UNHEARD_OF, NEAR, BIAS = 3.9, -5.0, 0.39, -2.2
"""Coefficients; the nearness is in units of BM25."""
DATED = 2
"""Minimum number of words that a period counts for if a candidate was written in it and so covers them."""
LOW_CERTAINTY = 0.1
"""The threshold of certainty: results below it are marked "low confidence" by the command line, the terminal, REST, MCP
and the studio, and left out of prompts (`floor=LOW_CERTAINTY`)."""
LOW_CONFIDENCE = 0.3
"""The confidence in a hit from which on it is not marked, whatever the certainty."""
COVERED_BY_WORDS, UNHEARD_OF_BY_WORDS, BIAS_BY_WORDS = 5.6, -4.7, -1.3
"""The same without vectors."""


def certainty(
    columns: Columns,
    question: RecallQuery,
    scored: Scored,
    candidates: NDArray[np.bool_],
    by_words: bool = False,
    written_down: bool = False,
) -> float:
    """Return the certainty that one of the candidates answers the question.

    Args:
        by_words: there are no vectors.
        written_down: the question itself is a record of the stream.
    """
    covered, unheard_of, near = signs(columns, question, scored, candidates, int(written_down))
    if by_words:
        sure = BIAS_BY_WORDS + COVERED_BY_WORDS * covered + UNHEARD_OF_BY_WORDS * unheard_of
    else:
        sure = BIAS + COVERED * covered + UNHEARD_OF * unheard_of + NEAR * near
    return 1 / (1 + math.exp(-sure))


@dataclass(frozen=True, slots=True)
class Calibration:
    """Coefficients of the confidence in a hit: a logistic function of these signs.

    Attributes:
        certainty: of the log odds of `certainty`.
        size: of the logarithm of the number of records, at most `largest`: in longer memories it adds nothing.
        gap: of the signed logarithm of its distance, in relevance, to the best of the other records.
        relevance: of the logarithm of its relevance.
    """

    bias: float = 0.27
    certainty: float = 0.195
    size: float = -1.443
    gap: float = 1.23
    relevance: float = 1.953
    largest: int = 700


CALIBRATION = Calibration()
"""Fitted on 2026-11-29 by `python benchmarks/confidence.py --fit` on half of the questions of LoCoMo, REALTALK and
BEAM, and on made-up memories of 3 to 50 notes. One question of four has no answer in the memory."""


def confidences(certain: float, size: int, relevances: Sequence[float], n: int) -> list[float]:
    """Return for each of the n best hits the probability that it answers the question, 0 to 1.

    Args:
        certain: the certainty that any record answers.
        size: number of records of the stream.
        relevances: of the hits and the next best records.
    """
    fit, certain = CALIBRATION, min(max(certain, 1e-6), 1 - 1e-6)
    same = fit.bias + fit.certainty * math.log(certain / (1 - certain)) + fit.size * math.log(min(size, fit.largest))
    first, second = [*sorted(relevances, reverse=True), 0.0, 0.0][:2]
    found = []
    for own in relevances[:n]:
        gap = own - (second if own == first else first)
        sure = same + fit.gap * math.copysign(math.log1p(abs(gap)), gap) + fit.relevance * math.log1p(max(own, 0.0))
        found.append(1 / (1 + math.exp(-sure)))
    return found


def signs(
    columns: Columns, question: RecallQuery, scored: Scored, candidates: NDArray[np.bool_], asked: int = 0
) -> tuple[float, float, float]:
    """Return the shares of the question that are covered and never mentioned, and how near the nearest record is."""
    if not np.any(candidates):
        return 0.0, 1.0, 0.0
    index = columns.lexical
    is_dated = bool(question.spans) and bool(np.any(candidates & columns.inside(question.spans)))
    dates = question.date_terms if is_dated else ()
    words = [term for term in question.terms if term not in dates] if dates else question.terms
    counts = np.maximum(index.counts(words) - asked, 0)  # the question itself mentions nothing
    weights = telling_all(counts, len(index) + OTHERS)
    rarest = telling(0, len(index) + OTHERS)
    names = rarest * (len(set(question.name_terms)) + is_dated * max(DATED, len(dates)))
    known, total = float(weights[counts > 0].sum()), float(weights.sum()) + names
    most = float(telling_all(counts[counts > 0], len(index)).sum())
    best = scored.highest(("words", "neighbours"), candidates) / most if most else 0.0
    covered, unheard_of = (best * known + names, total - names - known) if total else (0.0, 0.0)
    return covered / (total or 1), unheard_of / (total or 1), scored.highest(("vector",), candidates)
