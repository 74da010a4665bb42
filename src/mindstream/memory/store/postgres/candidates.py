"""Records that may answer, found by the database: those with most of the words, the nearest, what stands around them."""

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
from mindstream.text.lexical import B, K1, resisting, telling_all

Numbers = NDArray[np.int64]
HELD_SEGMENTS = 128
"""Of so many segments, each of at most 65,536 records, the numbers are remembered: 9 bytes a record."""
AROUND = 2
"""So many records before and after one in its episode may be meant by it, too."""
READY = "SELECT id, count, words FROM segments WHERE stream = ? AND ready ORDER BY last"
NUMBERS = "SELECT id, kinds, numbers, kind FROM segments WHERE id = ANY(%s)"
POSTINGS = "SELECT segment, term, packed FROM postings WHERE segment = ANY(%s) AND term = ANY(%s)"
UNHELD = (
    "SELECT number FROM records WHERE stream = ? AND number >"
    " (SELECT coalesce(max(last), 9223372036854775807) FROM segments WHERE stream = ? AND ready)"
    " ORDER BY number DESC LIMIT ?"
)
NEAREST = (
    'SELECT number FROM nearness WHERE stream = ? AND width = {width} AND kind = ANY(?)'
    ' ORDER BY (near::"{schema}".halfvec({width})) OPERATOR("{schema}".<#>) ?::"{schema}".halfvec({width}) LIMIT ?'
)
NEIGHBOURS = (
    "SELECT near.number FROM unnest(?::bigint[]) AS one(number) JOIN records AS found USING (number), LATERAL ("
    "(SELECT number FROM records WHERE stream = found.stream AND episode = found.episode AND number < found.number"
    " ORDER BY number DESC LIMIT ?) UNION ALL"
    " (SELECT number FROM records WHERE stream = found.stream AND episode = found.episode AND number > found.number"
    " ORDER BY number LIMIT ?)) AS near WHERE found.episode <> ''"
)


class Place(NamedTuple):
    """The numbers of a segment's records, and of what kind each is."""

    numbers: Numbers
    kind: NDArray[np.uint8]
    kinds: list[Kind]


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
        around = [row[0] for row in rows.execute(NEIGHBOURS, (best, AROUND, AROUND))] if best else []
        unheld = [row[0] for row in rows.execute(UNHELD, (stream, stream, 2 * SMALLEST))]
        return queries.newest_and_best_held(rows, stream, n, kinds, [*best, *around, *unheld])

    def _by_words(self, rows: Rows, stream: StreamKey, words: Sequence[str], n: int, kinds: Sequence[Kind]) -> list[int]:
        """Return the numbers of the records that have most of the words, by BM25."""
        segments = {row[0]: (row[1], row[2]) for row in rows.execute(READY, (stream,))}
        asked = list({hashed(word) for word in words})
        if not segments or not asked:
            return []
        found: dict[int, list[tuple[int, NDArray[np.uint32]]]] = {}
        counts = np.zeros(len(asked), np.int64)
        for segment, term, packed in _binary(rows, POSTINGS, (list(segments), asked)):
            postings = np.frombuffer(packed, np.uint32)
            counts[asked.index(term)] += len(postings)
            found.setdefault(segment, []).append((asked.index(term), postings))
        total, length = np.sum(list(segments.values()), axis=0)
        idf = telling_all(counts, int(total))
        table = _saturation(max(1.0, float(length / total)))
        self._hold(rows, found)
        numbers, scores = np.empty(0, np.int64), np.empty(0)
        for segment, postings_of in found.items():
            here, place = _scores(postings_of, idf, table, segments[segment][0]), self._places[segment]
            if len(kinds) < len(place.kinds) or not set(place.kinds) <= set(kinds):
                here[~np.isin(place.kind, [code for code, kind in enumerate(place.kinds) if kind in kinds])] = 0
            least = scores.min() if len(scores) >= n else 0.0
            better = np.flatnonzero(here > least)
            numbers, scores = np.append(numbers, place.numbers[better]), np.append(scores, here[better])
            if len(scores) > n:
                kept = np.argpartition(-scores, n - 1)[:n]
                numbers, scores = numbers[kept], scores[kept]
        return [int(number) for number in numbers]

    def _hold(self, rows: Rows, segments: Any) -> None:
        """Remember the numbers of these segments' records; no word tells anything of them."""
        if missing := [each for each in segments if each not in self._places]:
            for id_, kinds, numbers, kind in _binary(rows, NUMBERS, (missing,)):
                self._places[id_] = Place(np.frombuffer(numbers, np.int64), np.frombuffer(kind, np.uint8), kinds)
        for each in segments:
            self._places.move_to_end(each)
        while len(self._places) > max(HELD_SEGMENTS, len(segments)):
            self._places.popitem(last=False)


def _scores(
    found: Sequence[tuple[int, NDArray[np.uint32]]], idf: NDArray[np.float32], table: NDArray[np.float32], count: int
) -> NDArray[np.float64]:
    """Return BM25 of every record of a segment."""
    joined = np.concatenate([postings for _, postings in found])
    weights = np.repeat(idf[[term for term, _ in found]], [len(postings) for _, postings in found])
    return np.bincount(joined >> 8, weights * table[joined & 0xFF], count)


def _saturation(mean: float) -> NDArray[np.float32]:
    """Return what a posting counts, for each length and number of times that it may tell of."""
    lengths = (2 ** (np.arange(16, dtype=np.float32) / 2) - 1).repeat(16)
    times = np.tile(np.arange(16, dtype=np.float32), 16)
    found: NDArray[np.float32] = np.float32(K1 + 1) * times / (times + resisting(lengths, mean, K1, B))
    return found


def _nearest(rows: Rows, stream: StreamKey, vector: Vector, n: int, kinds: Sequence[Kind]) -> list[int]:
    """Return the numbers of the records that are nearest to a vector; none, where the server has no pgvector."""
    row = rows.execute(f"{EXTENSION} AND EXISTS (SELECT 1 FROM nearness)").fetchone()
    if row is None:
        return []
    settings = "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', ?, true)"
    rows.execute(settings, (str(min(1000, max(100, 2 * n))),))
    sql = NEAREST.format(schema=row[0], width=len(vector))
    return [found[0] for found in rows.execute(sql, (stream, list(kinds), written(vector), n))]


def _binary(rows: Rows, sql: str, values: tuple[Any, ...]) -> Any:
    return rows.connection.cursor(binary=True).execute(sql.encode(), values)
