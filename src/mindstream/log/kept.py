"""Named values that programs store for a stream outside of its log; they are deleted with the stream.

Examples: cached answers to repeated requests, spending, results of long operations. All processes share them. They are
not part of the memory.
"""

from __future__ import annotations

from collections.abc import Callable

from mindstream.clock import Moment
from mindstream.identifiers import StreamKey
from mindstream.log.sql import Sql

CREATE = (
    "CREATE TABLE kept (stream TEXT NOT NULL, name TEXT NOT NULL, at REAL NOT NULL, value TEXT NOT NULL,"
    " PRIMARY KEY (stream, name)) WITHOUT ROWID"
)
RESULT = "result:"
"""Prefix of the names of operations' results. They may contain users' words, so every erasure in a stream deletes all
results of the stream."""


def between(prefix: str) -> tuple[str, str]:
    """Return the bounds of all names with a prefix: the first is included, the second is not."""
    return prefix, f"{prefix}\U0010ffff"


def change(
    connection: Sql, stream: StreamKey, name: str, at: Moment, new: Callable[[str | None], str | None]
) -> str | None:
    """Replace a value by the result of `new`, and return the old value.

    `new` is called with the old value (None: there is none). If `new` returns None, the value is deleted.
    """
    row = connection.execute("SELECT value FROM kept WHERE stream = ? AND name = ?", (stream, name)).fetchone()
    before = None if row is None else str(row[0])
    if (value := new(before)) is None:
        connection.execute("DELETE FROM kept WHERE stream = ? AND name = ?", (stream, name))
    elif value != before:
        sql = (
            "INSERT INTO kept (stream, name, at, value) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (stream, name) DO UPDATE SET at = excluded.at, value = excluded.value"
        )
        connection.execute(sql, (stream, name, at, value))
    return before


def drop(connection: Sql, stream: StreamKey, prefix: str, before: Moment) -> None:
    """Delete the values whose names begin with a prefix and that were written before a moment."""
    sql = "DELETE FROM kept WHERE stream = ? AND name >= ? AND name < ? AND at < ?"
    connection.execute(sql, (stream, *between(prefix), before))


def forget(connection: Sql, stream: StreamKey, *, results: bool) -> None:
    """Delete all values of a stream; `results`: only the results of operations."""
    sql = "DELETE FROM kept WHERE stream = ?" + (" AND name >= ? AND name < ?" if results else "")
    connection.execute(sql, (stream, *between(RESULT)) if results else (stream,))
