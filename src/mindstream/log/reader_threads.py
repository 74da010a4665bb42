"""Threads that read a SQLite file, each on a connection of its own: no event loop waits for a file.

A hop to a thread and back takes some 50 us, so a method that makes several queries makes them in one. One thread reads
until a read is long: then another is started for those who wait. Each costs memory (SQLite's pages).
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from mindstream.log.files import explain_errors

T = TypeVar("T")
Connect = Callable[[], sqlite3.Connection]
MOST = 3
"""So many reads of a file go on at once."""
LONG_S = 0.02
"""Who has waited for so long waits behind a long read."""


class Readers:
    """The threads that read a file; one connection is open already."""

    def __init__(self, path: Path, first: sqlite3.Connection, connect: Connect) -> None:
        self._path, self._first, self._connect = path, first, connect
        self._lock = threading.Lock()
        self._idle: list[queue.SimpleQueue[Pending[Any] | None]] = []
        self._backlog: collections.deque[Pending[Any]] = collections.deque()
        self._watched_by: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._threads: list[tuple[threading.Thread, queue.SimpleQueue[Pending[Any] | None]]] = []

    async def read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """Run `look` on a reader's connection and return its result.

        Raises:
            StorageError: see `explain_errors`.
        """
        pending = Pending(look)
        with self._lock:
            if self._idle:
                self._idle.pop().put(pending)
            elif not self._threads:
                self._start(pending)
            else:
                self._backlog.append(pending)
                if self._watched_by is not pending.future.get_loop():
                    self._watch(pending)
        return await pending.future

    def _watch(self, first: Pending[Any]) -> None:
        if len(self._threads) < MOST:
            self._watched_by = first.future.get_loop()
            self._watched_by.call_later(LONG_S, self._help, first)

    def _help(self, first: Pending[Any]) -> None:
        """Start another reader if what was first in line then still waits."""
        with self._lock:
            self._watched_by = None
            if self._backlog and self._backlog[0] is first and not self._closed:
                self._start(self._backlog.popleft())
            if self._backlog:
                self._watch(self._backlog[0])

    def close(self) -> None:
        """Wait until all that was asked for is read, and let the connections go."""
        with self._lock:
            self._closed = True
        for _, asked in self._threads:
            asked.put(None)
        for thread, _ in self._threads:
            thread.join()
        self._first.close()

    def _start(self, pending: Pending[Any]) -> None:
        asked: queue.SimpleQueue[Pending[Any] | None] = queue.SimpleQueue()
        asked.put(pending)
        name = f"reader {len(self._threads) + 1} of {self._path}"
        thread = threading.Thread(target=self._serve, args=(asked, not self._threads), name=name, daemon=True)
        self._threads.append((thread, asked))
        thread.start()

    def _serve(self, asked: queue.SimpleQueue[Pending[Any] | None], is_first: bool) -> None:
        reader = _Reader(self._path, self._connect, self._first if is_first else None)
        pending = asked.get()
        while pending is not None:
            result, failure = (None, None) if pending.future.cancelled() else reader.run(pending.work)
            with self._lock:  # first: whoever gets the result may ask again at once
                following = self._backlog.popleft() if self._backlog else None
                if following is None:
                    self._idle.append(asked)
            pending.settle(result, failure)
            result = failure = pending = None  # while nothing is asked, nothing that was read is held
            pending = following or asked.get()
        reader.close()


class _Reader:
    """A connection of one thread, opened when it is first used."""

    def __init__(self, path: Path, connect: Connect, connection: sqlite3.Connection | None) -> None:
        self._path, self._connect, self._connection = path, connect, connection

    def run(self, look: Callable[[sqlite3.Connection], T]) -> tuple[T | None, BaseException | None]:
        """Return what it finds, or why it does not."""
        try:
            with explain_errors(self._path):
                if self._connection is None:
                    self._connection = self._connect()
                    self._connection.text_factory = str
                return self._look(self._connection, look), None
        except BaseException as failure:  # noqa: BLE001 (whatever it is belongs to whoever asked)
            return None, failure

    def _look(self, connection: sqlite3.Connection, look: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return of_one_moment(connection, look)
        except sqlite3.OperationalError as error:
            if "decode to UTF-8" not in str(error) or connection.text_factory is readable_text:
                raise
        connection.text_factory = readable_text  # from here on: slower by a millisecond a turn
        return of_one_moment(connection, look)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def of_one_moment(connection: sqlite3.Connection, look: Callable[[sqlite3.Connection], T]) -> T:
    """Return what `look` finds, all of it as of one moment."""
    connection.execute("BEGIN")
    try:
        return look(connection)
    finally:
        if connection.in_transaction:
            connection.rollback()


class Snapshot:
    """A connection of one's own on which the file stands still; what is asked of it runs in a thread."""

    def __init__(self, path: Path, connect: Connect) -> None:
        self._path, self._connect = path, connect
        self._lock = threading.Lock()  # whoever gave up waiting has left its work behind
        self._connection: sqlite3.Connection | None = None
        self._cursors: list[sqlite3.Cursor] = []

    def held(self, cursor: sqlite3.Cursor) -> sqlite3.Cursor:
        """Return a cursor that is closed with the snapshot, also where nobody waits for it any more."""
        self._cursors.append(cursor)
        return cursor

    async def read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        """Run `look`, after all that was asked before, and return its result."""
        return await asyncio.to_thread(self._look, look)

    def _look(self, look: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock, explain_errors(self._path):
            if self._connection is None:
                self._connection = self._connect()
                self._connection.execute("BEGIN")
            return look(self._connection)

    def close(self) -> None:
        """Wait for what is running and let the file go."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            for cursor in self._cursors:
                cursor.close()
            if self._connection is not None:
                self._connection.close()


def readable_text(content: bytes) -> str:
    """Read a text, with a mark where its bytes are none: one that is damaged must not hide all others."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("utf-8", "replace")


class Pending(Generic[T]):
    """Work on a connection, and the future of the task that waits for it. Made in the task's event loop."""

    def __init__(self, work: Callable[[sqlite3.Connection], T]) -> None:
        self.work = work
        self.future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def settle(self, result: T | None, failure: BaseException | None) -> None:
        """Hand over, from any thread, what came of it. Whoever gave up waiting hears nothing."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self.future.get_loop().call_soon_threadsafe(_hand_over, self.future, result, failure)


def _hand_over(future: asyncio.Future[Any], result: object, failure: BaseException | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)
