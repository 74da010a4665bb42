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

K1, B = 0.9, 0.4
GROUP_K1, GROUP_B = 1.2, 0.75
MOST_TIMES = 15


class Lexical:
    """An index of numbered documents: 0, 1, 2 … in the order in which they are added, each in one group or none."""

    def __init__(self) -> None:
        self._postings: dict[str, int | array[int]] = {}
        self._lengths = array("H")
        self._total = 0
        self._groups = array("i")
        self._sizes = array("L")

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

    def scores(self, terms: Iterable[str]) -> tuple[Floats, Floats]:
        """Return BM25 of every document (k1 0.9, b 0.4), and of every group taken as one text (k1 1.2, b 0.75)."""
        single, grouped = np.zeros(len(self), np.float32), np.zeros(len(self._sizes), np.float32)
        if not len(self):
            return single, grouped
        lengths = np.frombuffer(self._lengths, np.uint16)
        groups = np.frombuffer(self._groups, np.int32)
        sizes = np.array(self._sizes, np.float32)
        mean, group_mean = max(1.0, self._total / len(self)), float(sizes.mean()) if len(sizes) else 1.0
        for term in dict.fromkeys(terms):
            documents, times = self.matches(term)
            if not len(documents):
                continue
            idf = telling(len(documents), len(self))
            single[documents] += bm25(times, lengths[documents].astype(np.float32), mean, idf, K1, B)
            of = groups[documents]
            sums = np.bincount(of[of >= 0], times[of >= 0], len(sizes)).astype(np.float32)
            held = np.flatnonzero(sums)
            idf = telling(len(held), len(sizes))
            grouped[held] += bm25(sums[held], sizes[held], group_mean, idf, GROUP_K1, GROUP_B)
        return single, grouped


def telling(holds: int, of: int) -> float:
    """Return the inverse document frequency of a term that `holds` of `of` documents hold."""
    return math.log(1 + (of - holds + 0.5) / (holds + 0.5))


def bm25(times: Floats, lengths: Floats, mean: float, idf: float, k1: float, b: float) -> Floats:
    """Return Okapi's weight of one term in documents that hold it `times` times."""
    weights = idf * (k1 + 1) * times / (times + k1 * (1 - b) + k1 * b / mean * lengths)
    return weights.astype(np.float32, copy=False)
