"""An incremental BM25 index: adding a document takes microseconds and rebuilds nothing; queries are vectorised.

A posting is one number: `document << 4 | times`; `times` (how often the document has the term) is at most 15. Most
terms occur in only one document and need one dictionary entry; other terms have a growing array. Terms of an index in a
file are identified by 64 bits of their hash, so the file contains no words, and a lookup is a binary search.
"""

from __future__ import annotations

import copy
import hashlib
import math
import mmap
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from mindstream.arrays import Array, Floats, Ints
from mindstream.text.words import batches

T = TypeVar("T", bound=np.generic)
Numbers = NDArray[np.uint32]
PORTION = 4_096
NONE: Numbers = np.empty(0, np.uint32)


MAX_FOUND = 1_024
"""Maximum number of keys whose place in a file's array is remembered after a lookup."""


class Postings:
    """Stores numbers under text keys, such as a term and its postings. Each key's numbers stay in the order of
    addition."""

    def __init__(self) -> None:
        self._new: dict[str, int | array[int]] = {}
        self._hashes: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._starts: Ints = np.zeros(1, np.int64)
        self._kept: Numbers = NONE
        self._found: dict[str, tuple[int, int]] = {}

    def add(self, key: str, number: int) -> None:
        """Add a number to a key."""
        there = self._new.get(key)
        if there is None:
            self._new[key] = number
        elif isinstance(there, int):
            self._new[key] = array("I", (there, number))
        else:
            there.append(number)

    def of(self, key: str) -> Numbers:
        """Return the numbers of a key, in the order of addition; the array must not be used after the next `add`."""
        new, kept = _numbers(self._new.get(key)), self._kept_of(key)
        if not len(kept):
            return new
        return np.concatenate((kept, new)) if len(new) else kept

    def count(self, key: str) -> int:
        """Return how many numbers are stored under a key."""
        new = self._new.get(key)
        return len(self._kept_of(key)) + (0 if new is None else 1 if isinstance(new, int) else len(new))

    def _kept_of(self, key: str) -> Numbers:
        begin, end = self._kept_range(key)
        return self._kept[begin:end]

    def _kept_range(self, key: str) -> tuple[int, int]:
        if not len(self._hashes):
            return 0, 0
        if key not in self._found:
            wanted, found = hashed(key), (0, 0)
            at = int(np.searchsorted(self._hashes, wanted))
            if at < len(self._hashes) and self._hashes[at] == wanted:
                found = int(self._starts[at]), int(self._starts[at + 1])
            if len(self._found) >= MAX_FOUND:
                self._found.clear()
            self._found[key] = found
        return self._found[key]

    def without(self, gone: Mapping[str, Sequence[int]], removed_below: Numbers, bits: int = 0) -> Postings | None:
        """Return a copy without some of the keys' numbers. In the copy, documents after removed documents have lower
        numbers.

        The high bits of each number of a key are the number of a document. Return None if a number to remove is not
        stored.

        Args:
            gone: by key, the numbers to remove.
            removed_below: for each document, how many documents before it are removed.
            bits: number of low bits of a number that are not part of the document's number.
        """
        fresh, holes, emptied = Postings(), list[int](), list[int]()
        fresh._new = dict(self._new)
        for key, numbers in gone.items():
            for number in numbers:
                there = _numbers(fresh._new.get(key))
                if len(at := np.flatnonzero(there == number)):
                    left = np.delete(there, at[0])
                    fresh._new[key] = array("I", left.tobytes())
                    if not len(left):
                        del fresh._new[key]
                    continue
                begin, end = self._kept_range(key)
                found = [each for each in begin + np.flatnonzero(self._kept[begin:end] == number) if each not in holes]
                if not found:
                    return None
                holes.append(int(found[0]))
        kept, starts = without_rows(self._kept, sorted(holes)), self._starts.copy()
        for hole in holes:
            starts[np.searchsorted(self._starts, hole, side="right") :] -= 1
        emptied = np.flatnonzero((np.diff(starts) == 0) & (np.diff(self._starts) > 0)).tolist()
        fresh._hashes, fresh._starts = without_rows(self._hashes, emptied), without_rows(starts, emptied)
        fresh._kept = _moved_up(kept, removed_below, bits) if len(kept) else kept
        fresh._move_up(removed_below, bits)
        return fresh

    def _move_up(self, removed_below: Numbers, bits: int) -> None:
        for key, there in self._new.items():
            if isinstance(there, int):
                self._new[key] = there - (int(removed_below[there >> bits]) << bits)
            else:
                numbers = _numbers(there)
                moved = numbers - (removed_below[numbers >> bits] << np.uint32(bits))
                self._new[key] = array("I", moved.astype(np.uint32).tobytes())

    def copying(self, below: int, found: dict[str, Array]) -> Iterator[Callable[[], None]]:
        """Collect all numbers below `below` into arrays, in steps, and put the arrays into `found`. Each step yields a
        function that does the rest of the step in any thread.

        Numbers may be added between two steps. The collected arrays do not change later.
        """
        keys, hashes, parts = list(self._new), list[int](), list[Numbers]()
        for some in batches(keys, PORTION):
            for key in some:
                parts.append(_below(_numbers(self._new[key]), below))
                hashes.append(int(hashed(key)))
            yield lambda: None
        kept = self._hashes, self._starts, self._kept

        def join() -> None:
            joined = merged(kept, np.array(hashes, np.uint64), parts)
            found["hashes"], found["starts"], found["numbers"] = joined

        yield join

    def adopt(self, arrays: Mapping[str, Array]) -> None:
        """Replace the stored numbers by the arrays that `copying` has collected."""
        self._found.clear()
        self._hashes, self._starts, self._kept = arrays["hashes"], arrays["starts"], arrays["numbers"]


def merged(
    kept: tuple[NDArray[np.uint64], Ints, Numbers],
    hashes: NDArray[np.uint64],
    parts: Sequence[Numbers],
) -> tuple[NDArray[np.uint64], Ints, Numbers]:
    """Merge the stored numbers of keys (see Postings) with new numbers.

    The new numbers of a key follow the stored numbers of the same key.

    Args:
        kept: three arrays: the hashes of the stored keys, the start of each key's numbers, and all numbers.
        hashes: the hashes of the keys with new numbers.
        parts: the new numbers of each of these keys.
    """
    old_hashes, old_starts, old = kept
    all_hashes = np.union1d(old_hashes, hashes)
    old_at, at = np.searchsorted(all_hashes, old_hashes), np.searchsorted(all_hashes, hashes)
    old_counts, counts = np.diff(old_starts), np.array([len(part) for part in parts], np.int64)
    starts = np.zeros(len(all_hashes) + 1, np.int64)
    starts[1:] = np.cumsum(np.bincount(old_at, old_counts, len(all_hashes)) + _summed(at, counts, len(all_hashes)))
    values = np.empty(int(starts[-1]), np.uint32)
    values[np.repeat(starts[old_at] - old_starts[:-1], old_counts) + np.arange(len(old))] = old
    reached = starts[:-1].copy()
    reached[old_at] += old_counts
    for where, part in zip(at.tolist(), parts, strict=True):
        begins = reached[where]
        values[begins : begins + len(part)] = part
        reached[where] += len(part)
    return all_hashes, starts, values


def _summed(at: Ints, counts: Ints, length: int) -> Ints:
    return np.bincount(at, counts, length).astype(np.int64)


def hashed(key: str) -> np.uint64:
    """Return 64 bits of a key's hash."""
    return np.uint64(int.from_bytes(hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()))


SPARE = 1_024
"""Number of further rows for which a copy has space, so that adding a record does not copy the array again."""
FEW = 8
"""Maximum number of removed rows for which copying the ranges between them is faster than a mask over all rows."""


def without_rows(rows: NDArray[T], removed: Sequence[int], into: NDArray[T] | None = None) -> NDArray[T]:
    """Return a copy of an array without some rows.

    Args:
        removed: the rows to leave out, in ascending order.
        into: an array that the copy is written to, from its beginning, and that is returned; None: a new one.
    """
    count = len(rows) - len(removed)
    copied = np.empty((count, *rows.shape[1:]), rows.dtype) if into is None else into
    if len(removed) > FEW:
        copied[:count] = np.delete(rows, removed, axis=0)
        return copied
    for shift, (begin, end) in enumerate(pairwise([-1, *removed, len(rows)])):
        copied[begin + 1 - shift : end - shift] = rows[begin + 1 : end]
    return copied


def _moved_up(numbers: Numbers, removed_below: Numbers, bits: int) -> Numbers:
    """Renumber documents in numbers whose high bits are a document's number: subtract the number of removed documents
    before the document."""
    removed = np.flatnonzero(np.diff(removed_below))
    moved: Numbers = numbers
    if len(removed) > FEW:
        moved = numbers - (removed_below[numbers >> bits] << np.uint32(bits))
        removed = removed[:0]
    for document in removed[::-1].tolist():
        is_after: Numbers = (moved >= (document + 1) << bits).astype(np.uint32)
        moved = moved - (is_after << np.uint32(bits))
    return moved


def _below(numbers: Numbers, limit: int) -> Numbers:
    """Copy the numbers below a limit, so that no view of a growing array is kept."""
    return numbers[numbers < limit]


def _numbers(numbers: int | array[int] | None) -> Numbers:
    if numbers is None:
        return NONE
    return np.array([numbers], np.uint32) if isinstance(numbers, int) else np.frombuffer(numbers, np.uint32)


class GrowingArray(Generic[T]):
    """An array to which rows can be added at amortised constant cost."""

    def __init__(self, dtype: type[T], width: int | None = None) -> None:
        self._width = width
        self._rows: NDArray[T] = self._empty(16, dtype)
        self._count = 0

    def _empty(self, rows: int, dtype: DTypeLike) -> NDArray[T]:
        shape = (rows,) if self._width is None else (rows, self._width)
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size < MAPPED:
            return np.zeros(shape, dtype)
        # Not on the heap: each smaller array that this one replaces would leave a hole there.
        return np.frombuffer(mmap.mmap(-1, size, access=mmap.ACCESS_COPY), dtype).reshape(shape)

    def __len__(self) -> int:
        return self._count

    def reserve(self, rows: int) -> None:
        """Reserve space for this many rows in total."""
        if rows > len(self._rows):
            grown = self._empty(rows, self._rows.dtype)
            grown[: self._count] = self.values
            self._rows = grown

    def adopt(self, rows: NDArray[T], count: int) -> None:
        """Use the first `count` rows of an array, and its other rows as reserved space."""
        self._rows, self._count = rows, count

    def append(self, row: ArrayLike) -> None:
        if self._count == len(self._rows):
            self.reserve(self._count + max(16, self._count // 4))
        self._rows[self._count] = row
        self._count += 1

    def without(self, rows: Ints) -> GrowingArray[T]:
        """Return a copy without some rows, with space for more rows."""
        fresh, count = GrowingArray(self._rows.dtype.type, self._width), self._count - len(rows)
        grown = np.empty((count + SPARE, *self._rows.shape[1:]), self._rows.dtype)
        fresh._rows, fresh._count = without_rows(self.values, rows.tolist(), grown), count
        return fresh

    @property
    def values(self) -> NDArray[T]:
        """Return the rows: a view, valid until the next append."""
        return self._rows[: self._count]


MAPPED = 1 << 18
"""Minimum size, in bytes, of an array that gets its own memory from the operating system."""
NONE_REMOVED: Ints = np.empty(0, np.int64)
K1, B = 0.9, 0.25
GROUP_K1, GROUP_B = 1.2, 0.75
MAX_TIMES, MAX_TERMS = 15, 65_535


def _postings(document: int, terms: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield each term of a document with its posting. A posting is one number that has the document's number and the
    count of the term in the document (at most MAX_TIMES)."""
    counts = dict.fromkeys(terms, 0)
    for term in terms:
        counts[term] += 1
    return ((term, document << 4 | min(times, MAX_TIMES)) for term, times in counts.items())


class Matches(NamedTuple):
    """The matches of terms, one term after the other.

    Attributes:
        documents: for one term after the other, the numbers of the documents that contain the term, in ascending order.
        times: for each entry of `documents`, the count of the term in the document.
        counts: for each term, the number of documents that contain it.
        held: for each term, the number of documents that contain it in the whole index. The matches may be those of a
            part of the index.
        of: if these are the matches in a part of an index, the matches in the whole index; otherwise None.
    """

    documents: Ints
    times: Floats
    counts: Ints
    held: Ints
    of: Matches | None = None


class Lexical:
    """An index of documents, numbered 0, 1, 2 … in the order of addition, each in one group or none."""

    def __init__(self) -> None:
        self.postings = Postings()
        self.sizes = GrowingArray(np.uint16)
        self.group = GrowingArray(np.int32)
        self.group_sizes = GrowingArray(np.float64)
        self.total = self.grouped = 0

    def __len__(self) -> int:
        return len(self.sizes)

    def add(self, terms: Sequence[str], group: int = -1) -> int:
        """Add a document; return its number. Groups are numbered from 0; -1: no group."""
        number, length = len(self.sizes), min(len(terms), MAX_TERMS)
        add = self.postings.add
        for term, posting in _postings(number, terms):
            add(term, posting)
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
        """Return a copy in which some documents are removed and others have other terms; None if some of the old terms
        are not stored.

        Args:
            gone: by number, the terms of each removed document.
            changed: by number, the old and the new terms of each changed document.
            removed: the numbers of the removed documents, in order.
            removed_below: for each document, how many documents before it are removed.
        """
        old: dict[str, list[int]] = {}
        for number, terms in (*gone.items(), *((number, before) for number, (before, _) in changed.items())):
            for term, posting in _postings(number, terms):
                old.setdefault(term, []).append(posting)
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
            length, group = min(len(terms), MAX_TERMS), int(self.group.values[number])
            grown = length - int(sizes[number])
            sizes[number] = length
            fresh.total += grown
            if group >= 0:
                fresh.group_sizes.values[group] += grown
                fresh.grouped += grown
            for term, posting in _postings(number - int(removed_below[number]), terms):
                postings.add(term, posting)
        fresh.sizes, fresh.group = self.sizes.without(removed), self.group.without(removed)
        fresh.sizes.values[:] = without_rows(sizes, removed.tolist())
        return fresh

    def matches(self, term: str) -> tuple[Ints, Floats]:
        """Return the documents that contain a term, in order, and its count in each."""
        found = self.matches_of([term])
        return found.documents, found.times

    def matches_of(self, terms: Sequence[str]) -> Matches:
        """Return, for one term after the other, the documents that contain it."""
        packed = [self.postings.of(term) for term in terms]
        counts = np.array([len(each) for each in packed], np.int64)
        joined = np.concatenate([NONE, *packed])
        return Matches((joined >> 4).astype(np.int64), (joined & MAX_TIMES).astype(np.float32), counts, counts)

    def counts(self, terms: Sequence[str]) -> Ints:
        """Return how many documents contain each of these terms."""
        return np.array([self.postings.count(term) for term in terms], np.int64)

    def scores(self, terms: Iterable[str]) -> Floats:
        """Return BM25 of every document."""
        return self.scores_of(self.matches_of(list(dict.fromkeys(terms))))

    def scores_of(self, found: Matches) -> Floats:
        """Return BM25 of every document for these matches."""
        resistance = resisting(self.lengths(found.documents), self.mean_length, K1, B)
        weights = saturated(found.times, resistance, self.idf_of(found), K1)
        return np.bincount(found.documents, weights, self.documents).astype(np.float32)

    def idf_of(self, found: Matches) -> Floats:
        """Return the inverse document frequency of the term of each match."""
        return np.repeat(telling_all(found.held, len(self)), found.counts)

    def lengths(self, documents: Ints) -> Floats:
        """Return the number of terms of these documents, at most MAX_TERMS."""
        return self.sizes.values[documents].astype(np.float32)

    @property
    def mean_length(self) -> float:
        """Mean number of terms of a document, at least 1."""
        return max(1.0, self.total / max(1, len(self)))

    @property
    def documents(self) -> int:
        """Number of documents that can be found."""
        return len(self)

    @property
    def groups(self) -> int:
        """Number of groups of documents, such as the episodes of a stream."""
        return len(self.group_sizes)

    @property
    def all_groups(self) -> int:
        """Number of groups of documents in the whole index, of which this object may be a part."""
        return self.groups

    def group_scores(self, found: Matches) -> Floats:
        """Return BM25 of every group, taken as one text, for these matches."""
        rows, columns = len(found.counts), self.groups + 1  # the first column is for documents without a group
        cells = np.repeat(np.arange(1, rows * columns, columns), found.counts)
        cells += self.group.values.take(found.documents)
        counted = np.bincount(cells, found.times, rows * columns).reshape(rows, columns)
        times = counted[:, 1:].astype(np.float32)
        sizes = self.group_sizes.values.astype(np.float32)
        resistance = resisting(sizes, max(1.0, self.grouped / self.groups), GROUP_K1, GROUP_B)
        # np.count_nonzero with `axis` takes five times as long
        holds = np.array([np.count_nonzero(row) for row in times > 0], np.int64)
        idf = telling_all(holds, self.groups)
        scores: Floats = saturated(times, resistance, idf[:, None], GROUP_K1).sum(axis=0)
        return scores


def telling(holds: int, of: int) -> float:
    """Return the inverse document frequency of a term that `holds` of `of` documents contain."""
    return math.log(1 + (of - holds + 0.5) / (holds + 0.5))


def telling_all(holds: Ints, of: int) -> Floats:
    """Return the inverse document frequency of many terms; `holds`: how many of the `of` documents contain each
    term."""
    idf: Floats = np.log(1 + (of - holds + 0.5) / (holds + 0.5)).astype(np.float32)
    return idf


def saturated(times: Floats, resistance: Floats, idf: Floats, k1: float) -> Floats:
    """Return Okapi BM25's weights of terms that occur `times` times. A term that occurs `resistance` times has half the
    maximum weight."""
    weights: Floats = idf * np.float32(k1 + 1) * times
    weights /= times + resistance
    return weights


def resisting(lengths: Floats, mean: float, k1: float, b: float) -> Floats:
    """Return the `resistance` of documents of these lengths: the length normalisation in Okapi BM25's formula."""
    return np.float32(k1 * (1 - b)) + np.float32(k1 * b / mean) * lengths
