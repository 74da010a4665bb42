"""SQL queries that several methods of a store share; both SQLite and PostgreSQL accept them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mindstream.log.events import Logged, Unknown, printable, read_event
from mindstream.log.names import StreamKey
from mindstream.log.sql import Sql
from mindstream.memory.store.record import Kind
from mindstream.memory.store.rows import FIELDS, moment
from mindstream.text.words import batches

MAX_VALUES = 500
"""Maximum number of values in one `IN` condition."""
PORTION_SIZE = 50_000
"""Total length of the records' texts and data, in characters, at which a portion of records ends."""
TEXT, DATA = FIELDS.index("text"), FIELDS.index("data")
NEWEST_CHANGES = (
    "SELECT (SELECT coalesce(max(changed), 0) FROM records WHERE stream = ?),"
    " (SELECT coalesce(max(changed), 0) FROM erased WHERE stream = ?)"
)
NEWEST_OF_KIND = (
    "SELECT * FROM (SELECT number FROM records WHERE stream = ? AND kind = ? ORDER BY number DESC LIMIT ?) AS found"
)
STRONGEST = "SELECT number FROM records WHERE stream = ? AND level > 0 ORDER BY level DESC LIMIT ?"


def marks(values: Iterable[object]) -> str:
    """Return the SQL placeholders for values."""
    return ",".join("?" for _ in values)


def among(connection: Sql, sql: str, values: Sequence[Any], *more: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query with a condition `IN ({})`, executed for at most MAX_VALUES values at a time."""
    for some in batches(values, MAX_VALUES):
        if isinstance(some[0], str):  # no stored text has half a surrogate pair, which no database accepts
            some = [each.encode("utf-8", "replace").decode() for each in some]
        yield from connection.execute(sql.format(marks(some)), [*some, *more])


def newest_changes(connection: Sql, stream: StreamKey) -> tuple[int, int]:
    """Return the number of the last change to a stream's records, and that of its last erasure."""
    found = connection.execute(NEWEST_CHANGES, (stream, stream)).fetchone()
    if not all(isinstance(each, int) for each in found):  # a damaged text value counts as the highest in SQLite
        sql = NEWEST_CHANGES.replace("stream = ?", "stream = ? AND typeof(changed) = 'integer'")
        found = connection.execute(sql, (stream, stream)).fetchone()
    return int(found[0]), int(found[1])


def cut_portion(rows: Iterable[tuple[Any, ...]], left: int) -> tuple[list[tuple[Any, ...]], int]:
    """Return the first rows, until they have PORTION_SIZE characters in all, and the number after which to continue.

    Args:
        rows: rows of records: FIELDS, then the record's number.
        left: the number after which to continue if no row is cut off; 0: there are no more rows.
    """
    kept, size = list[tuple[Any, ...]](), 0
    for row in rows:
        if size >= PORTION_SIZE:
            return kept, kept[-1][-1]
        kept.append(row)
        size += len(row[TEXT]) + len(row[DATA] or "")
    return kept, left


def newest_and_strongest(connection: Sql, stream: StreamKey, n: int, kinds: Iterable[Kind]) -> set[int]:
    """Return the numbers of a stream's n newest records of these kinds, and of its n strongest records of any kind
    (among those that have gained strength)."""
    kinds = list(dict.fromkeys(kinds))
    newest = " UNION ALL ".join([NEWEST_OF_KIND] * len(kinds))
    values = [value for kind in kinds for value in (stream, kind, n)]
    numbers = sorted(row[0] for row in connection.execute(newest, values)) if kinds else []
    return {*numbers[-n:], *(row[0] for row in connection.execute(STRONGEST, (stream, n)))}


def read_log(connection: Sql, where: str, values: Sequence[Any], kinds: Sequence[str] | None) -> list[Logged]:
    """Read rows of the log; if `kinds` is given, rows that cannot be read are left out."""
    read = [
        Logged(seq, mind, moment(at) or 0.0, printable(by), read_event(kind, payload), system == 1)
        for seq, mind, at, by, kind, payload, system in connection.execute(
            f"SELECT seq, mind, at, by, kind, payload, system FROM log {where}", values
        ).fetchall()
    ]
    return [each for each in read if kinds is None or not isinstance(each.event, Unknown)]


def last_change(connection: Sql) -> int:
    """Return the number of the last commit of any process; -1 if the counter is lost, which the next commit
    restores."""
    row = connection.execute("SELECT CAST(value AS INTEGER) FROM counters WHERE name = 'changed'").fetchone()
    return int(row[0]) if row else -1
