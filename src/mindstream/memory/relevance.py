"""How well each record of a stream answers a question: a sum of parts, all in units of BM25.

Tuned on LoCoMo (see benchmarks/locomo.py); every constant lies on a plateau.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindstream.clock import DAY_S
from mindstream.memory.columns import KIND_CODES, Columns
from mindstream.memory.question import Question
from mindstream.text.lexical import telling

Floats = NDArray[np.float32]
Positions = NDArray[np.int64]
CHAT = KIND_CODES["chat"]
ALSO = 1000
"""So many of the best by words are compared by vector too, near or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What each part counts. The last two are habits of one corpus (LoCoMo), so they are off.

    Attributes:
        vector: the cosine with the question, beyond what is usual in the stream.
        next_to, second: the share of a word's weight that it lends next to it in the episode, and one further.
        same_speaker: one further, where the same one speaks again.
        answer: what a word of a question lends to the record after it: above 1, for it is the answer that is wanted.
        episode: BM25 of the whole episode.
        who: the only one named in the question said it.
        dates: it was written in the time that the question names.
        question: it is a question itself. opening: it is the first of its episode.
    """

    vector: float = 22.0
    next_to: float = 0.3
    second: float = 0.3
    same_speaker: float = 0.6
    answer: float = 1.3
    episode: float = 1.5
    who: float = 3.0
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

    def parts(self, at: int) -> dict[str, float]:
        """Return what one record's relevance is made of."""
        return {name: float(values[at]) for name, values in self._parts.items()}


def relevance(
    columns: Columns, question: Question, vectors: Floats, candidates: NDArray[np.bool_], weights: Weights
) -> Scored:
    """Score all records of a stream; `vectors` are those of the question's wordings."""
    parts = _by_words(columns, question, weights)
    if question.who >= 0:
        said = (columns.by.values == question.who) & (columns.kind.values == CHAT)
        parts["who"] = said * np.float32(weights.who)
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


def _by_words(columns: Columns, question: Question, weights: Weights) -> dict[str, Floats]:
    """Score by words, and in episodes by what neighbours and the whole episode lend.

    Each word counts once, where it weighs most: in the record itself or in a neighbour, times what that one lends.
    """
    index, count = columns.lexical, len(columns)
    words, reached = np.zeros(count, np.float32), np.zeros(count + 1, np.float32)
    episodes = np.zeros(index.groups + 1, np.float32)  # the last: in none
    reach = _Reach(columns, weights) if index.groups else None
    for term in dict.fromkeys(question.terms):
        holds, times = index.matches(term)
        if not len(holds):
            continue
        own = index.weights(holds, times)
        words[holds] += own
        if reach:
            reach.add(reached, holds, own)
            groups, lent = index.group_weights(holds, times)
            episodes[groups] += lent
    parts = {"words": words}
    if reach:
        parts["neighbours"] = reached[:-1] - words
        parts["episode"] = np.float32(weights.episode) * episodes[columns.group.values]
    if question.name_terms:
        named = index.scores(question.name_terms)
        named[columns.kind.values == CHAT] = 0
        parts["words"] = words + named
    return parts


class _Reach:
    """Where a word counts: in the records that hold it and in their neighbours."""

    def __init__(self, columns: Columns, weights: Weights) -> None:
        self._weights = weights
        self._before = np.append(columns.before.values, np.int32(-1))
        self._after = np.append(columns.after.values, np.int32(-1))
        self._by = np.append(columns.by.values, np.int32(-1))
        self._asks = columns.asks.values
        self._best = np.zeros(len(columns) + 1, np.float32)

    def add(self, reached: Floats, holds: Positions, own: Floats) -> None:
        """Add a word's weight to all records that it reaches."""
        weights, best = self._weights, self._best
        best[:] = 0
        best[holds] = own
        before, after = self._before[holds], self._after[holds]
        second_before, second_after = self._before[before], self._after[after]
        lends = np.where(self._asks[holds], np.float32(weights.answer), np.float32(weights.next_to))
        again = self._by[holds] == self._by[second_after]
        lends_further = np.where(again, np.float32(weights.same_speaker), np.float32(weights.second))
        for where, lent in (
            (before, own * np.float32(weights.next_to)),
            (after, own * lends),
            (second_before, own * np.float32(weights.second)),
            (second_after, own * lends_further),
        ):
            best[where] = np.maximum(best[where], lent)
        reached += best


def _dated(columns: Columns, question: Question) -> Floats:
    """Return how much it tells that a record lies in the time asked about; half of it shortly after."""
    created = columns.created.values
    inside = np.zeros(len(columns), np.float32)
    for span in question.spans:
        later = span.until + min(max(span.until - span.since, DAY_S), 7 * DAY_S)
        inside[(created >= span.until) & (created < later) & (inside < 0.5)] = 0.5
        inside[(created >= span.since) & (created < span.until)] = 1
    return inside * np.float32(telling(int(np.count_nonzero(inside == 1)), len(columns)))


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
