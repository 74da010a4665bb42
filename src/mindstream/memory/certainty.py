"""How sure recall is that anything in a stream answers a question: 0 to 1.

Three things are looked at, each against the stream itself: how much of what the question asks for the best record and
its neighbours cover (words count by how telling they are there), how much of it the stream has never mentioned, and how
much nearer than the average the nearest record is. A logistic function of them, fitted on questions of a talk (sure)
and of other talks (not), as many of each: benchmarks/talks.py measures it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mindstream.memory.columns import Columns
from mindstream.memory.question import Question
from mindstream.memory.relevance import OTHERS, Scored
from mindstream.text.lexical import telling, telling_all

COVERED, UNHEARD_OF, NEAR, BIAS = 3.9, -5.0, 0.39, -2.2
"""What each counts; the nearness is in units of BM25."""
COVERED_BY_WORDS, UNHEARD_OF_BY_WORDS, BIAS_BY_WORDS = 5.6, -4.7, -1.3
"""The same where there are no vectors to compare."""


def certainty(
    columns: Columns, question: Question, scored: Scored, candidates: NDArray[np.bool_], by_words: bool = False,
    written_down: bool = False,
) -> float:  # fmt: skip
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
    columns: Columns, question: Question, scored: Scored, candidates: NDArray[np.bool_], asked: int = 0
) -> tuple[float, float, float]:
    """Return what is covered and what is unheard of, as shares of the question, and how near the nearest record is."""
    if not np.any(candidates):
        return 0.0, 1.0, 0.0
    index = columns.lexical
    counts = np.maximum(index.counts(question.terms) - asked, 0)  # to have been asked is not to have been told
    weights = telling_all(counts, len(index) + OTHERS)
    rarest = telling(0, len(index) + OTHERS)
    names = rarest * len(set(question.name_terms))
    known, total = float(weights[counts > 0].sum()), float(weights.sum()) + names
    most = float(telling_all(counts[counts > 0], len(index)).sum())
    best = scored.highest(("words", "neighbours"), candidates) / most if most else 0.0
    covered, unheard_of = (best * known + names, total - names - known) if total else (0.0, 0.0)
    return covered / (total or 1), unheard_of / (total or 1), scored.highest(("vector",), candidates)
