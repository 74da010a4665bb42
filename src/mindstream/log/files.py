"""The files of a data folder. Check that they are regular files, and make them readable by their owner only."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path
from urllib.parse import quote

from mindstream.errors import StorageError
from mindstream.identifiers import StreamKey

BESIDE = ("", "-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite creates for a database."""


def private_folder(folder: Path) -> Path:
    """Return a folder. A missing folder is created, readable by its owner only.

    Raises:
        StorageError: the folder cannot be created, or the path is not a folder.
    """
    try:
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"the folder {folder} cannot be created: {error.strerror}; choose other data with --data"
        ) from None
    if not folder.is_dir():
        raise StorageError(f"{folder} is not a folder; choose other data with --data")
    return folder


def private_database(path: Path) -> None:
    """Check that a database and SQLite's files for it are regular files, and make them readable by their owner only.

    A missing database file is created, because SQLite gives the same permissions to the files that it adds.

    Raises:
        StorageError: a file is not a regular file (but a pipe, a device, a folder), is a broken link, or cannot be
            examined.
    """
    check_plain(path)
    with contextlib.suppress(OSError):  # it exists already, or SQLite will report why it cannot be created
        os.mknod(path, 0o600)  # not `open`: closing the file would release this process's locks on it
    for each in BESIDE:
        private_file(path.with_name(path.name + each))


def check_plain(path: Path) -> None:
    """Check that a database and SQLite's files for it are regular files, without opening them.

    Raises:
        StorageError: a file is not a regular file, is a broken link, or cannot be examined.
    """
    for each in (path.with_name(path.name + end) for end in BESIDE):
        try:
            mode = each.stat().st_mode
        except FileNotFoundError:
            if each.is_symlink():
                raise StorageError(f"{each} is a broken link; move it away") from None
            continue
        except OSError as error:
            raise StorageError(f"{each} cannot be opened: {error.strerror}; move it away") from None
        if not stat.S_ISREG(mode):
            raise StorageError(
                f"{each} is {_named(mode)}, not a regular file; move it away, or choose another folder with --data"
            )


def private_file(path: Path) -> None:
    """Remove all permissions of other users from a file that this process's user owns; leave other files alone."""
    with contextlib.suppress(OSError):  # on a read-only disk the permissions stay
        there = path.stat()
        if hasattr(os, "geteuid") and there.st_uid == os.geteuid() and there.st_mode & 0o077:
            path.chmod(0o600)


def _named(mode: int) -> str:
    named = {
        stat.S_ISDIR: "a folder",
        stat.S_ISFIFO: "a pipe",
        stat.S_ISSOCK: "a socket",
        stat.S_ISCHR: "a device",
        stat.S_ISBLK: "a device",
    }
    return next((name for is_one, name in named.items() if is_one(mode)), "something else")


GATES = "gate-*.npz"
"""Files in which older versions stored data derived from users' words."""
UNFINISHED_GATES = ".gate-*.tmp"
COPIES = "mended-*"
"""Folders with copies that were made before a repair; they contain users' words."""
KEPT_COLUMNS = "columns"
"""Name of the folder with kept columns: records of long streams in a form that loads fast
(memory/store/kept_columns)."""


def history(folder: Path, user: StreamKey) -> Path:
    """Return the file with a user's input history in the terminal.

    Each user has a separate file, even on file systems that ignore case. A file of an older version is renamed.
    """
    plain = quote(user, safe="")
    path = folder / "history" / f"{re.sub('%..|[A-Z]', _spelt, plain)}.txt"
    old = path.with_name(f"{plain}.txt")
    with contextlib.suppress(OSError):
        if old != path and not path.exists() and any(each.name == old.name for each in path.parent.iterdir()):
            old.rename(path)
    return path


def _spelt(part: re.Match[str]) -> str:
    """Encode a capital letter as %XX; return a part that is already encoded unchanged."""
    return part[0] if part[0].startswith("%") else f"%{ord(part[0]):02X}"
