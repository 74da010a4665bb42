"""Threads that read and write a database for the event loop: readers, a writer that groups commits, and snapshots."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from mindstream.log.files import explain_errors

T = TypeVar("T")
MOST = 3
"""Maximum number of concurrent reads of a file; each thread has its own connection, which costs memory."""
GATHER = 256
"""Maximum number of writes in one transaction."""


class Readers:
    """Threads that read a SQLite file. A switch to a thread and back takes some 50 us: put related queries into one
    read.

    Args:
        first: a connection that is already open.
    """

    def __init__(self, path: Path, first: sqlite3.Connection, connect: Callable[[], sqlite3.Connection]) -> None:
        self._path, self._connect, self._idle = path, connect, [first]
        self._threads = ThreadPoolExecutor(MOST, f"reader of {path}")
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
        return await pending.future

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
