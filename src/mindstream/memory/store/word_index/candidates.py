"""Find records that may answer a question in a store's index: by words, with their neighbours, and by vectors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mindstream.log.names import StreamKey
from mindstream.memory.store.record import Kind, Vector
from mindstream.memory.store.store import Candidates, Told
from mindstream.memory.store.word_index.places import Floats, IndexReader, Numbers, Place, Places, written_in
from mindstream.memory.store.word_index.segments import hashed
from mindstream.text.dates import DateSpan
from mindstream.text.lexical import GROUP_B, GROUP_K1, K1, B, resisting, saturated, telling_all

AROUND, NEXT = 2, 1
"""Number of neighbours in the episode that are returned with a record found by words (AROUND) or by its vector (NEXT),
because ranking scores neighbours, too."""
MOST, NEAR, NEWEST = 200, 150, 100
"""Maximum number of records found by words (MOST), by vectors (NEAR), and as the newest and strongest (NEWEST). Larger
numbers make reading slower and improve recall little."""
SAMPLE = 64
"""Number of records in the sample of the stream, which are evenly spread over it."""
NEXT_TO, ANSWER, IN_EPISODE = np.float32(0.3), np.float32(1.3), np.float32(1.25)
"""Share of a word's weight that neighbours get, that the record after a question gets, and that the whole episode
gets."""


class Found(NamedTuple):
    """The postings of the queried terms in a segment.

    Attributes:
        begins: number of records in earlier segments.
        term: for each posting, the index of its term in the query.
    """

    place: Place
    begins: int
    postings: NDArray[np.uint32]
    term: Numbers


class Finder:
    """Finds candidates in a database."""

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
        """Return the candidates of a stream (see store.CandidateStore), with the statistics of the stream."""
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
    """Look up the terms `asked` (each hash with its index in the query) in segments."""
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


def _by_words(
    found: Sequence[Found], scoring: _Scoring, n: int, kinds: Sequence[Kind], inside: NDArray[np.bool_] | None
) -> Numbers:
    """Return the numbers of the records with most of the words in them or next to them; `inside`: only these
    records."""
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
    """Add up, over segments, the number of messages and of their terms of each speaker."""
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
        """Return the scores of the records of a segment."""
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

    def tell(self, places: Sequence[Place], numbers: Numbers, names: Sequence[str]) -> dict[str, Floats]:
        """Return for each episode of some records the BM25 of each term; an episode may extend over several
        segments."""
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
        """Count how often each episode contains each term."""
        of, count = found.place.episode[found.postings >> 8], len(found.place.sizes)
        inside = of >= 0
        cells, times = found.term[inside] * count + of[inside], found.postings[inside] & 0xF
        return np.bincount(cells, times, self._terms * count).reshape(self._terms, count).astype(np.float32)


def _saturation(mean: float) -> Floats:
    """Return the weight of a posting for each combination of length and number of occurrences that its byte can
    have."""
    lengths = (2 ** (np.arange(16) / 2) - 1).repeat(16).astype(np.float32)
    times = np.tile(np.arange(16), 16).astype(np.float32)
    return saturated(times, resisting(lengths, mean, K1, B), np.ones(1, np.float32), K1)
