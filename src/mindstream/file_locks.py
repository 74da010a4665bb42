"""Exclusive locks between processes on open files and folders: by `flock`; on Windows by `msvcrt`, which is untested.

A lock ends when its descriptor is closed, and so also when the process dies.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import errno
    import msvcrt

    BEYOND = 1 << 30
    """Position of the locked byte. It is after the content, because on Windows other processes cannot read a locked
    byte."""

    def lock(descriptor: int, *, wait: bool = True) -> None:
        """Lock an open file until it is closed.

        Raises:
            BlockingIOError: another process holds the lock, and `wait` is False.
            OSError: the file system cannot lock it.
        """
        os.lseek(descriptor, BEYOND, os.SEEK_SET)
        try:
            while True:
                try:
                    msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                    return
                except OSError as error:
                    if error.errno not in (errno.EACCES, errno.EDEADLK):
                        raise
                    if not wait:
                        raise BlockingIOError(error.errno, error.strerror) from None
                    # LK_LOCK gives up after ten seconds: try again
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)

    def open_folder(folder: Path) -> int:
        """Return a descriptor that can be locked in place of the folder, which Windows cannot lock."""
        return os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)

else:
    import fcntl

    def lock(descriptor: int, *, wait: bool = True) -> None:
        """Lock an open file or folder until it is closed.

        Raises:
            BlockingIOError: another process holds the lock, and `wait` is False.
            OSError: the file system cannot lock it.
        """
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))

    def open_folder(folder: Path) -> int:
        """Return a descriptor of a folder that can be locked."""
        return os.open(folder, os.O_RDONLY)


@contextmanager
def locked_folder(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Lock a folder against other processes during the `with` block.

    Raises:
        BlockingIOError: another process holds the lock, and `wait` is False.
        OSError: the folder cannot be opened, or the file system cannot lock it.
    """
    descriptor = open_folder(folder)
    try:
        lock(descriptor, wait=wait)
        yield
    finally:
        os.close(descriptor)
