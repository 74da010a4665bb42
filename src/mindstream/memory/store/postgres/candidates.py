"""Records that may answer, found by the database: those that have the words, or stand around them, and the nearest."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mindstream.log.names import StreamKey
from mindstream.memory.store import queries
from mindstream.memory.store.postgres.connection import Rows
from mindstream.memory.store.postgres.segments import EXTENSION, SMALLEST, hashed, written
from mindstream.memory.store.record import Kind, Record, Vector
from mindstream.memory.store.rows import COLUMNS, record_of
from mindstream.text.lexical import GROUP_B, GROUP_K1, K1, B, resisting, telling_all

Floats = NDArray[np.float32]
HELD_SEGMENTS = 128
"""Of so many segments, each of at most 65,536 records, it is remembered which records they are: 13 bytes a record."""
NEXT_TO, IN_EPISODE = np.float32(0.3), np.float32(1.25)
"""What counts of a word in the record before and after, and in the whole episode."""
READY = "SELECT id, count, words FROM segments WHERE stream = ? AND ready ORDER BY last"
PLACES = "SELECT id, numbers, kinds, kind, episode, sizes FROM segments WHERE id = ANY(%s)"
POSTINGS = "SELECT segment, term, packed FROM postings WHERE segment = ANY(%s) AND term = ANY(%s)"
UNHELD = (
    "SELECT number FROM records WHERE stream = ? AND number >"
    " (SELECT coalesce(max(last), 9223372036854775807) FROM segments WHERE stream = ? AND ready)"
    " ORDER BY number DESC LIMIT ?"
)
RECORDS = f"SELECT {COLUMNS} FROM records WHERE number = ANY(%s) AND kind = ANY(%s) ORDER BY number"
NEAREST = (
    "SELECT number FROM nearness WHERE stream = ? AND width = {width} AND kind = ANY(?)"
    ' ORDER BY (near::"{schema}".halfvec({width})) OPERATOR("{schema}".<#>) ?::"{schema}".halfvec({width}) LIMIT ?'
)


class Place(NamedTuple):
    """A segment's records: their numbers, kinds and episodes (-1: in none), and how long each episode is."""

    numbers: NDArray[np.int64]
    kinds: list[Kind]
    kind: NDArray[np.uint8]
    episode: NDArray[np.int32]
    sizes: Floats


class Found(NamedTuple):
    """What a segment has of the terms that are asked for: all postings, and of which term each is."""

    place: Place
    postings: NDArray[np.uint32]
    term: NDArray[np.int64]


class Finder:
    """Finds candidates in a database."""

    def __init__(self) -> None:
        self._places: OrderedDict[int, Place] = OrderedDict()

    def find(
        self, rows: Rows, stream: StreamKey, vector: Vector | None, words: Sequence[str], n: int, kinds: Sequence[Kind]
    ) -> list[Record]:
        """Return the candidates of a stream (see store.CandidateStore)."""
        best = self._by_words(rows, stream, words, n, kinds)
        if vector is not None and np.any(vector):
            best += _nearest(rows, stream, vector, n, kinds)
        best += [row[0] for row in rows.execute(UNHELD, (stream, stream, 2 * SMALLEST))]
        best += queries.number_newest_and_best_held(rows, stream, n, kinds)
        return [record_of(row) for row in _binary(rows, RECORDS, (best, list(kinds)))]

    def _by_words(
        self, rows: Rows, stream: StreamKey, words: Sequence[str], n: int, kinds: Sequence[Kind]
    ) -> list[int]:
        """Return the numbers of the records that have most of the words, or stand where they are."""
        segments = rows.execute(READY, (stream,)).fetchall()
        asked = {hashed(word): at for at, word in enumerate(dict.fromkeys(words))}
        if not segments or not asked:
            return []
        found = self._found(rows, [row[0] for row in segments], asked)
        _, counts, lengths = np.sum([(0, *row[1:]) for row in segments], axis=0)
        scoring = _Scoring(found, len(asked), int(counts), lengths / counts)
        numbers, scores = np.empty(0, np.int64), np.empty(0, np.float32)
        for each in found:
            here, place = scoring(each), each.place
            if not set(place.kinds) <= set(kinds):
                here[~np.isin(place.kind, [code for code, kind in enumerate(place.kinds) if kind in kinds])] = 0
            better = np.flatnonzero(here > (scores.min() if len(scores) >= n else 0))
            numbers, scores = np.append(numbers, place.numbers[better]), np.append(scores, here[better])
            if len(scores) > n:
                kept = np.argpartition(-scores, n - 1)[:n]
                numbers, scores = numbers[kept], scores[kept]
        return [int(number) for number in numbers]

    def _found(self, rows: Rows, segments: list[int], asked: dict[int, int]) -> list[Found]:
        """Look terms up in segments."""
        there: dict[int, list[tuple[int, NDArray[np.uint32]]]] = {}
        for segment, term, packed in _binary(rows, POSTINGS, (segments, list(asked))):
            there.setdefault(segment, []).append((asked[term], np.frombuffer(packed, np.uint32)))
        if missing := [each for each in there if each not in self._places]:
            for id_, numbers, kinds, kind, episode, sizes in _binary(rows, PLACES, (missing,)):
                self._places[id_] = Place(
                    np.frombuffer(numbers, np.int64), kinds, np.frombuffer(kind, np.uint8),
                    np.frombuffer(episode, np.int32), np.frombuffer(sizes, np.float32),
                )  # fmt: skip
        for each in there:
            self._places.move_to_end(each)
        while len(self._places) > max(HELD_SEGMENTS, len(there)):
            self._places.popitem(last=False)
        return [
            Found(
                self._places[segment],
                np.concatenate([postings for _, postings in some]),
                np.repeat([term for term, _ in some], [len(postings) for _, postings in some]),
            )
            for segment, some in there.items()
        ]


class _Scoring:
    """BM25 of records and of their episodes, for terms of which it is known how many of a stream's have them."""

    def __init__(self, found: Sequence[Found], terms: int, count: int, mean_length: float) -> None:
        self._terms = terms
        holds = sum((np.bincount(each.term, minlength=terms) for each in found), np.zeros(terms, np.int64))
        self._weights = telling_all(holds, count)[:, None] * _saturation(max(1.0, float(mean_length)))
        self._times = [self._in_episodes(each) for each in found]
        episodes = sum(len(each.place.sizes) for each in found)
        held = sum((np.count_nonzero(each, axis=1) for each in self._times), np.zeros(terms, np.int64))
        self._idf = telling_all(held, max(1, episodes))
        self._size = sum(float(each.place.sizes.sum()) for each in found) / max(1, episodes)
        self._next = iter(self._times)

    def __call__(self, found: Found) -> Floats:
        """Score the records of a segment; of those that were given, in that order."""
        place, count = found.place, len(found.place.numbers)
        own = np.bincount(found.postings >> 8, self._weights[found.term, found.postings & 0xFF], count)
        scores = own.astype(np.float32)
        together = (place.episode[1:] == place.episode[:-1]) & (place.episode[1:] >= 0)
        lent = NEXT_TO * scores
        scores[1:] += lent[:-1] * together
        scores[:-1] += lent[1:] * together
        times = next(self._next)
        resistance = resisting(place.sizes, max(1.0, self._size), GROUP_K1, GROUP_B)
        parts = self._idf[:, None] * np.float32(GROUP_K1 + 1) * times / (times + resistance)
        episodes = np.append(IN_EPISODE * parts.sum(axis=0), np.float32(0))  # the last: in none
        scores += episodes[place.episode]
        return scores

    def _in_episodes(self, found: Found) -> Floats:
        """Count how often each episode has each term."""
        of, count = found.place.episode[found.postings >> 8], len(found.place.sizes)
        inside = of >= 0
        cells, times = found.term[inside] * count + of[inside], found.postings[inside] & 0xF
        return np.bincount(cells, times, self._terms * count).reshape(self._terms, count).astype(np.float32)


def _saturation(mean: float) -> Floats:
    """Return what a posting counts, for each length and number of times that it may tell of."""
    lengths = (2 ** (np.arange(16, dtype=np.float32) / 2) - 1).repeat(16)
    times = np.tile(np.arange(16, dtype=np.float32), 16)
    found: Floats = np.float32(K1 + 1) * times / (times + resisting(lengths, mean, K1, B))
    return found


def _nearest(rows: Rows, stream: StreamKey, vector: Vector, n: int, kinds: Sequence[Kind]) -> list[int]:
    """Return the numbers of the records that are nearest to a vector; none, where the server has no pgvector."""
    row = rows.execute(f"{EXTENSION} AND EXISTS (SELECT 1 FROM nearness)").fetchone()
    if row is None:
        return []
    settings = "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', ?, true)"
    rows.execute(settings, (str(min(1000, max(100, n))),))
    sql = NEAREST.format(schema=row[0], width=len(vector))
    return [found[0] for found in rows.execute(sql, (stream, list(kinds), written(vector), n))]


def _binary(rows: Rows, sql: str, values: tuple[Any, ...]) -> Any:
    return rows.connection.cursor(binary=True).execute(sql.encode(), values)
