"""What programs keep beside the log of a stream, by name, in words of their own: it goes with its stream.

Answers of a server to requests that may come again, what was spent, results of long operations: what several processes
must agree on, and nothing that is remembered.
"""

from __future__ import annotations

from collections.abc import Callable

from mindstream.clock import Moment
from mindstream.log.names import StreamKey
from mindstream.log.sql import Sql

CREATE = (
    "CREATE TABLE kept (stream TEXT NOT NULL, name TEXT NOT NULL, at REAL NOT NULL, value TEXT NOT NULL,"
    " PRIMARY KEY (stream, name)) WITHOUT ROWID"
)
RESULT = "result:"
"""Begins the names of what came of operations: people's words may stand in it, and go where any are forgotten."""


def between(prefix: str) -> tuple[str, str]:
    """Return the bounds of the names that begin with a prefix, the second one excluded."""
    return prefix, f"{prefix}\U0010ffff"


def change(
    connection: Sql, stream: StreamKey, name: str, at: Moment, new: Callable[[str | None], str | None]
) -> str | None:
    """Put what `new` makes of what stands there in its place (None: nothing); return what stood there before."""
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
    """Delete what was kept before a moment."""
    sql = "DELETE FROM kept WHERE stream = ? AND name >= ? AND name < ? AND at < ?"
    connection.execute(sql, (stream, *between(prefix), before))


def forget(connection: Sql, stream: StreamKey, *, results: bool) -> None:
    """Delete what is kept of a stream; `results`: what came of operations alone."""
    sql = "DELETE FROM kept WHERE stream = ?" + (" AND name >= ? AND name < ?" if results else "")
    connection.execute(sql, (stream, *between(RESULT)) if results else (stream,))
