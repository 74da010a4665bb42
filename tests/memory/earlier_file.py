"""Restore a data file to the schema of an earlier version."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from mindstream.log.database import open_database
from mindstream.memory.store.tables import MIGRATIONS

OBJECTS = "SELECT type, name FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"


def undo_migrations(file: Path, seen: int) -> None:
    """Drop the tables, indexes and triggers that were added by migrations after the first `seen` ones."""
    with (
        contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection,
        contextlib.closing(open_database(file.with_name("older.db"), MIGRATIONS[:seen])) as older,
    ):
        later = set(connection.execute(OBJECTS)) - {tuple(row) for row in older.execute(OBJECTS)}
        for kind, name in sorted(later, reverse=True):  # triggers first; indexes go with their tables
            connection.execute(f"DROP {kind} IF EXISTS {name}")
        connection.execute(f"PRAGMA user_version = {seen}")
    for each in file.parent.glob("older.db*"):
        each.unlink()
