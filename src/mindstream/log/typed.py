"""What a user typed in a terminal: a file beside the database, from which entries can be taken for good."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

from mindstream.errors import StorageError
from mindstream.log.files import private_file
from mindstream.log.folder import history

ENTRY = re.compile(r"^(?=# )", re.MULTILINE)
"""An entry begins with the line that says when it was typed; the lines of its text begin with +."""


def erase_typed(folder: Path, user: str, is_meant: Callable[[str], bool]) -> int:
    """Take the entries that are meant out of a user's typed history; return how many.

    Raises:
        StorageError: the file cannot be written anew.
    """
    path = history(folder, user)
    if path.is_symlink() or not path.exists() or not stat.S_ISREG(path.lstat().st_mode):
        return 0
    beside = path.with_suffix(".tmp")
    try:
        entries = ENTRY.split(path.read_text("utf-8", "replace"))
        kept = [entry for entry in entries if not is_meant(_text(entry))]
        if len(kept) < len(entries):
            beside.unlink(missing_ok=True)
            beside.touch(0o600)
            private_file(beside)
            with beside.open("w", encoding="utf-8") as file:
                file.write("".join(kept))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise StorageError(f"{path} cannot be written anew: {error.strerror}; do that, then forget again") from None
    return len(entries) - len(kept)


def _text(entry: str) -> str:
    return "\n".join(line[1:] for line in entry.splitlines() if line.startswith("+"))
