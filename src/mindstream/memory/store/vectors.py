"""Vectors of a stream's records, and the search among them. Half of the vectors of a record's neighbours in its episode
is added to the record's vector.

Each number is stored as the upper half of a float32, which a processor reads ten times faster than a float16 (a cosine
differs by about 0.0001). Among more than EXACT_UP_TO records, a search first compares one bit per dimension (whether
the number is above the mean), and then computes the cosines of the most similar vectors.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mindstream.arrays import Array, Floats, Ints, Mask
from mindstream.memory.store.kept_columns import Live
from mindstream.text.lexical import GrowingArray

NEIGHBOUR = np.float32(0.5)
OPEN_EPISODES = 100
"""Maximum number of episodes whose last record's own vector, without its neighbours' parts, is kept. The next record of
the episode gets half of it."""
BYTE_OF_WORDS = 4
"""Maximum number of 64-bit words per vector for which the counts of differing signs are stored as bytes."""
SAMPLE = 1 << 16
"""A search by bits (the signs of vectors) computes its maximum distance from at most this many records. If the search
compares more records, it uses a sample of at least SAMPLE / 2 records."""
BLOCK = 65_536
"""Number of records whose bits are compared at once, so that the data stays in the processor's cache."""
PORTION = 4_096
"""Number of vectors whose lengths and signs are computed in one step."""
COMPARED = 256
"""Number of vectors whose cosines are computed at once, so that the data stays in the processor's cache."""
EXACT_MEAN_UP_TO = 8_192
"""Maximum number of vectors for which the mean is computed again when some are removed. With more vectors, the mean is
only updated."""
ONLY = np.float32(0.5)
"""The part of the average cosine that is subtracted if the stream has only one record. Its average is the record's own
cosine, so subtracting all of it would always give 0."""
EXACT_UP_TO = 2_000
"""Maximum number of records for which a search computes all cosines. With more records, a search preselects the records
whose signs (one bit per dimension) are most similar to the signs of the query."""


class Vectors:
    """One vector per record, to which parts of the neighbours' vectors are added (see `append`).

    A record without a vector has only the parts of its neighbours.
    """

    def __init__(self, width: int, without: Sequence[int] = ()) -> None:
        """Start with records that have no vector. `without`: for each of these records, the row of the record before it
        in its episode, or -1."""
        self.width = width
        self._words = (width + 63) // 64
        self.sums = GrowingArray(np.uint16, width)
        self.lengths = GrowingArray(np.float32)
        self.bits = [GrowingArray(np.uint64) for _ in range(self._words)]
        self.mean = np.zeros(width, np.float32)
        self.seen = 0
        self.behind = False
        self._has_bits = False
        self._changed: list[int] = []
        self._alone: dict[int, Floats] = {}
        self._before: dict[int, NDArray[np.uint16]] | None = None
        for before in without:
            self.append(None, before)

    def __len__(self) -> int:
        return len(self.sums)

    def reserve(self, count: int) -> None:
        """Reserve space for a total of `count` vectors."""
        self.sums.reserve(count)
        self.lengths.reserve(count)
        for column in self.bits:
            column.reserve(count)

    def append(self, vector: NDArray[np.float16] | None, before: int = -1, *, may_be_followed: bool = True) -> None:
        """Add a record's unit vector; None: the record has none.

        Half of the vector is added to the vector of the previous record in the episode, and half of the previous
        record's vector is added to this vector.

        Args:
            before: the row of the previous record in the episode; -1: there is none.
            may_be_followed: whether a later record can be the next one of the same episode.
        """
        own = np.zeros(self.width, np.float32) if vector is None else vector.astype(np.float32)
        at = len(self.sums)
        self.sums.append(halve(own))
        self.lengths.append(0)
        for column in self.bits:
            column.append(0)
        if before >= 0:
            neighbour = self._alone.pop(before, None)
            if neighbour is None:  # the earlier row's own vector is not kept: use its sum, mostly that vector
                row = restore(self.sums.values[before])
                neighbour = row / max(float(np.linalg.norm(row)), 1e-6)
            self._add(before, NEIGHBOUR * own)
            self._add(at, NEIGHBOUR * neighbour)
        if may_be_followed:
            self._keep(at, own)
        self._changed.append(at)

    def give(self, at: int, vector: NDArray[np.float16], neighbours: Sequence[int]) -> None:
        """Set the vector of a record that was added without one. Add half of it to the vectors of the record's
        neighbours."""
        own = vector.astype(np.float32)
        self._add(at, own)
        for neighbour in neighbours:
            self._add(neighbour, NEIGHBOUR * own)
        if at in self._alone:
            self._keep(at, own)

    def _keep(self, at: int, own: Floats) -> None:
        """Keep a record's own vector for the next record of its episode.

        At most OPEN_EPISODES such vectors are kept; the oldest one is dropped first.
        """
        self._alone[at] = own
        if len(self._alone) > OPEN_EPISODES:
            del self._alone[next(iter(self._alone))]

    def without(self, removed: Ints, renewed: Mapping[int, Sequence[Floats]], last: Mapping[int, Floats]) -> Vectors:
        """Return a copy without some records. Some of the remaining records then have new neighbours.

        Args:
            removed: the rows to remove.
            renewed: for each record with new words or neighbours, by its new row: its own vector, then the vectors of
                its neighbours.
            last: for each record that is now the last of its episode, by its new row: its own vector.
        """
        self._settle()
        fresh, count = copy.copy(self), len(self) - len(removed)
        moved = np.arange(len(self)) - np.searchsorted(removed, np.arange(len(self)))
        gone = set(removed.tolist())
        fresh.sums, fresh.lengths = self.sums.without(removed), self.lengths.without(removed)
        fresh.bits = [each.without(removed) for each in self.bits]
        fresh._before = None
        fresh._alone = {int(moved[at]): own for at, own in self._alone.items() if at not in gone}
        fresh._changed = [int(moved[at]) for at in self._changed if at not in gone]
        anew, there = np.array(sorted(renewed), np.int64), self.seen - int(np.count_nonzero(removed < self.seen))
        of = max(1, int(np.count_nonzero(self.lengths.values[: self.seen])))
        total = self.mean * np.float32(of) - self._units(removed[removed < self.seen]).sum(0)
        total -= fresh._units(anew[anew < there]).sum(0)
        for at, vectors in renewed.items():
            row = halve(vectors[0])
            for lent in vectors[1:]:
                row = halve(restore(row) + NEIGHBOUR * lent)
            fresh.sums.values[at] = row
            fresh._changed.append(at)
        total += fresh._units(anew[anew < there]).sum(0)
        fresh.seen = measured(count)
        total += fresh._units(np.arange(there, fresh.seen)).sum(0) - fresh._units(np.arange(fresh.seen, there)).sum(0)
        fresh.mean = total / np.float32(max(1, int(np.count_nonzero(fresh.lengths.values[: fresh.seen]))))
        if count <= EXACT_MEAN_UP_TO:
            fresh.seen = 0
        for at, own in last.items():
            fresh._keep(at, own)
        return fresh

    def held_still(self) -> Live:
        """Return the current vectors in a form that can be written to a file while vectors are added.

        Each vector is the sum of a record's own vector and parts of the neighbours' vectors. Call `let_go` after
        writing.
        """
        self._settle(bits=True)
        self._before = {}
        return Live(self.sums.values, self._before)

    def let_go(self) -> None:
        """End the effect of `held_still`: rows are no longer copied before they change."""
        self._before = None

    def state(self) -> dict[str, Array]:
        """Return all state except the growing arrays."""
        alone = np.array(list(self._alone.values()), np.float32).reshape(len(self._alone), self.width)
        return {"mean": self.mean.copy(), "alone_at": np.array(list(self._alone), np.int64), "alone": alone}

    def adopt(self, state: Mapping[str, Array], seen: int) -> None:
        """Start with a state read from a file. `seen`: the number of records when its mean was computed."""
        self.mean, self.seen, self._changed, self._has_bits = state["mean"].copy(), seen, [], True
        self._alone = dict(zip(state["alone_at"].tolist(), state["alone"].copy(), strict=True))

    def _add(self, at: int, lent: Floats) -> None:
        row = self.sums.values[at]
        if self._before is not None and at not in self._before:
            self._before[at] = row.copy()
        row[:] = halve(restore(row) + lent)
        self._changed.append(at)

    @property
    def is_far_behind(self) -> bool:
        """Whether much work waits for `settling`.

        This is the case if more than PORTION vectors have changed. It is also the case if the mean has to be computed
        again, and there are more than PORTION vectors in all.
        """
        return len(self._changed) > PORTION or (len(self) > PORTION and measured(len(self)) > self.seen)

    def settling(self, *, bits: bool = False) -> Iterator[None]:
        """Compute the lengths and bits of new vectors, one portion per step; vectors may be added between two steps.

        The mean is recomputed each time the stream has grown by about a tenth. Bits are computed once the stream has
        more than EXACT_UP_TO records, or earlier if they are needed (`bits`).
        """
        if not self._has_bits and (bits or len(self) > EXACT_UP_TO):
            self._has_bits, self._changed = True, list(range(len(self)))
        if (count := measured(len(self))) > self.seen:
            total = np.zeros(self.width, np.float32)
            for rows in _portions(count):
                total += self._units(rows).sum(0)
                yield
            there = int(np.count_nonzero(self.lengths.values[:count]))
            self.seen, self.mean = count, total / np.float32(max(1, there))
            self._changed = list(range(0 if self._has_bits else count, len(self)))
        while self._changed:
            rows = np.array(self._changed[:PORTION], np.int64)
            units = self._units(rows)
            if self._has_bits:
                signs = signs_of(units - self.mean)
                for word, column in enumerate(self.bits):
                    column.values[rows] = signs[:, word]
            del self._changed[:PORTION]
            yield

    def _settle(self, *, bits: bool = False) -> None:
        if self.behind:  # many rows are left: the index cache settles them in portions
            return
        for _ in self.settling(bits=bits):
            pass

    def _units(self, rows: Ints) -> Floats:
        """Compute and store the lengths of these rows' vectors; return the vectors scaled to length 1."""
        sums = restore(self.sums.values[rows])
        # as np.linalg.norm, without its checks
        self.lengths.values[rows] = lengths = np.sqrt(np.add.reduce(sums * sums, axis=1))
        units: Floats = sums / np.maximum(lengths, 1e-6)[:, None]
        return units

    def near(self, query: Floats, among: Mask, also: Callable[[], Ints]) -> tuple[Ints, Floats]:
        """Return rows, and for each the cosine of its vector with the unit vector `query`, minus the average of this
        cosine over the stream.

        The rows are the rows of `among` with the most similar vectors, and the rows of `also()` that are in `among`.
        """
        self._settle()
        rows = self._candidates(query, among, also)
        return rows, self.nearer(query, rows)

    def nearer(self, query: Floats, rows: Ints) -> Floats:
        """Return the cosines of rows with a unit vector, minus the average of this cosine over the stream (of the only
        record of a stream, minus half of its cosine); 0 for a row without a vector."""
        usual = np.float32(self.mean @ query) * (ONLY if len(self) == 1 else 1)
        nearer = self.cosines(query, rows) - usual
        return np.where(self.lengths.values[rows] > 0, nearer, 0).astype(np.float32, copy=False)

    def nearest(self, query: Floats, among: Mask) -> tuple[Ints, Floats]:
        """Return the rows of `among` whose vectors are most similar to a unit vector (`query`), and the cosines of
        these rows. If there are few rows, return all."""
        self._settle()
        rows = self._candidates(query, among, lambda: np.empty(0, np.int64))
        return rows, self.cosines(query, rows)

    def cosines(self, query: Floats, rows: Ints) -> Floats:
        """Return the cosines of these rows with a unit vector; 0 for a row without a vector."""
        self._settle()
        found, sums = np.empty(len(rows), np.float32), self.sums.values
        at_once = min(COMPARED, len(rows))
        halves, numbers = (np.empty((at_once, self.width), each) for each in (np.uint16, np.uint32))
        for start in range(0, len(rows), COMPARED):
            some = rows[start : start + COMPARED]
            count = len(some)
            np.take(sums, some, axis=0, out=halves[:count], mode="clip")  # the mode "raise" would copy
            numbers[:count] = halves[:count]  # converted first: a shift that also converts would use a buffer
            np.left_shift(numbers[:count], 16, out=numbers[:count])
            # Not "@": it uses threads that wait for one another if the machine is busy.
            np.vecdot(numbers[:count].view(np.float32), query, out=found[start : start + count])
        found /= self._divisors(rows)
        return found

    def units(self, rows: Ints) -> Floats:
        """Return the vectors of these rows, scaled to length 1; all zeros for a row without a vector."""
        self._settle()
        return np.divide(restore(self.sums.values[rows]), self._divisors(rows)[:, None], dtype=np.float32)

    def _divisors(self, rows: Ints) -> Floats:
        """Return the lengths of these rows' vectors; infinity for a row without a vector or with one not settled."""
        lengths: Floats = self.lengths.values[rows]
        return np.where(lengths > 0, np.maximum(lengths, np.float32(1e-6)), np.float32(np.inf))

    def centre_on(self, rows: Ints) -> None:
        """Use the mean of these rows, an even sample, as the mean of all vectors."""
        units = self.units(rows)
        self.mean = units.sum(0) / np.float32(max(1, int(np.count_nonzero(self.lengths.values[rows]))))

    def _candidates(self, query: Floats, among: Mask, also: Callable[[], Ints]) -> Ints:
        if np.count_nonzero(among) <= EXACT_UP_TO:
            return np.flatnonzero(among)
        chosen = np.zeros(len(self), np.bool_)
        chosen[self.nearest_by_bits(query, among, EXACT_UP_TO // 2)] = True
        chosen[also()] = True
        return np.flatnonzero(chosen & among)

    def nearest_by_bits(self, query: Floats, among: Mask, n: int) -> Ints:
        """Return the rows of `among` whose vectors are on the same side of the mean as the query in most dimensions.

        About n to 2n rows are returned; all rows of `among`, if these are fewer.
        """
        self._settle(bits=True)
        if self.behind:  # rows that are not settled yet have neither lengths nor bits
            among = among & (self.lengths.values > 0)
        signs = signs_of(query - self.mean)
        byte, few = self._words <= BYTE_OF_WORDS, np.count_nonzero(among) < len(self) // 4
        rows = np.flatnonzero(among) if few else None
        bits = [each.values if rows is None else each.values[rows] for each in self.bits]
        apart: Array = np.empty(len(bits[0]), np.uint8 if byte else np.uint16)
        words, counts = (np.empty(min(BLOCK, len(apart)), each) for each in (np.uint64, np.uint8))
        for start in range(0, len(apart), BLOCK):
            block = apart[start : start + BLOCK]
            differing, count = words[: len(block)], counts[: len(block)]
            for word, (column, sign) in enumerate(zip(bits, signs, strict=True)):
                np.bitwise_xor(column[start : start + BLOCK], sign, out=differing)
                if word:
                    block += np.bitwise_count(differing, out=count)
                else:
                    np.bitwise_count(differing, out=block)
        far = 255 if byte else 65_535
        if rows is None and not among.all():
            # all bits set is `far`; assigning by a mask takes up to sixty times as long
            apart |= np.subtract(among.view(np.uint8), 1, dtype=apart.dtype)
        step = 1 + len(apart) // SAMPLE
        sample, wanted = apart[::step].copy(), -(-n // step)
        low, high = 0, far - 1  # binary search for the smallest distance within which there are enough vectors
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if np.count_nonzero(sample <= middle) >= wanted else (middle + 1, high)
        near = np.flatnonzero(apart <= low)[-2 * n :]
        return near if rows is None else rows[near]


def signs_of(centred: Floats) -> NDArray[np.uint64]:
    """Return one bit per number, set if the number is positive, packed into 64-bit words."""
    packed = np.packbits(centred > 0, axis=-1)
    padded = np.zeros((*packed.shape[:-1], (centred.shape[-1] + 63) // 64 * 8), np.uint8)
    padded[..., : packed.shape[-1]] = packed
    return padded.view(np.uint64)


def measured(count: int) -> int:
    """Return the number of vectors, from the first on, from which the mean is computed: `count`, rounded down to its
    four leading binary digits (100 becomes 96).

    The mean thus does not depend on whether vectors were added one by one or loaded at once.
    """
    step = 1 << max(0, count.bit_length() - 4)
    return count // step * step


def _portions(count: int) -> list[Ints]:
    return [np.arange(start, min(start + PORTION, count)) for start in range(0, count, PORTION)]


def halve(numbers: Floats) -> NDArray[np.uint16]:
    """Round numbers to the upper 16 of the 32 bits of a float32."""
    return ((numbers.astype(np.float32).view(np.uint32) + np.uint32(0x8000)) >> 16).astype(np.uint16)


def restore(halves: NDArray[np.uint16]) -> Floats:
    """Return the float32 numbers that `halve` has rounded."""
    numbers = halves.astype(np.uint32)
    numbers <<= 16
    return numbers.view(np.float32)
