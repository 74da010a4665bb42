"""The index of words and vectors in PostgreSQL, filled in the background.

Words: segments (word_index/segments). PostgreSQL's own word indexes do not serve: under row-level security `&&` and
`@@` never use one, as they are not leakproof. Vectors: pgvector's halfvec, where the server has it, in a table of
their own; in `records` each touch would write the graph anew.

A change to a record that is being indexed deletes the segment's row (tables.unindex); the segment is then discarded.
Its vectors are written a portion a transaction: a filling that was broken off is resumed behind the last one.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import psycopg

from mindstream.log.names import StreamKey
from mindstream.memory.store.postgres.connection import PostgresDatabase, Rows
from mindstream.memory.store.postgres.lending import Connection
from mindstream.memory.store.record import Record
from mindstream.memory.store.rows import COLUMNS, record_of
from mindstream.memory.store.validation import is_finite
from mindstream.memory.store.word_index.segments import (
    LARGEST,
    BrokenOff,
    Segment,
    is_long,
    next_gap,
    pack,
    to_join,
)

PORTION = 500
"""So many vectors are written at once: a second, where the graph is large."""
BUSY = 0x73656172  # "sear": the first key of the lock of whoever fills a stream's index
SEGMENTS = "SELECT id, first, last, count FROM segments WHERE stream = ? AND ready ORDER BY last"
BETWEEN = "SELECT number FROM records WHERE stream = ? AND number > ? AND number < ? ORDER BY number LIMIT ?"
MAKING = "DELETE FROM segments WHERE stream = ? AND NOT ready"
BEGUN = "SELECT 1 FROM counters WHERE name = 'changed' FOR SHARE"
"""Waits for whoever writes at this moment, who has not seen the row of the segment that is being made."""
EXTENSION = (
    "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'vector'"
)
COLUMN = "SELECT 1 FROM pg_attribute WHERE attrelid = 'nearness'::regclass AND attname = 'near' AND NOT attisdropped"


class Indexing:
    """Fills the index of a stream, in a thread of whoever calls; one process at a time does."""

    def __init__(self, database: PostgresDatabase, stream: StreamKey) -> None:
        self._database = database
        self._stream = stream
        self._broken = threading.Event()
        self._asking = threading.Lock()
        self._connection: Connection | None = None

    def run(self) -> None:
        """Take in all that no segment holds yet, but for fewer than SMALLEST records; short streams have no index."""
        with contextlib.suppress(BrokenOff), self._database.lent(beyond=True) as connection:
            sql = "SELECT pg_try_advisory_lock(?, hashtext(?))"
            if Rows(connection).execute(sql, (BUSY, self._stream)).fetchone() == (True,):
                self._connection = connection
                try:
                    self._fill(connection)
                finally:
                    self._leave(connection)

    def break_off(self) -> None:
        """Have it end soon: what the server is doing for it is cancelled. To be called until it has ended."""
        self._broken.set()
        with self._asking, contextlib.suppress(psycopg.Error):
            if self._connection is not None:
                self._connection.cancel_safe(timeout=1)

    def _leave(self, connection: Connection) -> None:
        """Leave nothing that is half made, and nobody locked out."""
        with self._asking:  # from here on nothing is cancelled
            self._connection = None
        try:
            if not connection.closed:
                with contextlib.suppress(psycopg.errors.LockNotAvailable), connection.transaction():
                    connection.execute(b"SET LOCAL lock_timeout = '500ms'")
                    Rows(connection).execute(MAKING, (self._stream,))
                connection.execute(b"SELECT pg_advisory_unlock_all()")
        finally:
            if self._broken.is_set():
                connection.close()  # should a cancellation be on its way yet, it hits nobody else

    def _heed(self) -> None:
        if self._broken.is_set():
            raise BrokenOff

    def _fill(self, connection: Connection) -> None:
        self._heed()
        rows = Rows(connection)
        rows.execute(MAKING, (self._stream,))  # somebody died over it
        if not is_long(rows, self._stream):
            return
        vectors = _with_vectors(connection)
        while gap := self._gap(rows):
            self._make(connection, *gap, vectors, ())
            if vectors:  # from the first segment on: a graph of all would have to be made in one piece
                _index_vectors(connection, vectors)
            self._join(connection, vectors)

    def _segments(self, rows: Rows) -> list[Segment]:
        self._heed()
        return [Segment(*row) for row in rows.execute(SEGMENTS, (self._stream,))]

    def _gap(self, rows: Rows) -> tuple[int, int] | None:
        """Return the first and the last number of the records that the next segment is to hold."""

        def between(after: int, before: int, most: int) -> list[int]:
            return [row[0] for row in rows.execute(BETWEEN, (self._stream, after, before, most))]

        inside = next_gap(self._segments(rows), between, LARGEST)
        return (inside[0], inside[-1]) if inside else None

    def _join(self, connection: Connection, vectors: str) -> None:
        """Make one of the newest segments where several of them are as small as one another."""
        while several := to_join(self._segments(Rows(connection))):
            ids = [each.id for each in several]
            if not self._make(connection, several[0].first, several[-1].last, vectors, ids):
                return

    def _make(self, connection: Connection, first: int, last: int, vectors: str, old: Sequence[int]) -> bool:
        """Make a segment; tell whether it was kept: not, where something in it was changed meanwhile."""
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
        if vectors and not self._put_vectors(connection, vectors, id_, found):
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

    def _heeding(self, found: Iterator[tuple[Any, ...]]) -> Iterator[tuple[int, Record]]:
        for number, *row in found:
            self._heed()
            yield number, record_of(tuple(row))

    def _put_vectors(
        self, connection: Connection, schema: str, segment: int, found: Sequence[tuple[int, Record]]
    ) -> bool:
        """Write the vectors that are not there yet, a portion a transaction; tell whether the segment is to be kept.

        What is changed meanwhile takes the segment's row first, and then the vectors that it sees.
        """
        rows = Rows(connection)
        sql = "SELECT number FROM nearness WHERE number = ANY(?)"
        there = {row[0] for row in rows.execute(sql, ([number for number, _ in found],))}
        lines = [
            (number, each.stream, each.kind, len(each.vector), each.vector)
            for number, each in found
            if number not in there and each.vector is not None and is_finite(each.vector)
        ]
        for start in range(0, len(lines), PORTION):
            self._heed()
            with connection.transaction() as putting:
                _put(rows, schema, lines[start : start + PORTION])
                sql = "SELECT 1 FROM segments WHERE id = ? FOR UPDATE"
                if not (kept := rows.execute(sql, (segment,)).fetchone()):
                    raise psycopg.Rollback(putting)
            if not kept:
                return False
        return True


def _write_postings(
    rows: Rows, segment: int, found: Sequence[tuple[int, Record]], heed: Callable[[], None]
) -> tuple[Any, ...]:
    """Write the postings of a segment's records; return its columns `words` to `asks`. `heed` may break it off."""
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
    return (
        packed.words,
        packed.kinds,
        packed.numbers.tobytes(),
        packed.kind,
        packed.episode.tobytes(),
        packed.sizes.tobytes(),
        packed.said,
        packed.asks,
    )


def _with_vectors(connection: Connection) -> str:
    """Return the schema of pgvector, and see to it that there is a column for it; "": the server has none."""
    row = connection.execute(EXTENSION.encode()).fetchone()
    if row is None:
        return ""
    if connection.execute(COLUMN.encode()).fetchone() is None:
        connection.execute(f'ALTER TABLE nearness ADD COLUMN IF NOT EXISTS near "{row[0]}".halfvec NOT NULL'.encode())
        connection.execute(b"ALTER TABLE nearness ALTER COLUMN near SET STATISTICS 0")  # they tell what was said
    return str(row[0])


def _put(rows: Rows, schema: str, lines: Sequence[tuple[Any, ...]]) -> None:
    number, stream, kind, width, vectors = zip(*lines, strict=True)
    rows.execute(
        "INSERT INTO nearness (number, stream, kind, width, near)"
        f' SELECT n, s, k, w, v::"{schema}".halfvec'
        " FROM unnest(?::bigint[], ?::text[], ?::text[], ?::integer[], ?::text[]) AS new(n, s, k, w, v)"
        " ON CONFLICT DO NOTHING",
        [*map(list, (number, stream, kind, width)), [written(each) for each in vectors]],
    )


def written(vector: Any) -> str:
    """Return a vector as pgvector reads it."""
    return f"[{','.join(map(str, np.asarray(vector, np.float32).tolist()))}]"


def _index_vectors(connection: Connection, schema: str) -> None:
    """See to it that each width there is has its graph: an index needs one, and embedders differ in it."""
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
