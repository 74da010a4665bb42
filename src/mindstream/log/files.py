"""The files of a data folder: plain files that only their owner can read, or a clear no."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from mindstream.errors import StorageError

BESIDE = ("", "-wal", "-shm", "-journal")
"""What SQLite puts behind a database's name."""


def private_folder(folder: Path) -> Path:
    """Return a folder, made if need be so that only its owner can read it; one that is there stays as it is.

    Raises:
        StorageError: it cannot be made, or is no folder.
    """
    try:
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"the data folder {folder} cannot be made: {error.strerror}; choose another with --data"
        ) from None
    if not folder.is_dir():
        raise StorageError(f"the data folder {folder} is not a folder; choose another with --data")
    return folder


def private_database(path: Path) -> None:
    """Make sure that a database can be opened without harm: it and what lies beside it are plain files of the owner's.

    A file that is not there yet is made, as SQLite gives its own files the rights of the database.

    Raises:
        StorageError: a pipe, a device, a folder or a link in a circle stands there.
    """
    check_plain(path)
    with contextlib.suppress(OSError):  # it is there already, or SQLite will say why it cannot be made
        os.mknod(path, 0o600)  # not `open`: closing it would free the locks that this process holds on it
    for each in BESIDE:
        private_file(path.with_name(path.name + each))


def check_plain(path: Path) -> None:
    """Look at a database and what lies beside it, without opening anything.

    Raises:
        StorageError: something is no plain file; opening it could wait for ever.
    """
    for each in (path.with_name(path.name + end) for end in BESIDE):
        try:
            mode = each.stat().st_mode
        except FileNotFoundError:
            if each.is_symlink():
                raise StorageError(f"{each} is a link to nothing; move it away") from None
            continue
        except OSError as error:
            raise StorageError(f"{each} cannot be opened: {error.strerror}; move it away") from None
        if not stat.S_ISREG(mode):
            raise StorageError(f"{each} is {_named(mode)}, no file; move it away, or choose another folder with --data")


def private_file(path: Path) -> None:
    """Take everybody else's rights from a file of ours; one that is not there, or not ours, stays as it is."""
    with contextlib.suppress(OSError):  # on a read-only disk it stays as it is
        there = path.stat()
        if there.st_uid == os.geteuid() and there.st_mode & 0o077:
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
