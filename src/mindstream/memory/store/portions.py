"""What changed in a stream since a point, read from the SQLite file; in portions where asked.

A portion is a page by the number of the row, which is the order of writing: whoever fills columns page by page gets the
records in that order, whatever is written or erased meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

from mindstream.log.names import StreamKey
from mindstream.memory.store.record import KINDS

PORTION_SIZE = 50_000
"""A portion ends where it has so many characters, however few records they are."""
NEWEST = (
    "SELECT (SELECT coalesce(max(changed), 0) FROM records WHERE stream = ?),"
    " (SELECT coalesce(max(changed), 0) FROM erased WHERE stream = ?)"
)
CHANGED = "SELECT number FROM records INDEXED BY records_changed WHERE stream = ? AND changed > ? LIMIT ?"
COUNT = "SELECT count(*) FROM records INDEXED BY records_changed WHERE stream = ? AND changed > ?"
OF_KIND = (
    "SELECT * FROM (SELECT number FROM records INDEXED BY records_latest"
    " WHERE stream = :stream AND kind = '{}' AND number > :after ORDER BY number LIMIT :most)"
)
NEXT = f"{' UNION ALL '.join(map(OF_KIND.format, KINDS))} ORDER BY number LIMIT :most"
"""The next rows of a stream: the index that there is gives those of each kind in order."""


class Portion(NamedTuple):
    """Rows of records, ids that were erased, the newest change of all, and the number to go on after (0: that is all).

    `gone`, and how many rows are `ahead`, come with the first portion.
    """

    rows: list[tuple[Any, ...]]
    gone: list[str]
    upto: int
    left: int
    ahead: int = 0


def read_portion(
    connection: sqlite3.Connection,
    columns: Sequence[str],
    stream: StreamKey,
    since: int,
    after: int = 0,
    most: int | None = None,
) -> Portion:
    """Read what changed after the point `since`: all of it, or a portion of at most so many records.

    What it reads belongs together if the connection stands in a transaction.
    """
    written, erased = _newest(connection, stream)
    if since and not after and max(written, erased) <= since:
        return Portion([], [], since, 0)
    upto, gone = max(since, written, erased), _gone(connection, stream, since, after) if erased > since else []
    if most is None:
        changed = f"SELECT {', '.join(columns)} FROM records WHERE stream = ? AND changed > ? ORDER BY number"
        return Portion(connection.execute(changed, (stream, since)).fetchall(), gone, upto, 0)
    numbers, whole = _numbers(connection, stream, since, after, most)
    rows, reached = _rows(connection, columns, numbers, since)
    left = reached or (0 if whole else numbers[-1])
    ahead = connection.execute(COUNT, (stream, since)).fetchone()[0] - len(rows) if left and not after else 0
    return Portion(rows, gone, upto, left, ahead)


def _newest(connection: sqlite3.Connection, stream: StreamKey) -> tuple[int, int]:
    """Return the number of the last change to a stream's records, and that of the last erasure."""
    written, erased = connection.execute(NEWEST, (stream, stream)).fetchone()
    if isinstance(written, int) and isinstance(erased, int):
        return written, erased
    odd = NEWEST.replace("stream = ?", "stream = ? AND typeof(changed) = 'integer'")  # SQLite takes it for the highest
    written, erased = connection.execute(odd, (stream, stream)).fetchone()
    return int(written), int(erased)


def _gone(connection: sqlite3.Connection, stream: StreamKey, since: int, after: int) -> list[str]:
    if after:
        return []
    rows = connection.execute("SELECT id FROM erased WHERE stream = ? AND changed > ?", (stream, since))
    return [row[0] for row in rows]


def _numbers(
    connection: sqlite3.Connection, stream: StreamKey, since: int, after: int, most: int
) -> tuple[list[int], bool]:
    """Return the numbers to look at, in order, and whether there are no more."""
    if since and not after:
        few = connection.execute(CHANGED, (stream, since, most + 1)).fetchall()
        if len(few) <= most:
            return sorted(row[0] for row in few), True
    rows = connection.execute(NEXT, {"stream": stream, "after": after, "most": most}).fetchall()
    return [row[0] for row in rows], len(rows) < most


def _rows(
    connection: sqlite3.Connection, columns: Sequence[str], numbers: Sequence[int], since: int
) -> tuple[list[tuple[Any, ...]], int]:
    """Return these rows where they changed; with where it stopped, if they were too long to read at once."""
    rows, size, reached = list[tuple[Any, ...]](), 0, 0
    text, data = columns.index("text"), columns.index("data")
    marks = ",".join(map(str, numbers))
    sql = f"SELECT {', '.join(columns)}, number FROM records WHERE number IN ({marks}) AND changed > ? ORDER BY number"
    for *row, number in connection.execute(sql, (since,)):
        if size >= PORTION_SIZE:
            return rows, reached
        rows.append(tuple(row))
        size, reached = size + len(row[text]) + len(row[data] or ""), number
    return rows, 0
