"""All rows of a database, as far as they can be read."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mindstream.memory.store import registry
from mindstream.memory.store.rows import FIELDS, salvage

Row = tuple[Any, ...]

TABLES = {
    "log": ["seq", "mind", "at", "by", "kind", "payload", "sum", "system"],
    "records": ["number", *FIELDS, "changed", "same", "words_sum", "vector_sum"],
    "work": [
        "id",
        "mind",
        "slot",
        "cause",
        "owner",
        "lease",
        "running",
        "attempts",
        "error",
        "done",
        "failures",
    ],
    "erased": ["rowid", "stream", "id", "changed"],
}
"""The columns that are read, the number of the row first."""
ACCOUNTS = ("salts", "erasures", "audit", "retention", "kept")
TRIES = 20_000
"""So often a part of a table that cannot be read is halved, to come to the rows around it."""
CHANGED, SAME, WORDS_SUM, VECTOR_SUM = range(-4, 0)


class Tables:
    """All rows of a database, as far as they can be read.

    Attributes:
        rows: by table, each as TABLES names it; None where a column is not there.
        records: the rows of the records, each with what can be read from it.
        minds: whose each row of the log is.
        counters: their values, by name.
        accounts: what the database itself keeps (log/erasures, audit, retention, kept), by table, where it can be read.
        decaying: the streams that are marked as written under the policy `decay`; None: the file is older than marks.
        lost: by table, how many parts of it cannot be read.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.rows: dict[str, list[Row]] = {}
        self.lost: Counter[str] = Counter()
        for table, columns in TABLES.items():
            self.rows[table] = self._read(connection, table, columns)
        self.counters: dict[str, int] = {}
        with contextlib.suppress(sqlite3.Error):
            found = connection.execute("SELECT name, value FROM counters").fetchall()
            self.counters = {name: n for name, n in found if isinstance(name, str) and isinstance(n, int)}
        self.accounts: dict[str, list[Row]] = {}
        for table in ACCOUNTS:
            with contextlib.suppress(sqlite3.Error):
                self.accounts[table] = connection.execute(f"SELECT * FROM {table}").fetchall()
        self.decaying: list[str] | None = None
        with contextlib.suppress(sqlite3.Error):
            if connection.execute("PRAGMA user_version").fetchone()[0] >= registry.FIRST_MARKED:
                marked = "SELECT stream FROM uniques WHERE name = ?"
                self.decaying = [row[0] for row in connection.execute(marked, (registry.WRITTEN_UNDER_DECAY,))]
        self.minds: dict[int, object] = {row[0]: row[1] for row in self.rows["log"]}
        self.records = [(row, salvage(row[1:CHANGED])) for row in self.rows["records"]]

    def _read(self, connection: sqlite3.Connection, table: str, columns: list[str]) -> list[Row]:
        try:
            there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")} | {"rowid"}
        except sqlite3.Error:
            there = set()
        if len(there) < 2:
            self.lost[table] += 1
            return []
        names = ", ".join(each if each in there else "NULL" for each in columns)
        sql = f"SELECT {names} FROM {table} WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
        found: list[Row] = []
        parts, tries = [(0, _last(connection, table))], 0
        while parts:
            low, high = parts.pop()
            try:
                found += connection.execute(sql, (low, high)).fetchall()
            except sqlite3.Error:
                tries += 1
                if low == high or tries > TRIES:
                    self.lost[table] += 1
                else:
                    parts += [((low + high) // 2 + 1, high), (low, (low + high) // 2)]
        return found


@contextlib.contextmanager
def looking_into(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database to look at one moment of it, as far as it can be read.

    Raises:
        sqlite3.DatabaseError: it cannot be read at all.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=2, isolation_level=None)) as connection:
        connection.text_factory = _text
        connection.execute("PRAGMA writable_schema = ON")  # a broken line of the schema hides its own table only
        connection.execute("BEGIN")
        try:
            yield connection
        except UnicodeDecodeError as error:  # SQLite's own words about it
            raise sqlite3.DatabaseError(f"its tables have no names that can be read ({error})") from None


def _last(connection: sqlite3.Connection, table: str) -> int:
    """Return the highest number of a row, or of one that can be meant."""
    for sql in (f"SELECT max(rowid) FROM {table}", "SELECT seq FROM sqlite_sequence", "PRAGMA page_count"):
        with contextlib.suppress(sqlite3.Error, TypeError, ValueError):
            return int(connection.execute(sql).fetchone()[0] or 0) + (0 if sql.startswith("SELECT max") else 10_000)
    return 1_000_000


def _text(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content
