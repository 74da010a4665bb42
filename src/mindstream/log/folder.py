"""A data folder, and what lies in it beside the database; what a terminal keeps, wherever the data lie."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from urllib.parse import quote

from mindstream.log.names import StreamKey

GATES = "gate-*.npz"
"""Files in which a gate of older versions kept what it had learned of what users said."""
UNFINISHED_GATES = ".gate-*.tmp"
COPIES = "mended-*"
"""The folders that hold copies from before a mending; they hold users' words."""
KEPT_COLUMNS = "columns"
"""The folder of what is kept of long streams, so that recall need not read them whole."""


def history(folder: Path, user: StreamKey) -> Path:
    """Return the file in which a terminal keeps what a user typed.

    No two users have one, though names of files be the same in capitals; one of an older version is renamed.
    """
    plain = quote(user, safe="")
    path = folder / "history" / f"{re.sub('%..|[A-Z]', _spelt, plain)}.txt"
    old = path.with_name(f"{plain}.txt")
    with contextlib.suppress(OSError):
        if old != path and not path.exists() and any(each.name == old.name for each in path.parent.iterdir()):
            old.rename(path)
    return path


def _spelt(part: re.Match[str]) -> str:
    """Write a capital as what it is encoded by, and leave alone what is encoded."""
    return part[0] if part[0].startswith("%") else f"%{ord(part[0]):02X}"
