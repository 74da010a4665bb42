"""Copy a data folder without some rows of its log."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from mindstream.errors import InputError
from mindstream.log.database import FILE
from mindstream.log.files import explain_errors, private_database, private_folder


def copy_without(
    source: Path, target: Path, rows: Iterable[int], at: float, unrated: Iterable[str] = (), lost: Iterable[str] = ()
) -> None:
    """Copy a folder's database file without some rows of its log, by their numbers, and the records that they wrote.

    Open work is not copied. A record that a recall after `at` returned gets `at` as the time of its last recall,
    because the time of the recall before is not stored.

    Args:
        unrated: ids of records that were rated later; they get no importance.
        lost: ids of further records that are not copied.

    Raises:
        InputError: the target is not empty.
        StorageError: one of the folders cannot be used.
    """
    path = private_folder(target) / FILE
    if path.exists():
        raise InputError(f"the target folder {target} already contains data: name another folder")
    private_database(path)
    with explain_errors(source / FILE), contextlib.closing(sqlite3.connect(source / FILE)) as connection:
        connection.execute("VACUUM INTO ?", (str(path),))
    with explain_errors(path), contextlib.closing(sqlite3.connect(path)) as connection:
        gone = [(row,) for row in rows]
        for table in ("log", "records", "checkpoints", "uniques"):
            connection.executemany(f"DELETE FROM {table} WHERE seq = ?", gone)
        connection.executemany("DELETE FROM records WHERE id = ?", [(each,) for each in lost])
        connection.execute("DELETE FROM work")
        connection.execute("UPDATE records SET accessed = ? WHERE accessed > ?", (at, at))
        connection.executemany("UPDATE records SET importance = NULL WHERE id = ?", [(each,) for each in unrated])
        connection.commit()
        connection.execute("VACUUM")
