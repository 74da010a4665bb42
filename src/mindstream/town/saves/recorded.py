"""Worlds that were lived already, with a language mind behind each resident: ready to look at, and to go on with."""

from __future__ import annotations

import contextlib
import lzma
import sqlite3
import tempfile
from pathlib import Path

from mindstream.errors import InputError
from mindstream.log.database import FILE
from mindstream.log.files import private_database, private_folder

WORLDS = {
    "recorded": "Ostrovu Cucului, a hamlet of six in the Danube delta, on two days of September; a language mind"
    " behind each resident",
}
"""What each of them is; a world lies beside this module's folder, in `packs`, as NAME.db.xz."""


def unpack_world(name: str, folder: Path) -> None:
    """Put a recorded world into a data folder.

    Raises:
        InputError: there is no such world, or something is in the folder already.
        StorageError: the folder cannot be used.
    """
    if name not in WORLDS:
        raise InputError(f"there is no recorded world {name!r}: {', '.join(WORLDS)}")
    path = private_folder(folder) / FILE
    if path.exists():
        raise InputError(
            f"something is in {folder} already: look at it with `mindstream town status`, or name another by --data"
        )
    whole = lzma.decompress((Path(__file__).parents[1] / "packs" / f"{name}.db.xz").read_bytes())
    private_database(path)
    path.write_bytes(whole)


def pack_world(folder: Path, path: Path) -> None:
    """Write what a data folder holds as a recorded world.

    Raises:
        InputError: nothing is there.
    """

    source = folder / FILE
    if not source.is_file():
        raise InputError(f"no town lives in {folder}")
    with tempfile.TemporaryDirectory() as made:
        whole = Path(made) / FILE
        with contextlib.closing(sqlite3.connect(source)) as connection:
            connection.execute("VACUUM INTO ?", (str(whole),))
        path.write_bytes(lzma.compress(whole.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
