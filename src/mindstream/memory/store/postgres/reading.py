"""Reads the index of words and vectors of a PostgreSQL database (postgres/segments)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mindstream.log.names import StreamKey
from mindstream.memory.store import queries
from mindstream.memory.store.postgres.connection import Rows, binary
from mindstream.memory.store.postgres.segments import EXTENSION, written
from mindstream.memory.store.record import Kind, Record, Vector
from mindstream.memory.store.rows import COLUMNS, record_of
from mindstream.memory.store.word_index.places import Numbers, Place
from mindstream.memory.store.word_index.segments import SMALLEST

PLACES = "SELECT id, numbers, kinds, kind, episode, sizes, asks FROM segments WHERE id = ANY(%s)"
CREATED = "SELECT number, created FROM records WHERE number = ANY(%s)"
READY = "SELECT id, count, words, said FROM segments WHERE stream = ? AND ready ORDER BY last"
POSTINGS = "SELECT segment, term, packed FROM postings WHERE segment = ANY(%s) AND term = ANY(%s)"
UNHELD = (
    "SELECT number FROM records WHERE stream = ? AND number >"
    " (SELECT coalesce(max(last), 9223372036854775807) FROM segments WHERE stream = ? AND ready)"
    " ORDER BY number DESC LIMIT ?"
)
RECORDS = f"SELECT number, {COLUMNS} FROM records WHERE number = ANY(%s) AND kind = ANY(%s) ORDER BY number"
NEAREST = (
    "SELECT number FROM nearness WHERE stream = %s AND width = {width} AND kind = ANY(%s)"
    ' ORDER BY (near::"{schema}".halfvec({width})) OPERATOR("{schema}".<#>) %s::"{schema}".halfvec({width}) LIMIT %s'
)
ALL_COMPARED = (
    "WITH own AS MATERIALIZED (SELECT number, near FROM nearness WHERE stream = %s AND width = {width}"
    " AND kind = ANY(%s)) SELECT number FROM own"
    ' ORDER BY (near::"{schema}".halfvec({width})) OPERATOR("{schema}".<#>) %s::"{schema}".halfvec({width}) LIMIT %s'
)
DEARER = 10
"""So much dearer is a vector that is met in the graph, whosever it is, than one that is compared in a row."""
ALL = "SELECT greatest(reltuples, 0) FROM pg_class WHERE oid = 'nearness'::regclass"


class PostgresIndexReader:
    """Reads the index on a connection of a transaction."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def ready(self, stream: StreamKey) -> Sequence[tuple[int, int, int, str]]:
        return self._rows.execute(READY, (stream,)).fetchall()

    def places(self, segments: Sequence[int]) -> Iterable[tuple[Any, ...]]:
        return binary(self._rows, PLACES, (list(segments),))

    def postings(self, segments: Sequence[int], terms: Sequence[int]) -> Iterable[tuple[int, int, bytes]]:
        return binary(self._rows, POSTINGS, (list(segments), list(terms)))

    def unindexed(self, stream: StreamKey) -> Sequence[int]:
        return [row[0] for row in self._rows.execute(UNHELD, (stream, stream, 2 * SMALLEST))]

    def newest(self, stream: StreamKey, n: int, kinds: Sequence[Kind]) -> Iterable[int]:
        return queries.number_newest_and_best_held(self._rows, stream, n, kinds)

    def created(self, numbers: Sequence[int]) -> Mapping[int, float]:
        return dict(binary(self._rows, CREATED, (list(numbers),)))

    def records(self, numbers: Sequence[int], kinds: Sequence[Kind]) -> list[tuple[int, Record]]:
        rows = binary(self._rows, RECORDS, (list(numbers), list(kinds)))
        return [(row[0], record_of(row[1:])) for row in rows]

    def nearest(
        self,
        stream: StreamKey,
        places: Mapping[int, Place],  # noqa: ARG002 (the vectors are in a table of their own)
        count: int,
        vector: Vector,
        n: int,
        kinds: Sequence[Kind],
    ) -> Numbers:
        """Return the numbers of the records that are nearest to a vector; none, where the server has no pgvector.

        Where the graph would meet too many of other streams on its way, each of the stream's `count` vectors is
        compared. The planner does not know: it gathers nothing of names (tables.WORDS).
        """
        row = self._rows.execute(f"{EXTENSION} AND EXISTS (SELECT 1 FROM nearness)").fetchone()
        if row is None:
            return np.empty(0, np.int64)
        (all_,) = self._rows.execute(ALL).fetchone() or (0,)
        by_graph = DEARER * n * all_ <= count * count
        if by_graph:
            self._rows.execute(
                "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true),"
                " set_config('hnsw.ef_search', ?, true), set_config('enable_sort', 'off', true)",
                (str(min(1000, max(200, 2 * n))),),
            )
        sql = (NEAREST if by_graph else ALL_COMPARED).format(schema=row[0], width=len(vector))
        found = self._rows.connection.execute(sql.encode(), (stream, list(kinds), written(vector), n)).fetchall()
        self._rows.execute("SELECT set_config('enable_sort', 'on', true)")
        return np.array([number for (number,) in found], np.int64)
