"""Store recorded data folders as small files: compressed, without vectors that the bundled embedder can compute."""

from __future__ import annotations

import contextlib
import lzma
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mindstream.errors import InputError
from mindstream.log.database import FILE
from mindstream.log.files import private_database, private_folder
from mindstream.memory.store.rows import sum_of_vector
from mindstream.models.embedders.wordllama import WordLlama, vectors


def pack(folder: Path, file: Path) -> int:
    """Write the database of a data folder to a packed file, and return its size in bytes.

    Raises:
        InputError: the folder has no database.
    """
    if not (folder / FILE).is_file():
        raise InputError(f"there is no database in {folder}")
    with tempfile.TemporaryDirectory() as made:
        copy = Path(made) / FILE
        with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:
            connection.execute("VACUUM INTO ?", (str(copy),))
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            same = [(number,) for number, vector, computed in _computed(connection) if vector == computed]
            connection.executemany("UPDATE records SET vector = NULL, vector_sum = NULL WHERE number = ?", same)
            connection.execute("VACUUM")
        file.write_bytes(lzma.compress(copy.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
    return file.stat().st_size


def unpack(file: Path, folder: Path) -> None:
    """Unpack a packed file as the database of a data folder, which is created if it is missing.

    Raises:
        StorageError: the folder cannot be used.
    """
    path = private_folder(folder) / FILE
    private_database(path)
    path.write_bytes(lzma.decompress(file.read_bytes()))
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        missing = [(new, sum_of_vector(new), number) for number, vector, new in _computed(connection) if vector is None]
        connection.executemany("UPDATE records SET vector = ?, vector_sum = ? WHERE number = ?", missing)


def _computed(connection: sqlite3.Connection) -> Iterator[tuple[int, bytes | None, bytes]]:
    """Yield number, stored vector and newly computed vector of each record that uses the bundled embedder."""
    rows = connection.execute(
        "SELECT number, text, vector FROM records WHERE embedder = ?", (WordLlama.name,)
    ).fetchall()
    for (number, _, vector), computed in zip(rows, vectors([text for _, text, _ in rows]), strict=True):
        yield number, vector, computed.astype(np.float16).tobytes()
