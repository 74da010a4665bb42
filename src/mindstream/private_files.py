"""Files and folders that only their owner can access."""

from __future__ import annotations

import os
from io import TextIOWrapper
from pathlib import Path

FILE, FOLDER = 0o600, 0o700


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents, accessible to their owner only; an existing folder is not changed.

    Raises:
        OSError: the folder cannot be created.
    """
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(FOLDER, exist_ok=True)


def append_private(path: Path) -> TextIOWrapper:
    """Open a text file for appending; a new file is readable by its owner only.

    Raises:
        OSError: the file cannot be opened. This is also raised for a FIFO without a reader, instead of waiting for one.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0)
    return os.fdopen(os.open(path, flags, FILE), "a", encoding="utf-8")


def write_private(path: Path, data: bytes) -> None:
    """Write a new file that is readable by its owner only.

    Raises:
        OSError: the file exists already, or cannot be written.
    """
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE), "wb") as file:
        file.write(data)
