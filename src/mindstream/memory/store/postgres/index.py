"""The index of words and vectors in PostgreSQL: reading it, and filling it in the background.

Words are in segments (word_index/segments). PostgreSQL's own word indexes are not usable: under row-level security the
operators `&&` and `@@` do not use an index, because they are not leakproof. If the server has pgvector, vectors are
stored as its type halfvec, in a separate table: in the table `records`, each change of a record's strength would also
rewrite the graph (pgvector's index). If a record changes while its segment is built, a trigger (tables.unindex) deletes
the row of the new segment, which is then discarded. Vectors are written in one transaction per portion: an interrupted
filling continues after the last portion.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import psycopg

from mindstream.arrays import Ints
from mindstream.identifiers import StreamKey
from mindstream.memory.store import queries
from mindstream.memory.store.postgres.connection import PostgresDatabase
from mindstream.memory.store.postgres.pool import Connection, Cursor, Rows
from mindstream.memory.store.queries import COLUMNS, record_of
from mindstream.memory.store.record import Kind, Record, Vector, is_finite
from mindstream.memory.store.word_index.candidates import Place
from mindstream.memory.store.word_index.segments import (
    LARGEST,
    SMALLEST,
    BrokenOff,
    Segment,
    is_long,
    next_gap,
    pack,
    to_join,
)
from mindstream.text.words import batches

PORTION = 500
"""Number of vectors written per transaction. Writing them takes a second if pgvector's index is large."""
BUSY = 0x73656172  # "sear" in ASCII: first key of the advisory lock of the process that fills a stream's index
SEGMENTS = "SELECT id, first, last, count FROM segments WHERE stream = ? AND ready ORDER BY last"
BETWEEN = "SELECT number FROM records WHERE stream = ? AND number > ? AND number < ? ORDER BY number LIMIT ?"
MAKING = "DELETE FROM segments WHERE stream = ? AND NOT ready"
BEGUN = "SELECT 1 FROM counters WHERE name = 'changed' FOR SHARE"
"""SQL that waits for the transactions in progress: they cannot see, and so cannot delete, the new segment's row."""
EXTENSION = (
    "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'vector'"
)
COLUMN = "SELECT 1 FROM pg_attribute WHERE attrelid = 'nearness'::regclass AND attname = 'near' AND NOT attisdropped"
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
BY_NEARNESS = 'ORDER BY (near::"{schema}".halfvec({width})) OPERATOR("{schema}".<#>) %s::"{schema}".halfvec({width})'
NEAREST = (
    f"SELECT number FROM nearness WHERE stream = %s AND width = {{width}} AND kind = ANY(%s) {BY_NEARNESS} LIMIT %s"
)
ALL_COMPARED = (
    "WITH own AS MATERIALIZED (SELECT number, near FROM nearness WHERE stream = %s AND width = {width}"
    f" AND kind = ANY(%s)) SELECT number FROM own {BY_NEARNESS} LIMIT %s"
)
DEARER = 10
"""Cost of one vector that a search in the graph visits, relative to one that is compared in sequence. The graph
contains the vectors of all streams."""
ALL = "SELECT greatest(reltuples, 0) FROM pg_class WHERE oid = 'nearness'::regclass"


class PostgresIndexReader:
    """Reads the index within a transaction."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def _binary(self, sql: str, *values: Any) -> Cursor:
        """Run a statement that has the driver's placeholders (%s). The result is transferred in binary form."""
        return self._rows.connection.cursor(binary=True).execute(sql.encode(), values)

    def ready(self, stream: StreamKey) -> Sequence[tuple[int, int, int, str]]:
        return self._rows.execute(READY, (stream,)).fetchall()

    def places(self, segments: Sequence[int]) -> Iterable[tuple[Any, ...]]:
        return self._binary(PLACES, list(segments))

    def postings(self, segments: Sequence[int], terms: Sequence[int]) -> Iterable[tuple[int, int, bytes]]:
        return self._binary(POSTINGS, list(segments), list(terms))

    def unindexed(self, stream: StreamKey) -> Sequence[int]:
        return [row[0] for row in self._rows.execute(UNHELD, (stream, stream, 2 * SMALLEST))]

    def newest(self, stream: StreamKey, n: int, kinds: Sequence[Kind]) -> Iterable[int]:
        return queries.newest_and_strongest(self._rows, stream, n, kinds)

    def created(self, numbers: Sequence[int]) -> Mapping[int, float]:
        return dict(self._binary(CREATED, list(numbers)))

    def records(self, numbers: Sequence[int], kinds: Sequence[Kind]) -> list[tuple[int, Record]]:
        return [(row[0], record_of(row[1:])) for row in self._binary(RECORDS, list(numbers), list(kinds))]

    def nearest(
        self,
        stream: StreamKey,
        places: Mapping[int, Place],  # noqa: ARG002 (vectors are in a table of their own)
        count: int,
        vector: Vector,
        n: int,
        kinds: Sequence[Kind],
    ) -> Ints:
        """Return the numbers of the records with the most similar vectors; none if the server has no pgvector.

        If a search in the graph would visit too many vectors of other streams, all of the stream's `count` vectors are
        compared instead. PostgreSQL's planner cannot decide this, because it has no statistics of the column with the
        stream's name (tables.WORDS).
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
        values = (stream, list(kinds), written(vector), n)
        found = self._rows.connection.execute(sql.encode(), values).fetchall()
        self._rows.execute("SELECT set_config('enable_sort', 'on', true)")
        return np.array([number for (number,) in found], np.int64)


class Indexing:
    """Fills the index of a stream in the caller's thread; only one process at a time does so."""

    def __init__(self, database: PostgresDatabase, stream: StreamKey) -> None:
        self._database = database
        self._stream = stream
        self._broken = threading.Event()
        self._asking = threading.Lock()
        self._connection: Connection | None = None

    def run(self) -> None:
        """Index all records that are in no segment, unless fewer than SMALLEST are left; short streams have no index.
        If another process is indexing the stream, do nothing."""
        with contextlib.suppress(BrokenOff), self._database.lent(beyond=True) as connection:
            sql = "SELECT pg_try_advisory_lock(?, hashtext(?))"
            if Rows(connection).execute(sql, (BUSY, self._stream)).fetchone() == (True,):
                self._connection = connection
                try:
                    self._fill(connection)
                finally:
                    self._leave(connection)

    def break_off(self) -> None:
        """Make `run` end soon and cancel its statement in the server. Call this repeatedly until `run` has ended."""
        self._broken.set()
        with self._asking, contextlib.suppress(psycopg.Error):
            if self._connection is not None:
                self._connection.cancel_safe(timeout=1)

    def _leave(self, connection: Connection) -> None:
        """Delete unfinished segments and release the lock."""
        with self._asking:  # `break_off` cancels no statement from here on
            self._connection = None
        try:
            if not connection.closed:
                with contextlib.suppress(psycopg.errors.LockNotAvailable), connection.transaction():
                    connection.execute(b"SET LOCAL lock_timeout = '500ms'")
                    Rows(connection).execute(MAKING, (self._stream,))
                connection.execute(b"SELECT pg_advisory_unlock_all()")
        finally:
            if self._broken.is_set():
                connection.close()  # a late cancellation must not hit another user of the connection

    def _heed(self) -> None:
        if self._broken.is_set():
            raise BrokenOff

    def _fill(self, connection: Connection) -> None:
        self._heed()
        rows = Rows(connection)
        rows.execute(MAKING, (self._stream,))  # delete segments that a process left unfinished when it died
        if not is_long(rows, self._stream):
            return
        vectors = _with_vectors(connection)

        def between(after: int, before: int, most: int) -> list[int]:
            return [row[0] for row in rows.execute(BETWEEN, (self._stream, after, before, most))]

        while inside := next_gap(self._segments(rows), between, LARGEST):
            self._make(connection, inside[0], inside[-1], vectors, ())
            # create the vector index after the first segment: later, it would be built from all vectors at once
            if vectors:
                _index_vectors(connection, vectors)
            while several := to_join(self._segments(rows)):
                ids = [each.id for each in several]
                if not self._make(connection, several[0].first, several[-1].last, vectors, ids):
                    break

    def _segments(self, rows: Rows) -> list[Segment]:
        self._heed()
        return [Segment(*row) for row in rows.execute(SEGMENTS, (self._stream,))]

    def _make(self, connection: Connection, first: int, last: int, schema: str, old: Sequence[int]) -> bool:
        """Build a segment that replaces old ones; return whether it was kept. It is discarded if one of its records was
        changed in the meantime."""
        rows = Rows(connection)
        row = rows.execute(
            "INSERT INTO segments (stream, first, last, count, words, kinds, numbers, kind, episode, sizes, said, asks)"
            " VALUES (?, ?, ?, 0, 0, '{}', '', '', '', '', '', '') RETURNING id",
            (self._stream, first, last),
        ).fetchone()
        id_ = int(row[0]) if row else 0
        rows.execute(BEGUN)
        sql = f"SELECT number, {COLUMNS} FROM records WHERE stream = ? AND number BETWEEN ? AND ? ORDER BY number"
        found = list(self._heeding(rows.execute(sql, (self._stream, first, last))))
        if schema and not self._put_vectors(connection, schema, id_, found):
            return False
        with connection.transaction() as making:
            values = _write_postings(rows, id_, found, self._heed)
            kept = rows.execute(
                "UPDATE segments SET ready = true, count = ?, words = ?, kinds = ?, numbers = ?, kind = ?, episode = ?,"
                " sizes = ?, said = ?, asks = ? WHERE id = ?",
                (len(found), *values, id_),
            ).rowcount
            if not kept:
                raise psycopg.Rollback(making)
            rows.execute("DELETE FROM postings WHERE segment = ANY(?)", (list(old),))
            rows.execute("DELETE FROM segments WHERE id = ANY(?)", (list(old),))
        return bool(kept)

    def _heeding(self, found: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, Record]]:
        for number, *row in found:
            self._heed()
            yield number, record_of(tuple(row))

    def _put_vectors(
        self, connection: Connection, schema: str, segment: int, found: Sequence[tuple[int, Record]]
    ) -> bool:
        """Write missing vectors, one portion per transaction; return whether the segment is still valid.

        A transaction that changes one of the records at the same time first locks the segment's row, and then deletes
        the record's vector.
        """
        rows = Rows(connection)
        sql = "SELECT number FROM nearness WHERE number = ANY(?)"
        there = {row[0] for row in rows.execute(sql, ([number for number, _ in found],))}
        lines = [
            (number, each.stream, each.kind, len(each.vector), written(each.vector))
            for number, each in found
            if number not in there and each.vector is not None and is_finite(each.vector)
        ]
        for some in batches(lines, PORTION):
            self._heed()
            with connection.transaction() as putting:
                rows.execute(
                    "INSERT INTO nearness (number, stream, kind, width, near)"
                    f' SELECT n, s, k, w, v::"{schema}".halfvec'
                    " FROM unnest(?::bigint[], ?::text[], ?::text[], ?::integer[], ?::text[]) AS new(n, s, k, w, v)"
                    " ON CONFLICT DO NOTHING",
                    [list(column) for column in zip(*some, strict=True)],
                )
                kept = rows.execute("SELECT 1 FROM segments WHERE id = ? FOR UPDATE", (segment,)).fetchone()
                if not kept:
                    raise psycopg.Rollback(putting)
            if not kept:
                return False
        return True


def _write_postings(
    rows: Rows, segment: int, found: Sequence[tuple[int, Record]], heed: Callable[[], None]
) -> tuple[Any, ...]:
    """Write the postings of a segment's records; return the values for the columns `words` to `asks` of its row in
    `segments`.

    `heed` is called after each record; an exception that it raises ends the writing.
    """
    packed = pack(found, heed)
    rows.execute(
        "INSERT INTO postings (segment, term, count, packed)"
        " SELECT ?, * FROM unnest(?::bigint[], ?::integer[], ?::bytea[])",
        (
            segment,
            [term for term, _ in packed.postings],
            [len(each) for _, each in packed.postings],
            [each.tobytes() for _, each in packed.postings],
        ),
    )
    numbers, episode, sizes = (each.tobytes() for each in (packed.numbers, packed.episode, packed.sizes))
    return packed.words, packed.kinds, numbers, packed.kind, episode, sizes, packed.said, packed.asks


def _with_vectors(connection: Connection) -> str:
    """Return the schema of pgvector; "": there is no pgvector. Create the column for vectors if it is missing."""
    row = connection.execute(EXTENSION.encode()).fetchone()
    if row is None:
        return ""
    if connection.execute(COLUMN.encode()).fetchone() is None:
        connection.execute(f'ALTER TABLE nearness ADD COLUMN IF NOT EXISTS near "{row[0]}".halfvec NOT NULL'.encode())
        # otherwise PostgreSQL's statistics of the column could keep vectors of deleted records
        connection.execute(b"ALTER TABLE nearness ALTER COLUMN near SET STATISTICS 0")
    return str(row[0])


def written(vector: Any) -> str:
    """Return a vector in pgvector's text form."""
    return f"[{','.join(map(str, np.asarray(vector, np.float32).tolist()))}]"


def _index_vectors(connection: Connection, schema: str) -> None:
    """Create a graph (pgvector's index) for each width of vectors up to 4,000.

    One index allows only one width, and the vectors of different embedders have different widths.
    """
    widths = (
        "WITH RECURSIVE w(width) AS (SELECT min(width) FROM nearness UNION ALL"
        " SELECT (SELECT min(width) FROM nearness WHERE width > w.width) FROM w WHERE w.width IS NOT NULL)"
        " SELECT width FROM w WHERE width BETWEEN 1 AND 4000"
    )
    for (width,) in connection.execute(widths.encode()).fetchall():
        if connection.execute(f"SELECT to_regclass('nearness_{width}')".encode()).fetchone() != (None,):
            continue
        near = f'(near::"{schema}".halfvec({width})) "{schema}".halfvec_ip_ops'
        sql = f"CREATE INDEX IF NOT EXISTS nearness_{width} ON nearness USING hnsw ({near}) WHERE width = {width}"
        with connection.transaction():
            connection.execute(sql.encode())
            connection.execute(f"ALTER INDEX nearness_{width} ALTER COLUMN 1 SET STATISTICS 0".encode())
