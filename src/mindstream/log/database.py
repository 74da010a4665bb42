"""One SQLite file, many processes: group commit, migrations, errors that say what to do.

One thread writes (`GroupWriter`): it collects waiting writes and commits them in one transaction. A write is a function
of the connection. Each write runs in a savepoint, so it succeeds or fails alone, and it is on disk when the await
returns. A read is also a function of a connection. It starts on the event loop's thread, because a switch to another
thread and back takes ten times as long as a short read. A read that needs more than STEPS steps of SQLite's virtual
machine is interrupted there and runs in a thread instead.
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
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from mindstream import chance
from mindstream.clock import SystemClock
from mindstream.errors import MindstreamError, ReadOnlyData, StorageError
from mindstream.log import free_space
from mindstream.log.files import private_database, private_folder

T = TypeVar("T")
Migration = Callable[[sqlite3.Connection], None]

FILE = "mindstream.db"
APPLICATION_ID = 0x6D696E64  # "mind"
ATTEMPT_S = 0.5
"""Maximum wait, in seconds, for another program's lock in one attempt to open the file."""
STEPS, STEPS_AT_ONCE = 5_000, 500
"""STEPS: steps of SQLite's virtual machine (about a millisecond, or 200 rows of the log) after which a read moves to a
thread. STEPS_AT_ONCE: steps between two checks of the limit STEPS."""
YIELDS_AFTER = 32
"""Number of reads on the event loop's thread after which other tasks of the loop can run."""
SLOW_S, SPARED_S = 0.05, 1.0
"""SLOW_S: duration, in seconds, above which a read on the event loop's thread shows that the file is slow. SPARED_S:
time, in seconds, for which all reads run in threads after such a read."""
READERS = 3
"""Maximum number of threads that read a file; each has its own connection, which costs memory."""
GATHER = 256
"""Maximum number of writes in one transaction."""
BUSY_S = 10.0
"""Maximum wait, in seconds, for another connection's lock."""
MEND = "`mindstream doctor --mend` saves the readable part"
WRITABLE = (
    "check the folder's permissions, copy the folder to a place where you can write, or choose another with --data"
)


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
        self._watch.text_factory = str  # fails on damaged texts; `Readers` decode those
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
            once: whether `look` executes a single statement, which needs no transaction for a consistent view.
        """
        self._require_open()
        self._reads_here += 1
        if self._reads_here % YIELDS_AFTER == 0:
            await asyncio.sleep(0)
        is_read, result = self._read_here(look, not once, STEPS)
        return result if is_read else await self._readers.read(look)  # type: ignore[return-value]

    def _is_long(self) -> bool:
        """Return whether SQLite must interrupt a read on the event loop's thread, because the read takes too many
        steps. SQLite calls this function after every STEPS_AT_ONCE steps."""
        self._steps -= STEPS_AT_ONCE
        return self._steps < 0

    def _read_here(self, look: Callable[[sqlite3.Connection], T], together: bool, steps: int) -> tuple[bool, T | None]:
        """Read on this thread, in at most `steps` steps of SQLite; return whether that succeeded, and the result."""
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
        """Read a few rows by an index, on the event loop's thread.

        A switch to another thread and back would take ten times as long. If the read is not possible immediately, it
        runs in a thread.

        Args:
            look: reads the rows; it must fetch all rows of a statement before it uses them.
            together: whether all statements of `look` see the data of one moment; False: each statement sees what is
                committed when the statement runs.
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
        """Return the values that were read in this turn of the event loop, by name.

        These values need not be read again in this turn: a task learns of a later commit only in a later turn, and
        then gets an empty dictionary.
        """
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
        """Complete all requested reads and writes, then close the file."""
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
"""Name of a counter. If a file has this counter, SQLite has overwritten the bytes of every row deleted since the file
was created or last rewritten by VACUUM."""


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


def open_database(path: Path, migrations: Sequence[Migration]) -> sqlite3.Connection:
    """Open a database and migrate its tables, even while other processes open or migrate it."""
    return connect(path, prepare=lambda connection: _bring_up_to_date(connection, migrations, path))


def connect(
    path: Path, wait_s: float = BUSY_S, prepare: Callable[[sqlite3.Connection], None] | None = None
) -> sqlite3.Connection:
    """Connect to a database, without a check of its tables (see `open_database`), and call `prepare`.

    SQLite waits for most locks. It fails at once, however, while another process changes the journal mode or recovers
    the log of a killed process. Even a pragma that only sets an option can fail, because it reads the schema. Attempts
    that fail in this way are repeated for up to BUSY_S seconds.

    In a folder that cannot be written, SQLite can open a file only as immutable, that is, on the assumption that no
    process changes it.

    Args:
        wait_s: maximum wait of later statements for another connection's lock, in seconds.
    """
    unchanging = not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1" if unchanging else path
    clock = SystemClock()
    until = clock.elapsed() + BUSY_S
    while True:
        connection = sqlite3.connect(
            address, timeout=ATTEMPT_S, isolation_level=None, check_same_thread=False, uri=unchanging
        )
        connection.text_factory = readable_text
        try:
            for option in ("synchronous = FULL", "temp_store = MEMORY", "secure_delete = ON"):
                connection.execute(f"PRAGMA {option}")
            if prepare is not None:
                prepare(connection)
            connection.execute(f"PRAGMA busy_timeout = {wait_s * 1000:.0f}")
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
    """Apply the migrations that the database does not have yet, in one transaction. `migrations` is append-only; the
    file stores how many were applied."""
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


class Readers:
    """Threads that read a SQLite file. A switch to a thread and back takes some 50 us: put related queries into one
    read.

    Args:
        first: a connection that is already open.
    """

    def __init__(self, path: Path, first: sqlite3.Connection, connect: Callable[[], sqlite3.Connection]) -> None:
        self._path, self._connect, self._idle = path, connect, [first]
        self._threads = ThreadPoolExecutor(READERS, f"reader of {path}")
        first.text_factory = str

    async def read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """Run `look` on a reader's connection and return its result.

        Raises:
            StorageError: SQLite cannot read the file; the message says what to do.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, look)

    def _read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        with explain_errors(self._path):
            if self._idle:
                connection = self._idle.pop()
            else:
                connection = self._connect()
                connection.text_factory = str
            try:
                return of_one_moment(connection, look)
            except sqlite3.OperationalError as error:
                if "decode to UTF-8" not in str(error) or connection.text_factory is readable_text:
                    raise
                connection.text_factory = readable_text  # accepts damaged texts, but is slower
                return of_one_moment(connection, look)
            finally:
                self._idle.append(connection)

    def close(self) -> None:
        """Wait for all requested reads, then close the connections."""
        self._threads.shutdown()
        for connection in self._idle:
            connection.close()


def of_one_moment(connection: sqlite3.Connection, look: Callable[[sqlite3.Connection], T]) -> T:
    """Run `look` in one read transaction and return its result."""
    connection.execute("BEGIN")
    try:
        return look(connection)
    finally:
        if connection.in_transaction:
            connection.rollback()


def readable_text(content: bytes) -> str:
    """Decode a text, with replacement characters for invalid bytes, so that a query does not fail because of one
    damaged text."""
    return content.decode("utf-8", "replace")


class Snapshot:
    """A separate connection that sees the data of one moment. Its queries run in a thread, one at a time.

    Args:
        begin: opens the connection and its transaction; it puts resources that must be closed with the snapshot on the
            given stack.
        explain: turns the driver's errors into StorageError.
    """

    def __init__(self, begin: Callable[[ExitStack], Any], explain: Callable[[], AbstractContextManager[None]]) -> None:
        self._begin, self._explain = begin, explain
        self.held = ExitStack()
        self._lock = threading.Lock()  # the query of a cancelled caller continues to run in its thread
        self._connection: Any = None

    async def read(self, look: Callable[[Any], T]) -> T:
        """Run `look` on the connection, after all earlier queries, and return its result."""
        return await asyncio.to_thread(self._look, look)

    def _look(self, look: Callable[[Any], T]) -> T:
        with self._lock, self._explain():
            if self._connection is None:
                self._connection = self._begin(self.held)
            return look(self._connection)

    def close(self) -> None:
        """Wait for the running query, then close the connection."""
        with self._lock:
            self.held.close()


class Pending(Generic[T]):
    """A write, and the future of the task that waits for it. Create it in the event loop of that task."""

    def __init__(self, work: Callable[[Any], T], about: Sequence[str] = ()) -> None:
        self.work, self.about = work, about
        self.future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def settle(self, result: T | None, failure: BaseException | None) -> None:
        """Set the future's result or exception, from any thread; if the task was cancelled, do nothing."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self.future.get_loop().call_soon_threadsafe(self._set, result, failure)

    def _set(self, result: Any, failure: BaseException | None) -> None:
        if self.future.done():
            return
        if failure is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(failure)


Settled: TypeAlias = list[tuple[Pending[Any], Any, BaseException | None]]
"""Writes, each with its result or its failure."""


class GroupWriter:
    """A thread that runs all waiting writes (at most GATHER at once) in one transaction: ten concurrent writers need
    only one fsync.

    Args:
        transact: runs and commits the collected writes, and returns their results.
        end: closes the connection; called when the thread ends.
    """

    def __init__(self, name: str, transact: Callable[[list[Pending[Any]]], Settled], end: Callable[[], None]) -> None:
        self._transact, self._end = transact, end
        self._waiting: queue.SimpleQueue[Pending[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._lock = threading.Lock()

    async def write(self, work: Callable[[Any], T], about: Sequence[str] = ()) -> T:
        """Run a write in the next transaction and return its result once it is durable."""
        pending = Pending(work, about)
        with self._lock:
            if self._thread.ident is None:
                self._thread.start()
        self._waiting.put(pending)
        try:
            return await pending.future
        finally:
            del pending  # the traceback of a failure refers to this frame, and the frame to the failure

    def close(self) -> None:
        """Finish all waiting writes and end the thread."""
        if self._thread.ident is not None:
            self._waiting.put(None)
            self._thread.join()

    def _run(self) -> None:
        last = False
        while not last:
            gathered, item = list[Pending[Any]](), self._waiting.get()
            while item is not None:
                gathered.append(item)
                if len(gathered) == GATHER or self._waiting.empty():
                    break
                item = self._waiting.get()
            last = item is None
            for pending, result, failure in self._transact(gathered) if gathered else ():
                pending.settle(result, failure)
        self._end()


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether SQLite failed because another connection holds a lock."""
    return (getattr(error, "sqlite_errorname", "") or "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


@contextlib.contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into StorageError, with a message that says what to do if that is known."""
    try:
        yield
    except MindstreamError:
        raise
    except OverflowError as error:  # a counter has reached the highest number of SQLite
        raise StorageError(f"{path}: a number in the file is too large for SQLite; {MEND}") from error
    except UnicodeDecodeError as error:  # SQLite's message about the damage is itself damaged
        raise StorageError(f"{path}: the file is damaged; {MEND}, or restore a backup") from error
    except sqlite3.Error as error:
        code = (error.sqlite_errorname if hasattr(error, "sqlite_errorname") else "") or ""
        text = "".join(each if each.isprintable() else "?" for each in str(error))  # the message may quote damaged data
        if is_busy(error):
            advice = f"another program has locked it for over {BUSY_S:.0f} seconds; close that program and try again"
        elif code.startswith("SQLITE_NOTADB"):
            advice = "the file is damaged or is not an SQLite database; move it away, or restore a backup"
        elif code.startswith("SQLITE_CORRUPT"):
            advice = f"the file is damaged; {MEND}, or restore a backup"
        elif code.startswith("SQLITE_FULL") or (code.startswith("SQLITE_IOERR") and "full" in text):
            advice = (
                "the disk is full: free some space and try again; if there is space, a counter in the file is used up:"
                " run `mindstream doctor --mend`"
            )
        elif code.startswith("SQLITE_READONLY"):
            raise ReadOnlyData(f"{path}: the folder can be read, but not changed; {WRITABLE} ({text})") from error
        elif code.startswith(("SQLITE_CANTOPEN", "SQLITE_PERM")):
            advice = f"SQLite cannot open the file, or cannot open or create its -wal or -shm; {WRITABLE}"
        elif code.startswith("SQLITE_ERROR") and text.startswith(("no such ", "table ", "duplicate column")):
            advice = f"a table or column is missing or exists twice; {MEND}"
        else:
            raise StorageError(f"{path}: {text}") from error
        raise StorageError(f"{path}: {advice} ({text})") from error
