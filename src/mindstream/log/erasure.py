"""Finish erasures of users, even if the process dies in the middle of one; delete the files next to the database.

Before the first deletion, a small file (the intent) is written that contains the user's key and the number of the log's
last row. It is deleted when the erasure is complete. The erasing process holds a lock on that file. If the process
dies, the lock ends: the next process that opens the folder finds an intent without a lock, and finishes the erasure.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from mindstream import file_locks
from mindstream.clock import Moment
from mindstream.errors import InputError, StorageError
from mindstream.identifiers import StreamKey
from mindstream.log import erasures, free_space
from mindstream.log.database import BUSY_S, FILE, explain_errors, overwrite_deleted
from mindstream.log.files import COPIES, GATES, KEPT_COLUMNS, UNFINISHED_GATES, check_plain, history, private_file
from mindstream.paths import read_text

INTENTS = "erasing-*.json"
LONGEST = 10_000
LOOK_MS = 500
"""Maximum wait, in milliseconds, of a process that opens a folder, for a lock on the database. After it, the
overwriting of deleted data is left to the next process that opens the folder."""
ROWS = {
    "records": ("stream", "seq"),
    "log": ("mind", "seq"),
    "work": ("mind", "cause"),
    "checkpoints": ("stream", "seq"),
    "uniques": ("stream", "seq"),
    "erased": ("stream", ""),
    "streams": ("key", ""),
    "kept": ("stream", ""),
}
"""Tables with rows of a user. For each table: the column with the user's key, and the column with the number of a log
row ("": none)."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A user to be erased, and the number of the log's last row when the erasure began. Later rows are kept."""

    user: StreamKey
    upto: int


def pending(folder: Path, user: StreamKey) -> bool:
    """Return whether this user's erasure was begun and not finished."""
    try:
        return _parse(read_text(_place(folder, user), LONGEST)) is not None
    except InputError:
        return False


@contextlib.contextmanager
def declare_intent(folder: Path, user: StreamKey) -> Iterator[Intent]:
    """Write the file that declares an erasure (the intent), before anything is deleted. If an interrupted erasure left
    such a file, yield its intent. The file is removed if the block ends without an error.

    Raises:
        StorageError: another process is erasing that user, or the file cannot be written or locked.
    """
    place = _place(folder, user)
    with _held(place) as descriptor:
        intent = _read(descriptor)
        if intent is None:
            with connect_beside(folder) as connection:
                (upto,) = connection.execute("SELECT coalesce(max(seq), 0) FROM log").fetchone()
            intent = Intent(user, upto)
            _write(place, descriptor, intent)
        yield intent
        place.unlink(missing_ok=True)
        _settle(folder)


def finish_all(folder: Path, user: StreamKey) -> None:
    """Finish all interrupted erasures in this folder, and overwrite deleted bytes if an interrupted process did not.

    Raises:
        StorageError: the erasure of `user` cannot be finished, or another program is doing it. Erasures of other users
            are tried again when the folder is opened next.
    """
    for place in sorted(folder.glob(INTENTS)):
        try:
            with _held(place) as descriptor:
                if intent := _read(descriptor):
                    finish(folder, intent)
                place.unlink(missing_ok=True)
                _settle(folder)
        except StorageError:
            if place == _place(folder, user):
                raise
    _finish_rewriting(folder)


def _finish_rewriting(folder: Path) -> None:
    """Overwrite the bytes of erased rows if a process died before it did so.

    If another program prevents this, or the file is damaged, the next process that opens the folder tries again.
    """
    if not (folder / FILE).exists():
        return
    with contextlib.suppress(StorageError):
        check_plain(folder / FILE)
        overwrite_where_due(folder, LOOK_MS)


def _all_kept(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{KEPT_COLUMNS}/*"))


def overwrite_where_due(
    folder: Path,
    look_ms: float = BUSY_S * 1000,
    outdated: Callable[[sqlite3.Connection], list[Path]] | None = None,
) -> bool:
    """Overwrite the bytes of erased rows if a counter in the database says that this is due; return whether it was due.

    Args:
        look_ms: maximum wait, in milliseconds, for reading this counter.
        outdated: returns the files of kept columns that contain erased data; None: all kept columns are deleted.

    Raises:
        StorageError: another program keeps reading or holds a lock.
    """
    with connect_beside(folder) as connection:
        connection.execute(f"PRAGMA busy_timeout = {look_ms:.0f}")
        row = connection.execute("SELECT value FROM counters WHERE name = 'erased' AND value > 0").fetchone()
        if row is not None:
            connection.execute(f"PRAGMA busy_timeout = {BUSY_S * 1000:.0f}")
            overwrite_deleted(connection, folder / FILE)
            # If a process died after an erasure, the files with kept columns may still contain erased data.
            delete(_all_kept(folder) if outdated is None else outdated(connection))
            connection.execute("UPDATE counters SET value = 0 WHERE name = 'erased' AND value = ?", row)
        return row is not None


def finish(folder: Path, intent: Intent) -> None:
    """Delete a user's remaining rows up to the intent's last row, and the user's files; overwrite the deleted bytes in
    the database.

    Raises:
        StorageError: a file cannot be deleted, or another program keeps reading.
    """
    delete(files_of(folder, intent.user))
    with connect_beside(folder) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("BEGIN IMMEDIATE")
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table, (owner, row) in ROWS.items():
            if row and table in there:  # a file of an older version has fewer tables
                connection.execute(f"DELETE FROM {table} WHERE {owner} = ? AND {row} <= ?", (intent.user, intent.upto))
        for table in {"erased", "kept"} & there:  # their rows contain the user's key, but no row number of the log
            connection.execute(f"DELETE FROM {table} WHERE stream = ?", (intent.user,))
        if "streams" in there:
            anew = "SELECT 1 FROM log WHERE mind = streams.key"
            connection.execute(f"DELETE FROM streams WHERE key = ? AND NOT EXISTS ({anew})", (intent.user,))
        if "erasures" in there:
            erasures.tell(connection, intent.user, whole=True)
        connection.execute("COMMIT")
        overwrite_deleted(connection, folder / FILE)


def files_of(folder: Path, user: StreamKey) -> list[Path]:
    """Return the existing files next to the database that may contain words of a user.

    The user's own file is the terminal's input history. The others contain data of all users: gate files of older
    versions, kept columns, and the copies made before a repair.
    """
    patterns = (GATES, UNFINISHED_GATES, f"{COPIES}/*", f"{KEPT_COLUMNS}/*")
    found = [history(folder, user), *(path for pattern in patterns for path in sorted(folder.glob(pattern)))]
    return [path for path in found if path.exists()]


def delete_copies(folder: Path) -> None:
    """Delete the copies made before a repair: they contain words of all users.

    Raises:
        StorageError: one of them cannot be deleted.
    """
    delete(sorted(folder.glob(f"{COPIES}/*")))


def delete(paths: list[Path]) -> None:
    """Delete files that contain a user's words, and a folder of copies that becomes empty.

    Raises:
        StorageError: one of them cannot be deleted.
    """
    for path in paths:
        try:
            path.unlink(missing_ok=True)
            if path.parent.match(COPIES) and not any(path.parent.iterdir()):
                path.parent.rmdir()
        except OSError as error:
            raise StorageError(
                f"{path} cannot be deleted: {error.strerror}; delete it yourself, then repeat the erasure"
            ) from None


@contextlib.contextmanager
def connect_beside(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open a second connection to the database, while other connections of this process may be open."""
    with (
        explain_errors(folder / FILE),
        free_space.in_use(folder / FILE),
        contextlib.closing(sqlite3.connect(folder / FILE, timeout=BUSY_S, isolation_level=None)) as connection,
    ):
        connection.execute("PRAGMA temp_store = MEMORY")  # temporary data of VACUUM must not touch the disk
        yield connection


def _place(folder: Path, user: StreamKey) -> Path:
    return folder / f"erasing-{hashlib.blake2b(user.encode(), digest_size=12).hexdigest()}.json"


@contextlib.contextmanager
def _held(place: Path) -> Iterator[int]:
    """Lock the file that declares an erasure (the intent) until the block ends. Create the file if it does not exist.

    Raises:
        StorageError: the file cannot be used, or another process is erasing this user's data.
    """
    while True:
        try:
            descriptor = os.open(
                place, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o600
            )
        except OSError as error:
            raise StorageError(
                f"{place} cannot be written: {error.strerror}; remove the cause, then repeat the erasure"
            ) from None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise StorageError(f"{place} is not a regular file; move it away, then repeat the erasure")
            _lock(place, descriptor)
            if os.fstat(descriptor).st_nlink:  # 0: the process that held the lock has just deleted the file
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _lock(place: Path, descriptor: int) -> None:
    try:
        file_locks.lock(descriptor, wait=False)
    except BlockingIOError:
        raise StorageError(
            "another process is erasing this user's data: wait until it ends, then repeat the erasure"
        ) from None
    except OSError as error:
        raise StorageError(
            f"{place} cannot be locked: {error.strerror}; remove the cause, then repeat the erasure"
        ) from None


def _read(descriptor: int) -> Intent | None:
    return _parse(os.pread(descriptor, LONGEST, 0))


def _parse(content: bytes | str) -> Intent | None:
    """Return an intent; None: the file is incomplete, so no deletion had begun."""
    try:
        found = json.loads(content)
        user, upto = found["user"], found["upto"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    is_sound = isinstance(user, str) and user.isprintable() and isinstance(upto, int) and 0 <= upto < 1 << 63
    return Intent(StreamKey(user), upto) if is_sound else None


def _write(place: Path, descriptor: int, intent: Intent) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(intent)).encode(), 0)
        os.fsync(descriptor)
        _settle(place.parent)
    except OSError as error:
        raise StorageError(f"{place} cannot be written: {error.strerror}; nothing was erased") from None


def _settle(folder: Path) -> None:
    """Make the creation and deletion of files in a folder durable."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# The terminal's input history: a file next to the database, from which single entries can be removed.


ENTRY = re.compile(r"^(?=# )", re.MULTILINE)
"""The start of an entry: a line with # and the time. The lines of its text begin with +."""


def erase_typed(folder: Path, user: StreamKey, is_meant: Callable[[str], bool], before: Moment | None = None) -> int:
    """Remove entries from a user's input history; return the number of removed entries.

    If there is no history file, the result is 0.

    Args:
        is_meant: returns whether an entry with this text must be removed.
        before: a moment; all entries that were typed before this moment are removed, too. None: only entries that
            `is_meant` names are removed.

    Raises:
        StorageError: the file cannot be read or rewritten.
    """
    path = history(folder, user)
    if path.is_symlink() or not path.exists() or not stat.S_ISREG(path.lstat().st_mode):
        return 0
    beside = path.with_suffix(".tmp")
    try:
        entries = ENTRY.split(path.read_text("utf-8", "replace"))
        kept = [entry for entry in entries if not (is_meant(_text(entry)) or (before and _typed_at(entry) < before))]
        if len(kept) < len(entries):
            beside.unlink(missing_ok=True)
            beside.touch(0o600)
            private_file(beside)
            with beside.open("w", encoding="utf-8") as file:
                file.write("".join(kept))
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        return len(entries) - len(kept)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise StorageError(
            f"{path} cannot be rewritten: {error.strerror}; make its folder writable (or free disk space), then repeat"
            " the command"
        ) from None


def _typed_at(entry: str) -> float:
    """Return when an entry was typed; infinity if it has no valid time."""
    try:
        return datetime.fromisoformat(entry.partition("\n")[0].removeprefix("# ").strip()).astimezone().timestamp()
    except (ValueError, OverflowError):
        return math.inf


def _text(entry: str) -> str:
    return "\n".join(line[1:] for line in entry.splitlines() if line.startswith("+"))
