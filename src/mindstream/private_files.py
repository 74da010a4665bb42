"""Files and folders that only their owner can read."""

from __future__ import annotations

import os
from io import TextIOWrapper
from pathlib import Path

FILE, FOLDER = 0o600, 0o700


def make_private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing; one that is there stays as it is.

    Raises:
        OSError: it cannot be made.
    """
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(FOLDER, exist_ok=True)


def append_private(path: Path) -> TextIOWrapper:
    """Open a text file to append to it; one that is made can be read by its owner alone.

    Raises:
        OSError: it cannot be opened, or is a FIFO that nobody reads: it would be waited for.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0)
    return os.fdopen(os.open(path, flags, FILE), "a", encoding="utf-8")


def write_private(path: Path, data: bytes) -> None:
    """Write a new file that its owner alone can read.

    Raises:
        OSError: it cannot be written, or is there already.
    """
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE), "wb") as file:
        file.write(data)
