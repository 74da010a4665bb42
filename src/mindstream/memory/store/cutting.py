"""Copy a data folder as it was before a row of its log."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from mindstream.errors import InputError
from mindstream.log.database import FILE
from mindstream.log.files import explain_errors, private_database, private_folder


def copy_before(source: Path, target: Path, seq: int, at: float, unrated: Iterable[str] = ()) -> None:
    """Copy a folder's database file without the row `seq`, all later rows and the records that they wrote.

    Open work is not copied. A record that a later recall returned gets `at` as the time of its last recall, because the
    time of the recall before is not stored.

    Args:
        unrated: ids of records that were rated later; they get no importance.

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
        connection.execute("DELETE FROM log WHERE seq >= ?", (seq,))
        connection.execute("DELETE FROM records WHERE seq >= ?", (seq,))
        connection.execute("DELETE FROM checkpoints WHERE seq >= ?", (seq,))
        connection.execute("DELETE FROM uniques WHERE seq >= ?", (seq,))
        connection.execute("DELETE FROM work")
        connection.execute("UPDATE records SET accessed = ? WHERE accessed > ?", (at, at))
        connection.executemany("UPDATE records SET importance = NULL WHERE id = ?", [(each,) for each in unrated])
        connection.commit()
        connection.execute("VACUUM")
