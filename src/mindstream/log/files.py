"""The files of a data folder: plain files that only their owner can read, or a clear no."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from mindstream.errors import MindstreamError, StorageError
from mindstream.log.names import StreamKey

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


BUSY_S = 10.0
"""How long another program's lock is waited for."""
MEND = "`mindstream doctor --mend` saves what can be read"


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether somebody else holds the file."""
    return (getattr(error, "sqlite_errorname", "") or "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


@contextlib.contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ones that say what to do."""
    try:
        yield
    except MindstreamError:
        raise
    except OverflowError as error:  # what is counted here has reached the highest number that SQLite can hold
        raise StorageError(f"{path}: a number in it is beyond all that can be counted; {MEND}") from error
    except UnicodeDecodeError as error:  # in SQLite's own words about the damage
        raise StorageError(f"{path}: the file is damaged; {MEND}, or put a copy back in its place") from error
    except sqlite3.Error as error:
        code = (error.sqlite_errorname if hasattr(error, "sqlite_errorname") else "") or ""
        text = "".join(each if each.isprintable() else "?" for each in str(error))  # it may repeat what is damaged
        if is_busy(error):
            advice = f"another program has held it for over {BUSY_S:.0f} seconds; close that program and try again"
        elif code.startswith("SQLITE_NOTADB"):
            advice = "the file is damaged or is no database; move it away, or put a copy back in its place"
        elif code.startswith("SQLITE_CORRUPT"):
            advice = f"the file is damaged; {MEND}, or put a copy back in its place"
        elif code.startswith("SQLITE_FULL") or (code.startswith("SQLITE_IOERR") and "full" in text):
            advice = f"the disk is full; make room and say it again (where there is room: {MEND})"
        elif code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            advice = (
                "it cannot be opened for writing, which is needed even to read it; check the folder's permissions, copy"
                " the folder to a place where you can write, or choose another with --data"
            )
        elif code.startswith("SQLITE_ERROR") and text.startswith(("no such ", "table ", "duplicate column")):
            advice = f"its tables are not as they should be; {MEND}"
        else:
            raise StorageError(f"{path}: {text}") from error
        raise StorageError(f"{path}: {advice} ({text})") from error
