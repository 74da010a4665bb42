"""BM25 over texts that keep coming: adding takes microseconds, asking is vectorised, nothing is ever rebuilt.

A posting is one number, `document << 4 | times` (times capped at 15). A term that stands in one document only, as most
do, costs a dictionary entry; the others a growing array.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

K1, B = 0.9, 0.25
GROUP_K1, GROUP_B = 1.2, 0.75
MOST_TIMES = 15


class Lexical:
    """An index of numbered documents: 0, 1, 2 … in the order in which they are added, each in one group or none."""

    def __init__(self) -> None:
        self._postings: dict[str, int | array[int]] = {}
        self._lengths = array("H")
        self._total = 0
        self._groups = array("i")
        self._sizes = array("d")
        self._grouped = 0

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, terms: Sequence[str], group: int = -1) -> int:
        """Add a document; return its number. Groups are numbered from 0; -1: in none."""
        number, length = len(self._lengths), min(len(terms), 65_535)
        postings = self._postings
        for term, times in Counter(terms).items():
            posting = number << 4 | min(times, MOST_TIMES)
            there = postings.get(term)
            if there is None:
                postings[term] = posting
            elif isinstance(there, int):
                postings[term] = array("I", (there, posting))
            else:
                there.append(posting)
        self._lengths.append(length)
        self._groups.append(group)
        self._total += length
        if group >= 0:
            while group >= len(self._sizes):
                self._sizes.append(0)
            self._sizes[group] += length
            self._grouped += length
        return number

    def matches(self, term: str) -> tuple[Ints, Floats]:
        """Return the documents that hold a term, in order, and how many times each."""
        there = self._postings.get(term)
        if there is None:
            packed: NDArray[np.uint32] = np.empty(0, np.uint32)
        elif isinstance(there, int):
            packed = np.array([there], np.uint32)
        else:
            packed = np.frombuffer(there, np.uint32)
        return (packed >> 4).astype(np.int64), (packed & MOST_TIMES).astype(np.float32)

    def idf(self, term: str) -> float:
        """Return how telling a term is: ln(1 + (N - n + 1/2) / (n + 1/2)), n of N documents hold it."""
        there = self._postings.get(term)
        holds = 0 if there is None else 1 if isinstance(there, int) else len(there)
        return telling(holds, len(self))

    def scores(self, terms: Iterable[str]) -> Floats:
        """Return BM25 of every document."""
        scores = np.zeros(len(self), np.float32)
        for term in dict.fromkeys(terms):
            documents, times = self.matches(term)
            scores[documents] += self.weights(documents, times)
        return scores

    def weights(self, documents: Ints, times: Floats) -> Floats:
        """Return what one term weighs in the documents that hold it, as `matches` gives them."""
        lengths = np.frombuffer(self._lengths, np.uint16)[documents].astype(np.float32)
        mean = max(1.0, self._total / max(1, len(self)))
        return bm25(times, lengths, mean, telling(len(documents), len(self)), K1, B)

    @property
    def groups(self) -> int:
        """Return how many groups there are."""
        return len(self._sizes)

    def group_weights(self, documents: Ints, times: Floats) -> tuple[Ints, Floats]:
        """Return the groups that hold a term, and what it weighs in each taken as one text."""
        of = np.frombuffer(self._groups, np.int32)[documents]
        inside = of >= 0
        sums = np.bincount(of[inside], times[inside], self.groups).astype(np.float32)
        held = np.flatnonzero(sums)
        sizes = np.frombuffer(self._sizes, np.float64)[held].astype(np.float32)
        mean = max(1.0, self._grouped / self.groups)
        return held, bm25(sums[held], sizes, mean, telling(len(held), self.groups), GROUP_K1, GROUP_B)


def telling(holds: int, of: int) -> float:
    """Return the inverse document frequency of a term that `holds` of `of` documents hold."""
    return math.log(1 + (of - holds + 0.5) / (holds + 0.5))


def bm25(times: Floats, lengths: Floats, mean: float, idf: float, k1: float, b: float) -> Floats:
    """Return Okapi's weight of one term in documents that hold it `times` times."""
    weights = idf * (k1 + 1) * times / (times + k1 * (1 - b) + k1 * b / mean * lengths)
    return weights.astype(np.float32, copy=False)
