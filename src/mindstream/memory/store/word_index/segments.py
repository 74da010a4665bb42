"""Segments: ranges of a stream's records, each with an index of the words; and which segment to build next.

The postings (occurrences) of each term in a segment are packed into numbers. Terms are stored as hashes, so that the
index contains no words. When there are SEVERAL neighbouring segments of similar size, one larger segment replaces them.
"""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from mindstream.arrays import Floats, Ints
from mindstream.caches import remember
from mindstream.identifiers import StreamKey
from mindstream.log.sql import Sql
from mindstream.memory.store.columns import EPISODIC, is_asking
from mindstream.memory.store.record import Kind, Record
from mindstream.text.words import terms

SEARCHED_FROM = 16_384
"""Minimum number of records for a stream to have an index; a shorter stream is read completely within a second."""
SMALLEST, SEVERAL, LARGEST = 256, 16, 65_536
"""SMALLEST, LARGEST: number of records in the smallest and in the largest segments. SEVERAL: number of segments that
are joined into one. So a segment usually has about 256, 4,096 or 65,536 records."""
MOST_TIMES, MOST_LENGTH = 15, 15
PROBES = "SELECT count(*) FROM (SELECT 1 FROM records WHERE stream = ? LIMIT ?) AS found"


class Segment(NamedTuple):
    """A range of a stream's records by number; `first` and `last` are included."""

    id: int
    first: int
    last: int
    size: int


class Packed(NamedTuple):
    """The content of a segment.

    Attributes:
        words: number of terms of all its records.
        kinds, kind: the kinds that occur in the segment, and for each record the index of its kind in `kinds`.
        episode, sizes: for each record its episode (-1: none), and for each episode its number of terms.
        said: for each speaker, the number of messages and the number of terms in these messages, as JSON.
        asks: one bit for each record: whether the record asks something.
        postings: for each term, its hash and its postings. A posting is the index of a record, its length (in half
            steps of a power of two), and how often it contains the term.
    """

    words: int
    kinds: list[Kind]
    numbers: Ints
    kind: bytes
    episode: NDArray[np.int32]
    sizes: Floats
    said: str
    asks: bytes
    postings: list[tuple[int, NDArray[np.uint32]]]


def is_long(connection: Sql, stream: StreamKey) -> bool:
    """Return whether a stream is long enough to have an index."""
    return bool(connection.execute(PROBES, (stream, SEARCHED_FROM)).fetchone()[0] >= SEARCHED_FROM)


def pack(found: Iterable[tuple[int, Record]], heed: Callable[[], None]) -> Packed:
    """Return the content of a segment with these records. `heed` is called after each record; an exception of `heed`
    ends the packing."""
    numbers, kind, episode, lengths, asks = array("q"), bytearray(), array("i"), array("I"), bytearray()
    kinds, episodes = _Numbered(), _Numbered()
    vocabulary, codes = _Numbered(), array("I")
    talk: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for number, record in found:
        said = found_by(record)
        codes.extend([vocabulary[term] for term in said])
        numbers.append(number)
        kind.append(kinds[record.kind])
        episode.append(episodes[record.episode] if record.episode and record.kind in EPISODIC else -1)
        lengths.append(len(said))
        asks.append(is_asking(record.text))
        if record.kind == "chat" and record.by:
            talk[record.by][0] += 1
            talk[record.by][1] += len(said)
        heed()
    of, terms_in = np.array(episode, np.int32), np.array(lengths, np.int64)
    sizes = np.bincount(of[of >= 0], terms_in[of >= 0], len(episodes)).astype(np.float32)
    return Packed(
        int(terms_in.sum()),
        cast(list[Kind], list(kinds)),
        np.array(numbers, np.int64),
        bytes(kind),
        of,
        sizes,
        json.dumps(talk),
        np.packbits(np.array(asks, np.bool_)).tobytes(),
        list(_postings(vocabulary, codes, terms_in)),
    )


class _Numbered(dict[str, int]):
    """A dictionary that gives each new key the next number."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number


def _postings(
    vocabulary: Collection[str], codes: array[int], lengths: Ints
) -> Iterator[tuple[int, NDArray[np.uint32]]]:
    """Yield each term's hash with its postings.

    Args:
        codes: for each term of each record, in order, its number in the vocabulary.
        lengths: the number of terms of each record.
    """
    places = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
    cells, times = np.unique(np.array(codes, np.uint64) << np.uint64(32) | places, return_counts=True)
    place = (cells & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    length = np.minimum(np.round(2 * np.log2(lengths + 1)), MOST_LENGTH).astype(np.uint32)
    packed = place << 8 | length[place] << 4 | np.minimum(times, MOST_TIMES).astype(np.uint32)
    ends = np.searchsorted(cells >> np.uint64(32), np.arange(1, 1 + len(vocabulary))).tolist()
    for term, begins, end in zip(vocabulary, (0, *ends[:-1]), ends, strict=True):
        yield hashed(term), packed[begins:end]


def found_by(record: Record) -> list[str]:
    """Return the terms by which a record is found: those of its text, keywords and triple."""
    return terms(" ".join((record.text, *record.keywords, *(record.about or ()))))


@remember(1 << 16)
def hashed(term: str) -> int:
    """Return the hash of a term."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)


def next_gap(
    segments: Sequence[Segment], numbers_between: Callable[[int, int, int], Sequence[int]], most: int
) -> Sequence[int]:
    """Return the numbers of the records for the next segment: at most `most` and usually at least SMALLEST. An empty
    sequence means that no segment is to be built.

    Args:
        numbers_between: returns the numbers of the stream's records above the first argument and below the second; the
            third argument is the maximum count.
    """
    after = 0
    for before in [each.first for each in segments] + [2**62]:
        inside = numbers_between(after, before, most)
        if inside and before < 2**62:
            return inside
        for size in (LARGEST, LARGEST // SEVERAL, SMALLEST):
            if len(inside) >= size:
                return inside[:size]
        after = next((each.last for each in segments if each.first == before), after)
    return ()


def to_join(segments: Sequence[Segment]) -> Sequence[Segment]:
    """Return the newest SEVERAL neighbouring segments of similar size that have at most LARGEST records together; they
    are to be joined. Return an empty sequence if there are none."""
    for end in range(len(segments), SEVERAL - 1, -1):
        some = segments[end - SEVERAL : end]
        sizes = [each.size for each in some]
        if sum(sizes) <= LARGEST and 2 * min(sizes) >= max(sizes):
            return some
    return ()


class BrokenOff(Exception):  # noqa: N818
    """The filling of the index was cancelled."""
