"""One SQLite file, many processes: group commit, migrations, errors that say what to do.

One thread writes (log/threads): it collects waiting writes and commits them in one transaction. A write is a function
of the connection. Each write runs in a savepoint, so it succeeds or fails alone, and it is on disk when the await
returns. A read is also a function of a connection. It starts on the event loop's thread, because a switch to another
thread and back takes ten times as long as a short read. A read that needs more than STEPS steps of SQLite's virtual
machine is interrupted there and runs in a thread instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mindstream import chance
from mindstream.clock import SystemClock
from mindstream.errors import StorageError
from mindstream.log import free_space
from mindstream.log.files import BUSY_S, MEND, explain_errors, is_busy, private_database, private_folder
from mindstream.log.threads import GroupWriter, Pending, Readers, Settled, Snapshot, of_one_moment, readable_text

T = TypeVar("T")
Migration = Callable[[sqlite3.Connection], None]

FILE = "mindstream.db"
APPLICATION_ID = 0x6D696E64  # "mind"
ATTEMPT_S = 0.5
"""Maximum wait, in seconds, for another program's lock in one attempt to open the file."""
STEPS, STEPS_AT_ONCE = 5_000, 500
"""STEPS: steps of SQLite's virtual machine after which a read moves to a thread (about a millisecond, or 200 rows of
the log). STEPS_AT_ONCE: steps between two checks of that limit."""
YIELDS_AFTER = 32
"""Number of reads on the event loop's thread after which other tasks of the loop can run."""
SLOW_S, SPARED_S = 0.05, 1.0
"""SLOW_S: a read on the event loop's thread that takes longer than this, in seconds, shows that the file is slow.
SPARED_S: time, in seconds, for which all reads then run in threads."""


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
        self._watch.text_factory = str  # fails on damaged texts; the readers (log/threads) decode those
        self._steps, self._reads_here, self._slow_until, self._clock = 0, 0, 0.0, SystemClock()
        self._watch.set_progress_handler(self._is_long, STEPS_AT_ONCE)
        self._watched = threading.Lock()
        self._writing: sqlite3.Connection | None = None
        self._writer = GroupWriter(f"writer of {self.path}", self._transact, self._end_writing)
        self._turn_of: asyncio.AbstractEventLoop | None = None
        self._known: dict[str, int] = {}
        self._closed = False
        self._process = os.getpid()

    def _require_open(self) -> None:
        if self._closed:
            raise StorageError(f"{self.path} is closed")
        if self._process != os.getpid():  # the threads exist in the parent process only: a request would wait for ever
            raise StorageError(
                f"{self.path} was opened before this process was forked: open the memory again in this process"
            )

    async def write(self, change: Callable[[sqlite3.Connection], T], about: Sequence[str] = ()) -> T:  # noqa: ARG002
        """Run `change` in a transaction and return its result once it is on disk."""
        self._require_open()
        return await self._writer.write(change)

    async def read(self, look: Callable[[sqlite3.Connection], T], *, once: bool = False) -> T:
        """Run `look` on the committed data as of one moment and return its result.

        `look` may run up to three times: after an interruption or an error it runs again in a thread, and after a
        damaged text once more.

        Args:
            once: `look` executes a single statement, so no transaction is needed for a consistent view.
        """
        self._require_open()
        self._reads_here += 1
        if self._reads_here % YIELDS_AFTER == 0:
            await asyncio.sleep(0)
        is_read, result = self._read_here(look, not once, STEPS)
        return result if is_read else await self._readers.read(look)  # type: ignore[return-value]

    def _is_long(self) -> bool:
        """Count STEPS_AT_ONCE more steps of a read on the event loop's thread, after which SQLite calls this; return
        whether SQLite must interrupt the read."""
        self._steps -= STEPS_AT_ONCE
        return self._steps < 0

    def _read_here(self, look: Callable[[sqlite3.Connection], T], together: bool, steps: int) -> tuple[bool, T | None]:
        """Read on this thread in at most this number of steps; return whether that succeeded, and the result."""
        begun = self._clock.elapsed()
        if begun < self._slow_until or self._process != os.getpid() or not self._watched.acquire(blocking=False):
            return False, None
        try:
            self._steps = steps
            return True, of_one_moment(self._watch, look) if together else look(self._watch)
        except (sqlite3.Error, sqlite3.Warning):  # a lock, a damaged text, or too many steps
            return False, None
        finally:
            self._watched.release()
            if (ended := self._clock.elapsed()) - begun > SLOW_S:
                self._slow_until = ended + SPARED_S

    async def glance(self, look: Callable[[sqlite3.Connection], T], *, together: bool = False) -> T:
        """Read a few rows by an index on the event loop's thread: a switch to a thread and back takes ten times as
        long.

        `look` must fetch all rows of a statement before it uses them.

        Args:
            together: all statements of `look` see the data of one moment; otherwise each sees what is committed when it
                runs.
        """
        self._require_open()
        is_read, result = self._read_here(look, together, sys.maxsize)
        return result if is_read else await self._readers.read(look)  # type: ignore[return-value]

    def moment(self) -> int | None:
        """Return a number that changes with each commit of any process; None if it is not available immediately.

        While the number is unchanged, a caller can skip a read: this call takes 10 us, a read in a thread about 100 us.
        """
        known = self.of_this_turn()
        if "moment" not in known:
            try:
                known["moment"] = int(self._watch.execute("PRAGMA data_version").fetchone()[0])
            except sqlite3.Error:  # locked, closed, or in use by another thread
                return None
        return known["moment"]

    def of_this_turn(self) -> dict[str, int]:
        """Return what was read in this turn of the event loop, by name. It need not be read again: a task learns of
        a later commit only in a later turn, and then gets an empty dictionary."""
        loop = asyncio.get_running_loop()
        if self._turn_of is not loop:
            self._turn_of, self._known = loop, {}
            loop.call_soon(self._end_turn, loop)
        return self._known

    def _end_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._turn_of is loop:
            self._turn_of = None

    @contextlib.asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Open a connection that sees the data of one moment until the block ends, whatever other connections write."""
        self._require_open()

        def begin(held: ExitStack) -> sqlite3.Connection:
            connection = held.enter_context(contextlib.closing(connect(self.path)))
            connection.execute("BEGIN")
            return connection

        snapshot = Snapshot(begin, partial(explain_errors, self.path))
        try:
            yield snapshot
        finally:
            await asyncio.shield(asyncio.to_thread(snapshot.close))

    async def compact(self) -> None:
        """Checkpoint the write-ahead log and, if more than a quarter of the file is free, shrink the file."""
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
        """Finish waiting reads and writes and close the file."""
        if self._closed or self._process != os.getpid():
            return
        self._closed = True
        await asyncio.to_thread(self._writer.close)
        await asyncio.to_thread(self._readers.close)
        self._watch.set_progress_handler(None, 0)  # the handler would keep this database in memory
        self._watch.close()
        free_space.leave(self._use)

    def _transact(self, gathered: list[Pending[Any]]) -> Settled:
        try:
            with explain_errors(self.path):
                self._writing = self._writing or connect(self.path)
                return _transact(self._writing, gathered, self.path)
        except StorageError as error:
            if self._writing is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._writing.rollback()
            return [(pending, None, error) for pending in gathered]

    def _end_writing(self) -> None:
        if self._writing is not None:
            self._writing.close()


def release_heap() -> None:
    """Return free pages of the heap to the operating system, if the C library supports it (glibc).

    Each thread that reads or writes has a memory arena of its own, which stays half empty: 20 MB after 10,000 turns.
    """
    import ctypes

    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


SECURED = "secured"
"""Name of a counter. If a file has it, SQLite has overwritten the bytes of every row deleted since the file was created
or last rewritten by VACUUM."""


def overwrite_deleted(connection: sqlite3.Connection, path: Path) -> None:
    """Overwrite all bytes of deleted rows: in the unused space of the file, and in the write-ahead log.

    A file of an earlier version is rewritten by VACUUM, once. In other files only the unused bytes are overwritten.

    Raises:
        StorageError: another program keeps reading or writing.
    """
    connection.execute("PRAGMA secure_delete = ON")
    if connection.execute("SELECT 1 FROM counters WHERE name = ?", (SECURED,)).fetchone() is None:
        connection.execute("VACUUM")
        connection.execute("INSERT OR IGNORE INTO counters (name, value) VALUES (?, 1)", (SECURED,))
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    clock = SystemClock()
    until = clock.elapsed() + BUSY_S
    while clock.elapsed() < until:
        (moment,) = connection.execute("PRAGMA data_version").fetchone()
        salt, pages = free_space.changed_pages(path)
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StorageError(
                f"the rows are deleted from {path}, but another program was reading it for over {BUSY_S:.0f}"
                f" seconds: deleted words are still in {path.name}-wal; close that program and try again"
            )
        connection.execute("BEGIN IMMEDIATE")
        try:
            log = path.with_name(f"{path.name}-wal")
            if not log.exists() or not log.stat().st_size:  # otherwise a process wrote after the checkpoint: try again
                is_alone = connection.execute("PRAGMA data_version").fetchone() == (moment,)
                free_space.overwrite(path, page_size, salt, pages if is_alone else None)
                # A commit, so that all connections discard their cached pages.
                connection.execute("INSERT OR REPLACE INTO counters (name, value) VALUES (?, 1)", (SECURED,))
                connection.execute("COMMIT")
                return
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    raise StorageError(
        f"the rows are deleted from {path}, but deleted words are still in unused bytes of the file, because other"
        " programs keep writing to it; close them and try again"
    )


def _transact(connection: sqlite3.Connection, gathered: list[Pending[Any]], path: Path) -> Settled:
    """Run all writes in one transaction; if there are several, each gets a savepoint."""
    settled: Settled = []
    is_alone = len(gathered) == 1
    connection.execute("BEGIN IMMEDIATE")
    for pending in gathered:
        if not is_alone:
            connection.execute("SAVEPOINT one")
        try:
            with explain_errors(path):
                settled.append((pending, pending.work(connection), None))
        except Exception as error:  # raised to the caller of this write
            if not connection.in_transaction:  # SQLite has rolled back everything (disk full, I/O error)
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
    """Connect to a database, without a check of its tables (see `open_database`).

    In a folder that cannot be written, SQLite can open a file only as immutable, that is, on the assumption that no
    process changes it.
    """
    unchanging = not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1" if unchanging else path
    connection = sqlite3.connect(address, timeout=wait_s, isolation_level=None, check_same_thread=False, uri=unchanging)
    connection.text_factory = readable_text
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA secure_delete = ON")
    return connection


def open_database(path: Path, migrations: Sequence[Migration]) -> sqlite3.Connection:
    """Open a database and migrate its tables, even while other processes open or migrate it.

    SQLite waits for most locks, but not while the journal mode changes or the log of a killed process is recovered:
    such an attempt fails at once and is repeated for up to BUSY_S seconds.
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
    """Create or migrate the tables under one lock. `migrations` is append-only; the file stores how many were
    applied."""
    connection.execute("BEGIN")
    seen = _seen(connection, len(migrations), path)
    connection.execute("COMMIT")
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        connection.execute("PRAGMA journal_mode = WAL")
    if seen == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for migration in migrations[_seen(connection, len(migrations), path) :]:  # another process may have migrated
            migration(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _seen(connection: sqlite3.Connection, known: int, path: Path) -> int:
    """Return how many migrations were applied to a file.

    Raises:
        StorageError: the file belongs to another program or a newer mindstream, or its counter contradicts its tables.
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
        raise StorageError(
            f"{path} is damaged: it counts {seen} applied migrations and has {tables or 'no'} tables; {MEND}"
        )
    return seen
