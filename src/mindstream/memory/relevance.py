"""How well each record of a stream answers a question: a sum of parts, all in units of BM25."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindstream.memory.columns import KIND_CODES, Columns
from mindstream.memory.question import Question

Floats = NDArray[np.float32]
Positions = NDArray[np.int64]
CHAT = KIND_CODES["chat"]
ALSO = 1000
"""So many of the best by words are compared by vector too, near or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What each part counts. The last two are habits of one corpus (LoCoMo), so they are off.

    Attributes:
        vector: nearness of the vectors.
        next_to, second: what a record lends to its neighbours in the same episode, and to the second ones.
        same_speaker: to the second one after it, who as a rule is the same speaker again.
        answer: what a question lends to the record after it.
        episode: BM25 of the whole episode.
        who: the only one named in the question said it.
        question: it is a question itself. opening: it is the first of its episode.
    """

    vector: float = 12.0
    next_to: float = 0.2
    second: float = 0.2
    same_speaker: float = 0.4
    answer: float = 0.75
    episode: float = 1.5
    who: float = 3.0
    question: float = 0.0
    opening: float = 0.0


@dataclass(frozen=True, slots=True)
class Scored:
    """The relevance of all records of a stream; minus infinity: not a candidate."""

    total: Floats
    _parts: dict[str, Floats]

    def parts(self, at: int) -> dict[str, float]:
        """Return what one record's relevance is made of."""
        return {name: float(values[at]) for name, values in self._parts.items()}

    def best(self) -> Iterator[Positions]:
        """Yield positions of candidates, best first, in growing portions."""
        total = self.total.astype(np.float64)
        left = int(np.count_nonzero(total > -np.inf))
        done, portion = 0, 256
        while done < left:
            upto = min(left, done + portion)
            some = np.argpartition(-total, upto - 1)[:upto] if upto < len(total) else np.arange(len(total))
            yield some[np.lexsort((-some, -total[some]))][done:upto]
            done, portion = upto, portion * 4


def relevance(
    columns: Columns, question: Question, vectors: Floats, candidates: NDArray[np.bool_], weights: Weights
) -> Scored:
    """Score all records of a stream."""
    words, episodes = columns.lexical.scores(question.terms)
    if question.name_terms:
        named, _ = columns.lexical.scores(question.name_terms)
        words += np.where(columns.kind.values == CHAT, 0, named).astype(np.float32)
    parts = {"words": words}
    if len(episodes):
        parts |= _context(columns, words, episodes, weights)
    if question.who >= 0:
        said = (columns.by.values == question.who) & (columns.kind.values == CHAT)
        parts["who"] = said * np.float32(weights.who)
    if weights.question:
        parts["question"] = columns.ends_asking.values * np.float32(weights.question)
    total: Floats = sum(parts.values(), np.zeros(len(columns), np.float32))
    total[~candidates] = -np.inf
    parts["vector"] = np.float32(weights.vector) * _nearness(columns, vectors, candidates, total)
    return Scored(total + parts["vector"], parts)


def _nearness(columns: Columns, vectors: Floats, candidates: NDArray[np.bool_], total: Floats) -> Floats:
    """Return cosines with the question: as worded for talk there, as it stands elsewhere; 0 where it is far anyway."""
    near = np.zeros(len(columns), np.float32)
    also = np.argpartition(-total, ALSO)[:ALSO] if len(total) > ALSO else np.arange(len(total))
    talk = columns.kind.values == CHAT
    for vector, these in ((vectors[0], candidates & talk), (vectors[-1], candidates & ~talk)):
        if np.any(vector) and np.any(these):
            rows, cosines = columns.vectors.near(vector, these, also)
            near[rows] = cosines
    return near


def _context(columns: Columns, words: Floats, episodes: Floats, weights: Weights) -> dict[str, Floats]:
    """Return what neighbours, a question before, and the episode lend."""
    lent = np.append(words, np.float32(0))  # position -1, nobody, lends nothing
    before, after = columns.before.values, columns.after.values
    second_before = np.append(before, -1)[before]
    second_after = np.append(after, -1)[after]
    asked = np.append(columns.asks.values, False)[before]
    neighbours = np.float32(weights.next_to) * (lent[before] + lent[after])
    neighbours += (
        np.float32(weights.same_speaker) * lent[second_before] + np.float32(weights.second) * lent[second_after]
    )
    parts = {
        "neighbours": neighbours,
        "answers": np.float32(weights.answer) * asked * lent[before],
        "episode": np.float32(weights.episode) * np.append(episodes, np.float32(0))[columns.group.values],
    }
    if weights.opening:
        opens = (columns.group.values >= 0) & (before < 0)
        parts["opening"] = opens * np.float32(weights.opening)
    return parts
