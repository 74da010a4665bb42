"""The records of a stream's segments by number: their kinds and episodes, and when they were written."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mindstream.log.names import StreamKey
from mindstream.memory.store.record import Kind, Record, Vector
from mindstream.text.dates import DateSpan

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
HELD_SEGMENTS = 128
"""Maximum number of segments whose data is cached; each has at most 65,536 records of 14 bytes."""
PROBES = 16
"""Number of records that are read at once by the search for the first one written at or after a moment."""


class IndexReader(Protocol):
    """Reads the index of a database, as of one moment."""

    def ready(self, stream: StreamKey) -> Sequence[tuple[int, int, int, str]]:
        """Return a stream's segments in order: id, number of records, number of their terms, and the messages and terms
        of each speaker as JSON.
        """

    def places(self, segments: Sequence[int]) -> Iterable[tuple[Any, ...]]:
        """Yield for each segment: id, numbers, kinds, kind, episode, sizes, asks (see segments.Packed)."""

    def postings(self, segments: Sequence[int], terms: Sequence[int]) -> Iterable[tuple[int, int, bytes]]:
        """Yield segment, term and postings for each term that a segment contains."""

    def unindexed(self, stream: StreamKey) -> Sequence[int]:
        """Return the numbers of the newest records that are in no segment."""

    def nearest(
        self, stream: StreamKey, places: Mapping[int, Place], count: int, vector: Vector, n: int, kinds: Sequence[Kind]
    ) -> Numbers:
        """Return the numbers of the n records with the most similar vectors; `count`: number of records in all
        segments."""

    def newest(self, stream: StreamKey, n: int, kinds: Sequence[Kind]) -> Iterable[int]:
        """Return the numbers of the n newest records of these kinds, and of the n strongest records."""

    def created(self, numbers: Sequence[int]) -> Mapping[int, float]:
        """Return the time of writing of each record, by number."""

    def records(self, numbers: Sequence[int], kinds: Sequence[Kind]) -> list[tuple[int, Record]]:
        """Return the records of these kinds with their numbers, each once, in the order of writing."""


@dataclass(frozen=True)
class Place:
    """The records of a segment: their numbers, kinds and episodes (-1: none), the number of terms of each episode, and
    whether each record asks something.
    """

    numbers: Numbers
    kinds: list[Kind]
    kind: NDArray[np.uint8]
    episode: NDArray[np.int32]
    sizes: Floats
    asks: NDArray[np.bool_]

    @cached_property
    def _order(self) -> tuple[Numbers, Numbers]:
        """Return the indexes of the records sorted by episode, and the position of each record in that order."""
        order = np.argsort(self.episode, kind="stable")
        stands = np.empty_like(order)
        stands[order] = np.arange(len(order))
        return order, stands

    def find(self, numbers: Numbers) -> Numbers:
        """Return the indexes in this segment of the records with these numbers; other numbers are ignored."""
        at = np.searchsorted(self.numbers, numbers)
        at = at[at < len(self.numbers)]
        return at[np.isin(self.numbers[at], numbers)]

    def around(self, at: Numbers, reach: int) -> Numbers:
        """Return the numbers of records and of the `reach` records before and after each of them in its episode."""
        if not len(at):
            return at
        order, stands = self._order
        near = stands[at][:, None] + np.arange(-reach, reach + 1)
        there = order[np.clip(near, 0, len(order) - 1)]
        same = (self.episode[there] == self.episode[at][:, None]) & (self.episode[at][:, None] >= 0)
        found: Numbers = self.numbers[np.unique(np.concatenate([at, there[same]]))]
        return found


class Places:
    """A cache of the records of segments; it contains no words."""

    def __init__(self) -> None:
        self._held: OrderedDict[int, Place] = OrderedDict()

    def of(self, reader: IndexReader, segments: Sequence[int]) -> list[Place]:
        """Return the records of segments, read from the database if they are not cached."""
        if missing := [each for each in segments if each not in self._held]:
            for id_, numbers, kinds, kind, episode, sizes, asks in reader.places(missing):
                asking = np.unpackbits(np.frombuffer(asks, np.uint8), count=len(kind)).view(np.bool_)
                self._held[id_] = Place(
                    np.frombuffer(numbers, np.int64),
                    kinds,
                    np.frombuffer(kind, np.uint8),
                    np.frombuffer(episode, np.int32),
                    np.frombuffer(sizes, np.float32),
                    asking,
                )
        for each in segments:
            self._held.move_to_end(each)
        found = [self._held[each] for each in segments]
        while len(self._held) > max(HELD_SEGMENTS, len(segments)):
            self._held.popitem(last=False)
        return found


def written_in(reader: IndexReader, numbers: Numbers, spans: Sequence[DateSpan]) -> NDArray[np.bool_]:
    """Mark the records that were written in any of these periods; `numbers` must be in the order of writing."""
    inside = np.zeros(len(numbers), np.bool_)
    for span in spans:
        inside[_first_since(reader, numbers, span.since) : _first_since(reader, numbers, span.until)] = True
    return inside


def _first_since(reader: IndexReader, numbers: Numbers, moment: float) -> int:
    """Return the index of the first record that was written at this moment or later."""
    low, high = 0, len(numbers)
    while low < high:
        probes = np.unique(np.linspace(low, high - 1, PROBES).astype(np.int64))
        created = reader.created(numbers[probes].tolist())
        later = [at for at in probes.tolist() if created.get(int(numbers[at]), moment) >= moment]
        earlier = [at for at in probes.tolist() if created.get(int(numbers[at]), moment) < moment]
        low, high = max(earlier, default=low - 1) + 1, min(later, default=high)
    return low
