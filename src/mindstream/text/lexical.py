"""BM25 over texts that keep coming: adding takes microseconds, asking is vectorised, nothing is ever rebuilt.

A posting is one number, `document << 4 | times` (times capped at 15). A term that stands in one document only, as most
do, costs a dictionary entry; the others a growing array.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mindstream.text.growing_array import GrowingArray
from mindstream.text.postings import NONE, Postings

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

NONE_REMOVED: Ints = np.empty(0, np.int64)
K1, B = 0.9, 0.25
GROUP_K1, GROUP_B = 1.2, 0.75
MOST_TIMES = 15


class Matches(NamedTuple):
    """Where terms were found: documents, in order for each term, how many times each, and how many a term has.

    Of a part of an index, `held` is how many a term has in the whole, and `of` where it was found there.
    """

    documents: Ints
    times: Floats
    counts: Ints
    held: Ints
    of: Matches | None = None


class Lexical:
    """An index of numbered documents: 0, 1, 2 … in the order in which they are added, each in one group or none."""

    def __init__(self) -> None:
        self.postings = Postings()
        self.sizes = GrowingArray(np.uint16)
        self.group = GrowingArray(np.int32)
        self.group_sizes = GrowingArray(np.float64)
        self.total = self.grouped = 0

    def __len__(self) -> int:
        return len(self.sizes)

    def add(self, terms: Sequence[str], group: int = -1) -> int:
        """Add a document; return its number. Groups are numbered from 0; -1: in none."""
        number, length = len(self.sizes), min(len(terms), 65_535)
        add = self.postings.add
        for term, times in Counter(terms).items():
            add(term, number << 4 | min(times, MOST_TIMES))
        self.sizes.append(length)
        self.group.append(group)
        self.total += length
        if group >= 0:
            while group >= len(self.group_sizes):
                self.group_sizes.append(0)
            self.group_sizes.values[group] += length
            self.grouped += length
        return number

    def without(
        self,
        gone: Mapping[int, Sequence[str]],
        changed: Mapping[int, tuple[Sequence[str], Sequence[str]]],
        removed: Ints,
        removed_below: NDArray[np.uint32],
    ) -> Lexical | None:
        """Return a copy in which some documents are removed, and others hold other terms; None: it cannot be made.

        Args:
            gone: the terms of the documents that are removed; `removed`: their numbers, in order.
            changed: of others the terms that they had, and those that they have now.
            removed_below: for each document how many before it are removed.
        """
        old: dict[str, list[int]] = {}
        for number, terms in (*gone.items(), *((number, before) for number, (before, _) in changed.items())):
            for term, times in Counter(terms).items():
                old.setdefault(term, []).append(number << 4 | min(times, MOST_TIMES))
        postings = self.postings.without(old, removed_below, 4)
        if postings is None:
            return None
        fresh = copy.copy(self)
        fresh.postings, fresh.group_sizes = postings, self.group_sizes.without(NONE_REMOVED)
        sizes = self.sizes.values.copy()
        for number, terms in (
            *((number, ()) for number in gone),
            *((number, now) for number, (_, now) in changed.items()),
        ):
            length, group = min(len(terms), 65_535), int(self.group.values[number])
            grown = length - int(sizes[number])
            sizes[number] = length
            fresh.total += grown
            if group >= 0:
                fresh.group_sizes.values[group] += grown
                fresh.grouped += grown
            for term, times in Counter(terms).items():
                postings.add(term, (number - int(removed_below[number])) << 4 | min(times, MOST_TIMES))
        fresh.sizes, fresh.group = self.sizes.without(removed), self.group.without(removed)
        fresh.sizes.values[:] = np.delete(sizes, removed)
        return fresh

    def matches(self, term: str) -> tuple[Ints, Floats]:
        """Return the documents that hold a term, in order, and how many times each."""
        found = self.matches_of([term])
        return found.documents, found.times

    def matches_of(self, terms: Sequence[str]) -> Matches:
        """Return the documents that hold each of these terms, term after term."""
        packed = [self.postings.of(term) for term in terms]
        counts = np.array([len(each) for each in packed], np.int64)
        joined = np.concatenate([NONE, *packed])
        return Matches((joined >> 4).astype(np.int64), (joined & MOST_TIMES).astype(np.float32), counts, counts)

    def counts(self, terms: Sequence[str]) -> Ints:
        """Return how many documents hold each of these terms."""
        return np.array([self.postings.count(term) for term in terms], np.int64)

    def idf(self, term: str) -> float:
        """Return how telling a term is: ln(1 + (N - n + 1/2) / (n + 1/2)), n of N documents hold it."""
        return telling(self.postings.count(term), len(self))

    def scores(self, terms: Iterable[str]) -> Floats:
        """Return BM25 of every document."""
        found = self.matches_of(list(dict.fromkeys(terms)))
        resistance = resisting(self.lengths(found.documents), self.mean_length, K1, B)
        weights = saturated(found.times, resistance, self.idf_of(found), K1)
        return np.bincount(found.documents, weights, self.documents).astype(np.float32)

    def idf_of(self, found: Matches) -> Floats:
        """Return for all that was found how telling its term is."""
        return np.repeat(telling_all(found.held, len(self)), found.counts)

    def lengths(self, documents: Ints) -> Floats:
        """Return how many terms these documents have."""
        return self.sizes.values[documents].astype(np.float32)

    @property
    def mean_length(self) -> float:
        """Return how many terms a document has on average, at least 1."""
        return max(1.0, self.total / max(1, len(self)))

    @property
    def documents(self) -> int:
        """Return how many documents may be found."""
        return len(self)

    @property
    def groups(self) -> int:
        """Return how many groups there are."""
        return len(self.group_sizes)

    @property
    def all_groups(self) -> int:
        """Return how many groups there are in the whole, of which this may be a part."""
        return self.groups

    def group_scores(self, found: Matches) -> Floats:
        """Return BM25 of every group, taken as one text, for the terms that were looked up."""
        of = self.group.values[found.documents]
        cells = np.repeat(np.arange(len(found.counts)) * self.groups, found.counts) + of
        inside, shape = of >= 0, (len(found.counts), self.groups)
        times = np.bincount(cells[inside], found.times[inside], shape[0] * shape[1]).reshape(shape).astype(np.float32)
        sizes = self.group_sizes.values.astype(np.float32)
        resistance = resisting(sizes, max(1.0, self.grouped / self.groups), GROUP_K1, GROUP_B)
        idf = telling_all(np.count_nonzero(times, axis=1), self.groups)
        scores: Floats = saturated(times, resistance, idf[:, None], GROUP_K1).sum(axis=0)
        return scores


def telling(holds: int, of: int) -> float:
    """Return the inverse document frequency of a term that `holds` of `of` documents hold."""
    return math.log(1 + (of - holds + 0.5) / (holds + 0.5))


def telling_all(holds: Ints, of: int) -> Floats:
    """Return `telling` of many terms."""
    idf: Floats = np.log(1 + (of - holds + 0.5) / (holds + 0.5)).astype(np.float32)
    return idf


def saturated(times: Floats, resistance: Floats, idf: Floats, k1: float) -> Floats:
    """Return Okapi's weights of terms that documents hold `times` times; at `resistance` times it is half."""
    weights: Floats = idf * np.float32(k1 + 1) * times
    weights /= times + resistance
    return weights


def resisting(lengths: Floats, mean: float, k1: float, b: float) -> Floats:
    """Return what the length of documents takes from each of their terms, as Okapi has it."""
    return np.float32(k1 * (1 - b)) + np.float32(k1 * b / mean) * lengths
