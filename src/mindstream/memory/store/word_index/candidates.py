"""Find records that may answer a question in a store's index: by words, with their neighbours, and by vectors.

A segment of the index is a range of a stream's records by number. `Places` caches the records' numbers, kinds and
episodes.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mindstream.arrays import Floats, Ints, Mask
from mindstream.identifiers import StreamKey
from mindstream.memory.store.record import Kind, Record, Vector
from mindstream.memory.store.store import Candidates, Told
from mindstream.memory.store.word_index.segments import hashed
from mindstream.text.dates import DateSpan
from mindstream.text.lexical import GROUP_B, GROUP_K1, K1, B, resisting, saturated, telling_all

HELD_SEGMENTS = 128
"""Maximum number of segments whose data is cached. If one stream has more, all its segments are cached. A segment has
at most 65,536 records of 14 bytes."""
PROBES = 16
"""Number of records whose time of writing is read in one step of the search for the first record written at or after a
moment."""


class IndexReader(Protocol):
    """Reads the index of a database, as of one moment."""

    def ready(self, stream: StreamKey) -> Sequence[tuple[int, int, int, str]]:
        """Return the segments of a stream, in order.

        Each item has the segment's id, the number of records, the number of terms in the records, and a JSON text with
        each speaker's numbers of messages and terms.
        """

    def places(self, segments: Sequence[int]) -> Iterable[tuple[Any, ...]]:
        """Yield for each segment: id, numbers, kinds, kind, episode, sizes, asks (see segments.Packed)."""

    def postings(self, segments: Sequence[int], terms: Sequence[int]) -> Iterable[tuple[int, int, bytes]]:
        """Yield segment, term and postings for each term that a segment contains."""

    def unindexed(self, stream: StreamKey) -> Sequence[int]:
        """Return the numbers of records that are in no segment and must be read directly."""

    def nearest(
        self, stream: StreamKey, places: Mapping[int, Place], count: int, vector: Vector, n: int, kinds: Sequence[Kind]
    ) -> Ints:
        """Return the numbers of the n records with the most similar vectors.

        Args:
            places: the records of each segment, by the segment's id.
            count: the number of records in all segments.
        """

    def newest(self, stream: StreamKey, n: int, kinds: Sequence[Kind]) -> Iterable[int]:
        """Return the numbers of the n newest records of these kinds, and of the n strongest records of any kind.

        The strongest records are only records that have gained strength.
        """

    def created(self, numbers: Sequence[int]) -> Mapping[int, float]:
        """Return the time of writing of each record, by number."""

    def records(self, numbers: Sequence[int], kinds: Sequence[Kind]) -> list[tuple[int, Record]]:
        """Return the records of these kinds with their numbers, each once, in the order of writing."""


@dataclass(frozen=True)
class Place:
    """The records of a segment.

    Attributes:
        numbers: the number of each record.
        kinds: the kinds of records in the segment. kind: the index in `kinds` for each record.
        episode: the episode of each record; -1: none.
        sizes: the number of terms of each episode.
        asks: whether each record asks something.
    """

    numbers: Ints
    kinds: list[Kind]
    kind: NDArray[np.uint8]
    episode: NDArray[np.int32]
    sizes: Floats
    asks: Mask

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
        """Return the indexes of the records sorted by episode, and the position of each record in that order."""
        order = np.argsort(self.episode, kind="stable")
        stands = np.empty_like(order)
        stands[order] = np.arange(len(order))
        return order, stands

    def find(self, numbers: Ints) -> Ints:
        """Return the indexes in this segment of the records with these numbers; other numbers are ignored."""
        at = np.searchsorted(self.numbers, numbers)
        at = at[at < len(self.numbers)]
        return at[np.isin(self.numbers[at], numbers)]

    def around(self, at: Ints, reach: int) -> Ints:
        """Return the numbers of the records at the positions `at`, and of their neighbours in the same episode: up to
        `reach` before and after each."""
        if not len(at):
            return at
        order, stands = self._order
        near = stands[at][:, None] + np.arange(-reach, reach + 1)
        there = order[np.clip(near, 0, len(order) - 1)]
        same = (self.episode[there] == self.episode[at][:, None]) & (self.episode[at][:, None] >= 0)
        found: Ints = self.numbers[np.unique(np.concatenate([at, there[same]]))]
        return found


class Places:
    """A cache of the records of segments; it contains no words."""

    def __init__(self) -> None:
        self._held: OrderedDict[int, Place] = OrderedDict()

    def of(self, reader: IndexReader, segments: Sequence[int]) -> list[Place]:
        """Return for each segment the columns of its records (`Place`). Columns that are not cached are read from the
        database."""
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


def written_in(reader: IndexReader, numbers: Ints, spans: Sequence[DateSpan]) -> Mask:
    """Mark the records that were written in any of these periods; `numbers` must be in the order of writing."""
    inside = np.zeros(len(numbers), np.bool_)
    for span in spans:
        inside[_first_since(reader, numbers, span.since) : _first_since(reader, numbers, span.until)] = True
    return inside


def _first_since(reader: IndexReader, numbers: Ints, moment: float) -> int:
    """Return the index of the first record that was written at this moment or later."""
    low, high = 0, len(numbers)
    while low < high:
        probes = np.unique(np.linspace(low, high - 1, PROBES).astype(np.int64))
        created = reader.created(numbers[probes].tolist())
        later = [at for at in probes.tolist() if created.get(int(numbers[at]), moment) >= moment]
        earlier = [at for at in probes.tolist() if created.get(int(numbers[at]), moment) < moment]
        low, high = max(earlier, default=low - 1) + 1, min(later, default=high)
    return low


AROUND, NEXT = 2, 1
"""Number of neighbours, on each side in the episode, that are returned with a record. AROUND: with a record that was
found by words. NEXT: with a record that was found by its vector. A record's neighbours contribute to its score."""
MOST, NEAR, NEWEST = 200, 150, 100
"""Maximum number of records found by words (MOST), by vectors (NEAR), and as the newest or as the strongest (NEWEST).
Larger numbers make reading slower and improve recall little."""
SAMPLE = 64
"""Number of records in the sample of a stream; they are evenly spread over the stream."""
NEXT_TO, ANSWER, IN_EPISODE = np.float32(0.3), np.float32(1.3), np.float32(1.25)
"""Shares of other scores that are added to a record's score.

- NEXT_TO: share of the score of each neighbour (the record before, and the record after).
- ANSWER: share of the score of the record before, in place of NEXT_TO, if the record before asks something.
- IN_EPISODE: share of the score of the whole episode.
"""


class Found(NamedTuple):
    """The postings (occurrences in records) of the queried terms in a segment.

    Attributes:
        begins: number of records in earlier segments.
        term: for each posting, the index of its term in the query.
    """

    place: Place
    begins: int
    postings: NDArray[np.uint32]
    term: Ints


class Finder:
    """Finds the candidates of a recall: the records of a stream that the recall will rank. It uses the index in a
    database."""

    def __init__(self) -> None:
        self._places = Places()

    def find(
        self,
        reader: IndexReader,
        stream: StreamKey,
        vector: Vector | None,
        words: Sequence[str],
        n: int,
        kinds: Sequence[Kind],
        spans: Sequence[DateSpan] = (),
    ) -> Candidates:
        """Return the candidates of a stream (see store.CandidateStore). If the stream has indexed records, its
        statistics are returned with them.
        """
        n, words = min(n, MOST), list(dict.fromkeys(words))
        held = reader.ready(stream)
        places = self._places.of(reader, [row[0] for row in held])
        numbers = np.concatenate([np.empty(0, np.int64), *(place.numbers for place in places)])
        asked = [*reader.unindexed(stream), *reader.newest(stream, min(n, NEWEST) if places else n, kinds)]
        count, terms = sum(row[1] for row in held), sum(row[2] for row in held)
        near = np.empty(0, np.int64)
        if vector is not None and np.any(vector):
            by_id = {row[0]: place for row, place in zip(held, places, strict=True)}
            near = reader.nearest(stream, by_id, count, vector, min(n, NEAR), kinds)
        if not places:
            return Candidates(record for _, record in reader.records([*asked, *near.tolist()], kinds))
        found = _found(reader, [row[0] for row in held], places, {hashed(word): at for at, word in enumerate(words)})
        scoring = _Scoring(found, len(words), count, terms / count)
        inside = written_in(reader, numbers, spans)
        best = _by_words(found, scoring, n, kinds, None)
        if np.any(inside):
            best = np.concatenate([best, _by_words(found, scoring, n, kinds, inside), numbers[inside][-n:]])
        sample = numbers[np.unique(np.linspace(0, len(numbers) - 1, SAMPLE).astype(np.int64))]
        reach = ((best, AROUND), (np.concatenate([near, sample]), NEXT))
        around = [place.around(place.find(some), to) for place in places for some, to in reach]
        # The first and last records of a segment: their episodes may continue in the neighbouring segment.
        asked += [int(place.numbers[at]) for place in places for at in (0, -1)]
        read = reader.records([*asked, *np.concatenate([best, near, *around]).tolist()], kinds)
        there = np.array([number for number, _ in read], np.int64)
        told = Told(
            records=count,
            terms=terms,
            holding=dict(zip(words, scoring.holds.tolist(), strict=True)),
            groups=sum(len(place.sizes) for place in places),
            episodes=scoring.tell(places, there, [record.episode for _, record in read]),
            written=int(np.count_nonzero(inside)),
            said=_joined(row[3] for row in held),
            sample=np.flatnonzero(np.isin(there, sample)).tolist(),
        )
        return Candidates((record for _, record in read), told)


def _found(reader: IndexReader, segments: Sequence[int], places: Sequence[Place], asked: dict[int, int]) -> list[Found]:
    """Return the postings of a query's terms in each segment that has any. `asked`: for each term's hash, the term's
    index in the query."""
    there: dict[int, list[tuple[int, NDArray[np.uint32]]]] = {}
    for segment, term, packed in reader.postings(segments, list(asked)):
        there.setdefault(segment, []).append((asked[term], np.frombuffer(packed, np.uint32)))
    begins = np.cumsum([0, *(len(place.numbers) for place in places)]).tolist()
    return [
        Found(
            places[at],
            begins[at],
            np.concatenate([postings for _, postings in there[segment]]),
            np.repeat([term for term, _ in there[segment]], [len(postings) for _, postings in there[segment]]),
        )
        for at, segment in enumerate(segments)
        if segment in there
    ]


def _by_words(found: Sequence[Found], scoring: _Scoring, n: int, kinds: Sequence[Kind], inside: Mask | None) -> Ints:
    """Return the numbers of the n records with the highest scores for the queried words.

    Args:
        inside: marks the only records that may be returned; None: all may be.
    """
    numbers, scores = np.empty(0, np.int64), np.empty(0, np.float32)
    for at, each in enumerate(found):
        here, place = scoring.score(at), each.place
        if not set(place.kinds) <= set(kinds):
            here[~np.isin(place.kind, [code for code, kind in enumerate(place.kinds) if kind in kinds])] = 0
        if inside is not None:
            here[~inside[each.begins : each.begins + len(here)]] = 0
        better = np.flatnonzero(here > (scores.min() if len(scores) >= n else 0))
        numbers, scores = np.append(numbers, place.numbers[better]), np.append(scores, here[better])
        if len(scores) > n:
            kept = np.argpartition(-scores, n - 1)[:n]
            numbers, scores = numbers[kept], scores[kept]
    return numbers


def _joined(said: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return each speaker's number of messages and number of terms, summed over all segments.

    `said`: for each segment, the two numbers by speaker, as JSON.
    """
    all_: dict[str, tuple[int, int]] = {}
    for each in said:
        for by, (messages, words) in json.loads(each).items():
            before = all_.get(by, (0, 0))
            all_[by] = (before[0] + messages, before[1] + words)
    return all_


class _Scoring:
    """BM25 scores of records and of their episodes, with the rarity of terms in the whole stream."""

    def __init__(self, found: Sequence[Found], terms: int, count: int, mean_length: float) -> None:
        self._found, self._terms = found, terms
        self.holds = sum((np.bincount(each.term, minlength=terms) for each in found), np.zeros(terms, np.int64))
        self._weights = telling_all(self.holds, count)[:, None] * _saturation(max(1.0, mean_length))
        self._times = times = [self._in_episodes(each) for each in found]
        episodes = max(1, sum(len(each.place.sizes) for each in found))
        self._idf = idf = telling_all(
            sum((np.count_nonzero(t, axis=1) for t in times), np.zeros(terms, np.int64)), episodes
        )
        self._mean = mean = max(1.0, sum(float(each.place.sizes.sum()) for each in found) / episodes)
        self._episodes = [
            saturated(some, resisting(each.place.sizes, mean, GROUP_K1, GROUP_B), idf[:, None], GROUP_K1)
            for each, some in zip(found, times, strict=True)
        ]

    def score(self, segment: int) -> Floats:
        """Return the score of each record of a segment; shares of the scores of its neighbours and of its episode are
        added."""
        found = self._found[segment]
        own = np.bincount(
            found.postings >> 8, self._weights[found.term, found.postings & 0xFF], len(found.place.numbers)
        )
        scores, episode = own.astype(np.float32), found.place.episode
        together = (episode[1:] == episode[:-1]) & (episode[1:] >= 0)
        after = scores[:-1] * np.where(found.place.asks[:-1], ANSWER, NEXT_TO) * together
        scores[:-1] += NEXT_TO * scores[1:] * together
        scores[1:] += after
        whole = np.append(IN_EPISODE * self._episodes[segment].sum(axis=0), np.float32(0))  # index -1: no episode
        scores += whole[episode]
        return scores

    def tell(self, places: Sequence[Place], numbers: Ints, names: Sequence[str]) -> dict[str, Floats]:
        """Return, for each episode of these records, the BM25 scores of the queried terms in the whole episode.

        An episode may extend over several segments.
        """
        told: dict[str, tuple[float, Floats]] = {}
        named = dict(zip(numbers.tolist(), names, strict=True))
        counted = {id(each.place): times for each, times in zip(self._found, self._times, strict=True)}
        for place in places:
            at = place.find(numbers)
            episodes, first = np.unique(place.episode[at], return_index=True)
            for number, episode in zip(place.numbers[at[first]].tolist(), episodes.tolist(), strict=True):
                if episode >= 0:
                    size, times = told.get(named[number], (0.0, np.zeros(self._terms, np.float32)))
                    here = counted[id(place)][:, episode] if id(place) in counted else np.float32(0)
                    told[named[number]] = size + float(place.sizes[episode]), times + here
        sizes = np.array([size for size, _ in told.values()], np.float32)
        times = np.array([times for _, times in told.values()], np.float32).reshape(len(told), self._terms).T
        resistance = resisting(sizes, self._mean, GROUP_K1, GROUP_B)
        return dict(zip(told, saturated(times, resistance, self._idf[:, None], GROUP_K1).T, strict=True))

    def _in_episodes(self, found: Found) -> Floats:
        """Count how often each episode contains each term: one row per term, one column per episode of the segment."""
        of, count = found.place.episode[found.postings >> 8], len(found.place.sizes)
        inside = of >= 0
        cells, times = found.term[inside] * count + of[inside], found.postings[inside] & 0xF
        return np.bincount(cells, times, self._terms * count).reshape(self._terms, count).astype(np.float32)


def _saturation(mean: float) -> Floats:
    """Return the weight of a posting for each value of its lower byte, which contains the record's length and the
    number of occurrences."""
    lengths = (2 ** (np.arange(16) / 2) - 1).repeat(16).astype(np.float32)
    times = np.tile(np.arange(16), 16).astype(np.float32)
    return saturated(times, resisting(lengths, mean, K1, B), np.ones(1, np.float32), K1)
