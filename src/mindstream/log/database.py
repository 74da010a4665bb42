"""One SQLite file, many processes: group commit, migrations, errors in plain words.

All writing goes through one thread that gathers what is waiting into one transaction: ten writers at once pay for one
fsync. A write is a function of the connection; it succeeds or fails alone (a savepoint each) and is on disk when the
await returns. A read is a function of a connection, too. It begins on the event loop's thread, where a short one costs
a tenth of a hop to a thread and back; one that takes more than STEPS steps of SQLite's machine is broken off there and
runs in a thread (log/reader_threads), so that no event loop waits for a long read.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mindstream import chance
from mindstream.clock import SystemClock
from mindstream.errors import StorageError
from mindstream.log import free_space
from mindstream.log.files import BUSY_S, MEND, explain_errors, is_busy, private_database, private_folder
from mindstream.log.reader_threads import Pending, Readers, Snapshot, of_one_moment, readable_text

T = TypeVar("T")
Migration = Callable[[sqlite3.Connection], None]

FILE = "mindstream.db"
APPLICATION_ID = 0x6D696E64  # "mind"
ATTEMPT_S = 0.5
"""How long another program's lock is waited for at once while opening."""
GATHER = 256
STEPS, STEPS_AT_ONCE = 5_000, 500
"""Steps of SQLite's virtual machine after which a read goes on in a thread (about a millisecond, or 200 rows of the
log), and between two looks at their number."""
YIELDS_AFTER = 32
"""Reads on the event loop's thread between two in which other tasks of the loop have their turn."""
SLOW_S, SPARED_S = 0.05, 1.0
"""Seconds after which a read on the event loop's thread shows that the file is slow, and for which all reads run in
threads then."""


class Database:
    """An open data folder.

    Raises (from every method):
        StorageError: the file is locked, corrupt, full or not writable; the message says which and what to do.
    """

    def __init__(self, folder: Path, migrations: Sequence[Migration]) -> None:
        self.path = folder / FILE
        private_folder(folder)
        private_database(self.path)
        with explain_errors(self.path):
            first = open_database(self.path, migrations)
        self._use = free_space.use(self.path)
        self._readers = Readers(self.path, first, lambda: connect(self.path))
        self._watch = connect(self.path, 0)
        self._watch.text_factory = str  # a text that is damaged is read by a reader (log/reader_threads)
        self._steps, self._reads_here, self._slow_until, self._clock = 0, 0, 0.0, SystemClock()
        self._watch.set_progress_handler(self._is_long, STEPS_AT_ONCE)
        self._watched = threading.Lock()
        self._waiting: queue.SimpleQueue[Pending[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name=f"writer of {self.path}", daemon=True)
        self._closed = False
        self._process = os.getpid()
        self._thread.start()

    def _require_open(self) -> None:
        if self._closed:
            raise StorageError(f"{self.path} is closed")
        if self._process != os.getpid():  # its threads are the parent's: what they are asked is never answered
            raise StorageError(
                f"{self.path} was opened before this process was forked: open the memory again in this process"
            )

    async def write(self, change: Callable[[sqlite3.Connection], T], about: Sequence[str] = ()) -> T:  # noqa: ARG002
        """Run `change` in a transaction and return its result once it is on disk."""
        self._require_open()
        pending = Pending(change)
        self._waiting.put(pending)
        return await pending.future

    async def read(self, look: Callable[[sqlite3.Connection], T], *, once: bool = False) -> T:
        """Run `look` on what is committed, all of it as of one moment, and return its result.

        It may be run twice: where it meets a text that is damaged.
        """
        self._require_open()
        self._reads_here += 1
        if self._reads_here % YIELDS_AFTER == 0:
            await asyncio.sleep(0)
        is_read, result = self._read_here(look, not once, STEPS)
        return result if is_read else await self._readers.read(look)  # type: ignore[return-value]

    def _is_long(self) -> bool:
        """Tell SQLite, each STEPS_AT_ONCE steps, whether to break off what is read on the event loop's thread."""
        self._steps -= STEPS_AT_ONCE
        return self._steps < 0

    def _read_here(self, look: Callable[[sqlite3.Connection], T], together: bool, steps: int) -> tuple[bool, T | None]:
        """Read on this thread; return whether that was possible within so many steps, and what was found."""
        begun = self._clock.elapsed()
        if begun < self._slow_until or self._process != os.getpid() or not self._watched.acquire(blocking=False):
            return False, None
        try:
            self._steps = steps
            return True, of_one_moment(self._watch, look) if together else look(self._watch)
        except (sqlite3.Error, sqlite3.Warning):  # it waits for no lock, reads no damaged text, and not for long
            return False, None
        finally:
            self._watched.release()
            if (ended := self._clock.elapsed()) - begun > SLOW_S:
                self._slow_until = ended + SPARED_S

    async def glance(self, look: Callable[[sqlite3.Connection], T], *, together: bool = False) -> T:
        """Read a few rows that an index finds, on the event loop: a hop to a thread and back takes ten times as long.

        Each statement of `look` reads what is committed then; `together`: all of them read as of one moment. `look`
        fetches all rows of a statement before it reads them.
        """
        self._require_open()
        is_read, result = self._read_here(look, together, sys.maxsize)
        return result if is_read else await self._readers.read(look)  # type: ignore[return-value]

    def moment(self) -> int | None:
        """Return a number that is another one after each commit of anybody; None where it cannot be told at once.

        It takes 4 us, a read in a thread some 100: who has read since the last commit need not read again.
        """
        try:
            return int(self._watch.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error:  # it waits for no lock; closed; or used by another thread at this moment
            return None

    @contextlib.asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Read on a connection of one's own, on which the file stands still until the block ends."""
        self._require_open()
        snapshot = Snapshot(self.path, lambda: connect(self.path))
        try:
            yield snapshot
        finally:
            await asyncio.shield(asyncio.to_thread(snapshot.close))

    async def compact(self) -> None:
        """Bring the write-ahead log home and, where a quarter of the file is free, give the room back."""
        await asyncio.to_thread(self._compact)

    def _compact(self) -> None:
        with explain_errors(self.path), contextlib.closing(connect(self.path)) as connection:
            free = connection.execute("PRAGMA freelist_count").fetchone()[0]
            if 4 * free > connection.execute("PRAGMA page_count").fetchone()[0]:
                connection.execute("VACUUM")
            connection.execute("PRAGMA optimize")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        release_heap()

    async def close(self) -> None:
        """Finish what is waiting and let the file go."""
        if self._closed or self._process != os.getpid():
            return
        self._closed = True
        self._waiting.put(None)
        await asyncio.to_thread(self._thread.join)
        await asyncio.to_thread(self._readers.close)
        self._watch.set_progress_handler(None, 0)  # which refers to this database
        self._watch.close()
        free_space.leave(self._use)

    def _write_all(self) -> None:
        connection: sqlite3.Connection | None = None
        last = False
        while not last:
            gathered: list[Pending[Any]] = []
            item = self._waiting.get()
            while True:
                if item is None:
                    last = True
                    break
                gathered.append(item)
                if len(gathered) == GATHER or self._waiting.empty():
                    break
                item = self._waiting.get()
            try:
                with explain_errors(self.path):
                    connection = connection or connect(self.path)
                    settled = _transact(connection, gathered, self.path)
            except StorageError as error:
                if connection is not None:
                    with contextlib.suppress(sqlite3.Error):
                        connection.rollback()
                settled = [(pending, None, error) for pending in gathered]
            for pending, result, failure in settled:
                pending.settle(result, failure)
        if connection is not None:
            connection.close()


def release_heap() -> None:
    """Give free pages of the heap back to the operating system, where the C library can (glibc).

    Reading and writing in threads leaves each of their arenas half empty: 20 MB after 10,000 turns of a life.
    """
    import ctypes

    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


SECURED = "secured"
"""The counter of a file of which every deletion since it was made, or written anew, has overwritten what it deleted."""


def overwrite_deleted(connection: sqlite3.Connection, path: Path) -> None:
    """Leave no byte of deleted rows in a file: neither in its unused space nor in the write-ahead log.

    A file that an earlier version has written is written anew, once. Others are overwritten where they are unused.

    Raises:
        StorageError: another program reads on, or writes all the time.
    """
    connection.execute("PRAGMA secure_delete = ON")
    if connection.execute("SELECT 1 FROM counters WHERE name = ?", (SECURED,)).fetchone() is None:
        connection.execute("VACUUM")
        connection.execute("INSERT OR IGNORE INTO counters (name, value) VALUES (?, 1)", (SECURED,))
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    clock = SystemClock()
    until = clock.elapsed() + BUSY_S
    while clock.elapsed() < until:
        _bring_home(connection, path)
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _is_empty(path.with_name(f"{path.name}-wal")):  # else somebody has written in between
                free_space.overwrite(path, page_size)
                # A commit, so that all connections let go of pages that they hold as they were before.
                connection.execute("INSERT OR REPLACE INTO counters (name, value) VALUES (?, 1)", (SECURED,))
                connection.execute("COMMIT")
                return
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    raise StorageError(
        f"others write to {path} all the time: what was deleted is gone, but old words stay in its bytes"
    )


def _bring_home(connection: sqlite3.Connection, path: Path) -> None:
    busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise StorageError(
            f"what was deleted is gone from {path}, but another program was reading it for over {BUSY_S:.0f} seconds:"
            f" old words stay in {path.name}-wal; close that program and do it again"
        )


def _is_empty(wal: Path) -> bool:
    return not wal.exists() or not wal.stat().st_size


Settled = tuple[Pending[Any], Any, BaseException | None]


def _transact(connection: sqlite3.Connection, gathered: list[Pending[Any]], path: Path) -> list[Settled]:
    """Run all writes in one transaction, each in a savepoint of its own where there are several."""
    if not gathered:
        return []
    settled: list[Settled] = []
    is_alone = len(gathered) == 1
    connection.execute("BEGIN IMMEDIATE")
    for pending in gathered:
        if not is_alone:
            connection.execute("SAVEPOINT one")
        try:
            with explain_errors(path):
                settled.append((pending, pending.work(connection), None))
        except Exception as error:  # whatever a write raises belongs to whoever asked for it
            if not connection.in_transaction:  # SQLite rolled everything back by itself (disk full, I/O error)
                raise StorageError(str(error)) from error
            settled.append((pending, None, error))
            if is_alone:
                connection.execute("ROLLBACK")
                return settled
            connection.execute("ROLLBACK TO one")
        if not is_alone:
            connection.execute("RELEASE one")
    connection.execute("COMMIT")
    return settled


def connect(path: Path, wait_s: float = BUSY_S) -> sqlite3.Connection:
    """Connect to a database that was opened before (see `opened`)."""
    connection = sqlite3.connect(path, timeout=wait_s, isolation_level=None, check_same_thread=False)
    connection.text_factory = readable_text
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA secure_delete = ON")
    return connection


def open_database(path: Path, migrations: Sequence[Migration]) -> sqlite3.Connection:
    """Open a database of ours, brought up to date, however many processes do that at this moment.

    SQLite does not wait for every lock (changing the journal, recovering a log of a process that was killed): whoever
    comes at the wrong moment begins anew, up to BUSY_S.
    """
    clock = SystemClock()
    until = clock.elapsed() + BUSY_S
    while True:
        connection = connect(path, ATTEMPT_S)
        try:
            _bring_up_to_date(connection, migrations, path)
            connection.execute(f"PRAGMA busy_timeout = {BUSY_S * 1000:.0f}")
            return connection
        except sqlite3.OperationalError as error:
            connection.close()
            if not is_busy(error) or clock.elapsed() > until:
                raise
            time.sleep(0.01 + 0.04 * chance.fraction(str(os.getpid()), clock.elapsed()))
        except BaseException:
            connection.close()
            raise


def _bring_up_to_date(connection: sqlite3.Connection, migrations: Sequence[Migration], path: Path) -> None:
    """Make or migrate the tables under one lock: `migrations` is append-only, the file counts how many it has seen."""
    connection.execute("BEGIN")  # what is read here belongs together
    seen = _seen(connection, len(migrations), path)
    connection.execute("COMMIT")
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        connection.execute("PRAGMA journal_mode = WAL")
    if seen == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for migration in migrations[_seen(connection, len(migrations), path) :]:  # another may have been first
            migration(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _seen(connection: sqlite3.Connection, known: int, path: Path) -> int:
    """Return how many migrations a file has seen.

    Raises:
        StorageError: it is not ours, or newer than we are.
    """
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    seen = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if application != APPLICATION_ID and tables:
        raise StorageError(f"{path} is a database of another program; choose another data folder")
    if seen > known:
        raise StorageError(
            f"{path} was written by a newer mindstream; upgrade mindstream, or choose another data folder"
        )
    if (seen < 1) != (not tables):
        raise StorageError(f"{path} says that it has seen {seen} changes of its tables; {MEND}")
    return seen
