"""Rows that move between pages leave copies in unused bytes; these are overwritten without rewriting the file."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from pathlib import Path

from mindstream.log import free_space
from mindstream.log.database import SECURED, open_database, overwrite_deleted


def table(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID")
    connection.execute("INSERT INTO counters VALUES (?, 1)", (SECURED,))
    connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, text TEXT, level INTEGER, after TEXT)")


def churn(connection: sqlite3.Connection, chance: random.Random) -> set[int]:
    """Write rows, change them at random, and delete some; return the remaining ones."""
    for batch in range(40):
        connection.execute("BEGIN")
        for number in range(batch * 80, batch * 80 + 80):
            text = f"zebra{number:05d}. " + "w" * chance.randrange(20, 400)
            connection.execute("INSERT INTO rows (number, text, level) VALUES (?, ?, 0)", (number, text))
        for number in chance.sample(range(batch * 80 + 80), 80):
            after = "x" * chance.randrange(200)
            connection.execute("UPDATE rows SET level = level + 1, after = ? WHERE number = ?", (after, number))
        connection.execute("COMMIT")
    there = set(range(40 * 80))
    for number in chance.sample(sorted(there), 800):
        connection.execute("DELETE FROM rows WHERE number = ?", (number,))
        there.remove(number)
    return there


def left(path: Path) -> set[int]:
    data = b"".join(each.read_bytes() for each in path.parent.iterdir())
    return {int(each[:5]) for each in data.split(b"zebra")[1:] if each[:5].isdigit()}


def test_copies_of_deleted_rows_are_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    with contextlib.closing(open_database(path, [table])) as connection, free_space.in_use(path):
        there = churn(connection, random.Random(5))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        schema = connection.execute("PRAGMA schema_version").fetchone()
        assert left(path) - there  # secure_delete alone leaves some
        overwrite_deleted(connection, path)
        assert left(path) == there
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA schema_version").fetchone() == schema  # no VACUUM


def test_a_file_of_an_earlier_version_is_rewritten_once(tmp_path: Path) -> None:
    path = tmp_path / "rows.db"
    with contextlib.closing(open_database(path, [table])) as connection, free_space.in_use(path):
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("DELETE FROM counters")
        there = churn(connection, random.Random(6))
        schemas = [connection.execute("PRAGMA schema_version").fetchone()]
        for _ in range(2):
            overwrite_deleted(connection, path)
            schemas.append(connection.execute("PRAGMA schema_version").fetchone())
        assert left(path) == there
        assert schemas[0] != schemas[1] == schemas[2]
