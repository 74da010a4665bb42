"""Lists of whole numbers by key, which only grow: what is new in a dictionary, what was kept in three arrays.

A kept key is known by 64 bits of its hash: no word stands in the arrays, and a lookup is a binary search.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.uint32]
Array = NDArray[Any]
PORTION = 4_096
NONE: Numbers = np.empty(0, np.uint32)


class Postings:
    """For each key its numbers, in the order in which they were added. A key that has one costs a dictionary entry."""

    def __init__(self) -> None:
        self._new: dict[str, int | array[int]] = {}
        self._hashes: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._starts: NDArray[np.int64] = np.zeros(1, np.int64)
        self._kept: Numbers = NONE

    def add(self, key: str, number: int) -> None:
        """Add a number to a key's."""
        there = self._new.get(key)
        if there is None:
            self._new[key] = number
        elif isinstance(there, int):
            self._new[key] = array("I", (there, number))
        else:
            there.append(number)

    def of(self, key: str) -> Numbers:
        """Return a key's numbers; not to be kept across an `add`."""
        new, kept = _numbers(self._new.get(key)), self._kept_of(key)
        if not len(kept):
            return new
        return np.concatenate((kept, new)) if len(new) else kept

    def count(self, key: str) -> int:
        """Return how many numbers a key has."""
        new = self._new.get(key)
        return len(self._kept_of(key)) + (0 if new is None else 1 if isinstance(new, int) else len(new))

    def _kept_of(self, key: str) -> Numbers:
        begin, end = self._kept_range(key)
        return self._kept[begin:end]

    def _kept_range(self, key: str) -> tuple[int, int]:
        if not len(self._hashes):
            return 0, 0
        wanted = hashed(key)
        at = int(np.searchsorted(self._hashes, wanted))
        if at == len(self._hashes) or self._hashes[at] != wanted:
            return 0, 0
        return int(self._starts[at]), int(self._starts[at + 1])

    def without(self, gone: Mapping[str, Sequence[int]], removed_below: Numbers, bits: int = 0) -> Postings | None:
        """Return a copy without some numbers of keys, where later documents move up; None: it does not hold them all.

        Args:
            removed_below: for each document how many before it are removed.
            bits: so many low bits of a number are none of its document's.
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
        kept, starts = np.delete(self._kept, holes), self._starts.copy()
        for hole in holes:
            starts[np.searchsorted(self._starts, hole, side="right") :] -= 1
        emptied = np.flatnonzero((np.diff(starts) == 0) & (np.diff(self._starts) > 0)).tolist()
        fresh._hashes, fresh._starts = np.delete(self._hashes, emptied), np.delete(starts, emptied)
        fresh._kept = kept - (removed_below[kept >> bits] << np.uint32(bits)) if len(kept) else kept
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
        """Gather as arrays all numbers below one, in steps; each gives what is left to do, in whatever thread.

        Numbers may be added between two steps. What is found is not changed later.
        """
        keys, hashes, parts = list(self._new), list[int](), list[Numbers]()
        for start in range(0, len(keys), PORTION):
            for key in keys[start : start + PORTION]:
                parts.append(_below(_numbers(self._new[key]), below))
                hashes.append(int(hashed(key)))
            yield lambda: None
        kept = self._hashes, self._starts, self._kept

        def join() -> None:
            joined = merged(kept, np.array(hashes, np.uint64), parts)
            found["hashes"], found["starts"], found["numbers"] = joined

        yield join

    def adopt(self, arrays: Mapping[str, Array]) -> None:
        """Begin with what `copying` has found."""
        self._hashes, self._starts, self._kept = arrays["hashes"], arrays["starts"], arrays["numbers"]


def merged(
    kept: tuple[NDArray[np.uint64], NDArray[np.int64], Numbers],
    hashes: NDArray[np.uint64],
    parts: Sequence[Numbers],
) -> tuple[NDArray[np.uint64], NDArray[np.int64], Numbers]:
    """Return kept numbers with new ones behind them, by the hashes of their keys."""
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


def _summed(at: NDArray[np.int64], counts: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    return np.bincount(at, counts, length).astype(np.int64)


def hashed(key: str) -> np.uint64:
    """Return 64 bits of a key's hash."""
    return np.uint64(int.from_bytes(hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()))


def _below(numbers: Numbers, limit: int) -> Numbers:
    """Copy the numbers below a limit: what looks into an array that grows is not kept."""
    return numbers[numbers < limit]


def _numbers(numbers: int | array[int] | None) -> Numbers:
    if numbers is None:
        return NONE
    return np.array([numbers], np.uint32) if isinstance(numbers, int) else np.frombuffer(numbers, np.uint32)
