"""Queries of SQL tables that several methods of the store make, on a reader's connection."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from typing import Any

from mindstream.log.events import Logged, Unknown, printable, read_event
from mindstream.log.names import StreamKey
from mindstream.log.reader_threads import Snapshot
from mindstream.log.sql import Sql
from mindstream.memory.store.record import Kind, Record
from mindstream.memory.store.rows import COLUMNS, record_of
from mindstream.memory.store.salvage import moment

A_PORTION = 256
"""So many records of a walk are read at once."""
MOST_AMONG = 500


def among(connection: Sql, sql: str, values: Sequence[Any], *more: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query in which something is one of these values, so many of them at once."""
    for start in range(0, len(values), MOST_AMONG):
        some = values[start : start + MOST_AMONG]
        yield from connection.execute(sql.format(",".join("?" * len(some))), [*some, *more])


NEWEST_OF_KIND = (
    "SELECT * FROM (SELECT number FROM records WHERE stream = ? AND kind = ? ORDER BY number DESC LIMIT ?) AS found"
)
BEST_HELD = "SELECT number FROM records WHERE stream = ? AND level > 0 ORDER BY level DESC LIMIT ?"


def of_numbers(connection: Sql, numbers: Collection[int], kinds: Sequence[Kind]) -> list[Record]:
    """Return the records of these kinds that have these numbers, in the order of writing."""
    rows = sorted(among(connection, f"SELECT number, {COLUMNS} FROM records WHERE number IN ({{}})", list(numbers)))
    return [record for row in rows if (record := record_of(row[1:])).kind in kinds]


def number_newest_and_best_held(connection: Sql, stream: StreamKey, n: int, kinds: Sequence[Kind]) -> set[int]:
    """Return the numbers of the n newest records of a stream, and of the n that are held best, of any kind."""
    kinds = list(dict.fromkeys(kinds))
    newest = " UNION ALL ".join([NEWEST_OF_KIND] * len(kinds))
    values = [value for kind in kinds for value in (stream, kind, n)]
    numbers = sorted(row[0] for row in connection.execute(newest, values)) if kinds else []
    held = [row[0] for row in connection.execute(BEST_HELD, (stream, n))]
    return {*numbers[-n:], *held}


async def walk_on(snapshot: Snapshot, rows: sqlite3.Cursor) -> AsyncIterator[Record]:
    """Yield the records that a query of a snapshot finds, read in portions."""
    while records := await snapshot.read(lambda _: [record_of(row) for row in rows.fetchmany(A_PORTION)]):
        for record in records:
            yield record


def read_log(connection: Sql, where: str, values: Sequence[Any], kinds: Sequence[str] | None) -> list[Logged]:
    """Read rows of the log; who asks for kinds gets none that cannot be read."""
    read = [
        Logged(seq, mind, moment(at) or 0.0, printable(by), read_event(kind, payload), system == 1)
        for seq, mind, at, by, kind, payload, system in connection.execute(
            f"SELECT seq, mind, at, by, kind, payload, system FROM log {where}", values
        ).fetchall()
    ]
    return [each for each in read if kinds is None or not isinstance(each.event, Unknown)]


def last_change(connection: Sql) -> int:
    """Return the number of the last commit, whoever wrote it."""
    sql = "SELECT CAST(value AS INTEGER) FROM counters WHERE name = 'changed'"
    row = connection.execute(sql).fetchone()
    return int(row[0]) if row else -1  # lost: until the next commit there is none
