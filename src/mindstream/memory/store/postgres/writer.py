"""The thread that commits a tenant's writes in groups, and the listener by which all processes notice commits.

A transaction that fails because of a conflict, or because the server is unreachable, is run again. Each transaction
also writes a row about its writer: if the connection breaks during the commit, this row shows whether it was committed.
A commit sends notifications with digests of the affected streams instead of their names. If the listening connection
breaks, all subscribers are called: when it breaks, after each failed attempt to restore it, and when it is restored.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import psycopg

from mindstream import chance
from mindstream.clock import SharedClock
from mindstream.errors import StorageError
from mindstream.log.database import GroupWriter, Pending, Settled
from mindstream.memory.store.postgres.pool import Connection, Rows, explained, is_transient

GONE_S, REST_S = 30.0, 0.1
"""In seconds. GONE_S: maximum time for retries while the server is unreachable. REST_S: pause between two attempts."""
LOOK_S, BROKEN_REST_S = 1.0, 0.5
"""In seconds. LOOK_S: interval at which the listening thread checks whether there are still subscribers. BROKEN_REST_S:
pause after the listening connection broke."""
CHANNEL = "mindstream"
BEGIN = (
    b"BEGIN; SELECT extract(epoch FROM statement_timestamp())::float8;"
    b" SELECT value FROM counters WHERE name = 'changed' FOR UPDATE"
)
"""Starts a transaction and locks the tenant's counter.

Because of the lock, commits become visible in the order of their numbers. A reader that asks for the changes after a
number misses none.
"""
FIRST = b"INSERT INTO counters (name, value) VALUES ('changed', 0) ON CONFLICT DO NOTHING"
OF_THE_DEAD = "at < now() - interval '1 day'"
"""SQL condition for rows of writers that have probably died; a living writer updates its row with each commit."""
Notified = Callable[[], None]


class CommitWriter(GroupWriter):
    """Commits writes in transactions, and finds out whether each transaction was committed.

    Args:
        place: the name of the database in error messages.
        lend: lends a connection of the tenant, in autocommit mode.
        forget: closes idle connections after the server became unreachable.
        clock: is corrected by the server's time.
    """

    def __init__(
        self,
        place: str,
        lend: Callable[[], AbstractContextManager[Connection]],
        forget: Callable[[], None],
        clock: SharedClock,
    ) -> None:
        super().__init__(f"writer of {place}", self._write_all, self._end_writing)
        self._place, self._lend, self._forget, self._clock = place, lend, forget, clock
        self._lent = ExitStack()
        self._id, self._batch = chance.token(), 0
        self._connection: Connection | None = None

    def _end_writing(self) -> None:
        with contextlib.suppress(psycopg.Error, StorageError):
            if self._batch:
                self._connected().execute(f"DELETE FROM writers WHERE id = '{self._id}' OR {OF_THE_DEAD}".encode())
        self._release()

    def _write_all(self, gathered: list[Pending[Any]]) -> Settled:
        """Run all writes; if the server is the cause of a failure, retry for up to GONE_S seconds."""
        begun, alone = self._clock.elapsed(), False
        while True:
            try:
                settled = self._run_together(gathered, each_alone=alone)
                self._release()
                return settled
            except _Alone:
                self._roll_back()
                alone = True
            except psycopg.Error as error:
                self._roll_back()
                if not is_transient(error) or self._clock.elapsed() - begun >= GONE_S:
                    return self._all_failed(gathered, explained(error, self._place))
                if self._connection is None:
                    threading.Event().wait(REST_S)
            except Exception as error:  # noqa: BLE001 (it is raised to the callers of the writes)
                return self._all_failed(gathered, error)

    def _all_failed(self, gathered: list[Pending[Any]], error: Exception) -> Settled:
        self._release()
        return [(write, None, error) for write in gathered]

    def _run_together(self, gathered: list[Pending[Any]], *, each_alone: bool) -> Settled:
        """Run all writes in one transaction.

        Args:
            each_alone: run each write in a savepoint, so that it fails alone.

        Raises:
            _Alone: one of several writes failed, and they did not run in savepoints.
        """
        connection = self._connected()
        self._begin(connection)
        rows, settled = Rows(connection), Settled()
        for write in gathered:
            if each_alone:
                connection.execute(b"SAVEPOINT one")
            try:
                settled.append((write, write.work(rows), None))
            except Exception as error:
                if isinstance(error, psycopg.Error) and is_transient(error):
                    raise
                if not each_alone and len(gathered) > 1:
                    raise _Alone from None
                if connection.closed:
                    raise
                connection.execute(b"ROLLBACK TO one" if each_alone else b"ROLLBACK")
                failure = explained(error, self._place) if isinstance(error, psycopg.Error) else error
                settled.append((write, None, failure))
                if not each_alone:
                    return settled
        self._commit(connection, {name for write in gathered for name in write.about})
        return settled

    def _begin(self, connection: Connection) -> None:
        asked = self._clock.own.now()
        began = connection.execute(BEGIN)
        came = self._clock.own.now()
        began.nextset()
        self._clock.learn(float((began.fetchone() or (asked,))[0]), asked, came)
        began.nextset()
        if began.fetchone() is None:
            connection.execute(FIRST)

    def _commit(self, connection: Connection, notified: Iterable[str]) -> None:
        """Commit. If the connection breaks during it, find out whether the transaction was committed.

        Raises:
            psycopg.Error: the transaction was not committed.
        """
        self._batch += 1
        notes = "".join(f"NOTIFY {CHANNEL}, '{name}';" for name in sorted(notified))
        own_row = (
            f"INSERT INTO writers (id, batch) VALUES ('{self._id}', {self._batch})"
            f" ON CONFLICT (id) DO UPDATE SET batch = {self._batch}, at = now()"
        )
        try:
            connection.execute(f"{notes}{own_row}; COMMIT".encode())
        except psycopg.Error as error:
            if not connection.closed or not self._was_committed():
                raise error

    def _was_committed(self) -> bool:
        """Return, by a new connection, whether the last transaction was committed.

        A plain SELECT would not wait for a transaction that is still in progress. An insert of the writer's row waits
        until the transaction ends, and then finds the row of the transaction if it was committed.
        """
        begun = self._clock.elapsed()
        sql = (
            f"INSERT INTO writers (id, batch) VALUES ('{self._id}', 0)"
            " ON CONFLICT (id) DO UPDATE SET at = now() RETURNING batch"
        )
        while True:
            self._release()
            try:
                self._forget()
                return self._connected().execute(sql.encode()).fetchone() == (self._batch,)
            except psycopg.Error as error:
                if not is_transient(error) or self._clock.elapsed() - begun > GONE_S:
                    raise
                threading.Event().wait(REST_S)

    def _roll_back(self) -> None:
        with contextlib.suppress(psycopg.Error):
            if self._connection is not None:
                self._connection.rollback()
        if self._connection is not None and self._connection.closed:
            self._release()
            self._forget()

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._lent.enter_context(self._lend())
        return self._connection

    def _release(self) -> None:
        self._connection = None
        self._lent.close()


class _Alone(Exception):  # noqa: N818
    """One of several writes has failed. All are run again, each in a savepoint, so that only the failed one fails."""


def digest_of(tenant: str, stream: str = "") -> str:
    """Return the digest that notifications contain for a tenant's rows, or for the rows of one of its streams."""
    return hashlib.blake2b(f"{tenant}\0{stream}".encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


class Listening:
    """Listens to one database for the whole process, in a thread that runs while there are subscribers."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._subscribers: dict[str, set[Notified]] = {}
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def subscribed(self, digest: str, notified: Notified) -> Iterator[None]:
        """Within the block, call `notified`, from another thread, on each notification with a digest.

        `notified` is also called when the connection to the database begins or fails, because notifications may have
        been missed.

        Args:
            digest: the digest of a tenant or stream (see `digest_of`).
        """
        with self._lock:
            self._subscribers.setdefault(digest, set()).add(notified)
            if self._thread is None:
                self._thread = threading.Thread(target=self._listen, name="listener of a database", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._subscribers[digest].discard(notified)
                if not self._subscribers[digest]:
                    del self._subscribers[digest]

    def _listen(self) -> None:
        while not self._is_over():
            try:
                with psycopg.connect(self._url, autocommit=True, connect_timeout=10) as connection:
                    connection.execute(f"LISTEN {CHANNEL}".encode())
                    self._notify()  # there may have been commits before this connection
                    while not self._is_over():
                        for note in connection.notifies(timeout=LOOK_S):
                            self._notify(note.payload)
            except psycopg.Error:
                self._notify()
                threading.Event().wait(BROKEN_REST_S)

    def _is_over(self) -> bool:
        """Return whether this thread must end: another thread has replaced it, or there are no subscribers.

        After a thread has ended for lack of subscribers, the next subscriber starts a new one.
        """
        with self._lock:
            is_ours = self._thread is threading.current_thread()
            if is_ours and not self._subscribers:
                self._thread = None
            return not (is_ours and self._subscribers)

    def _notify(self, digest: str | None = None) -> None:
        """Call subscribers.

        Args:
            digest: the digest of a tenant or a stream (`digest_of`) whose subscribers are called; None: all subscribers
                are called.
        """
        with self._lock:
            found = [*self._subscribers] if digest is None else [digest]
            called = [each for one in found for each in self._subscribers.get(one, ())]
        for each in called:
            each()


_open: dict[str, Listening] = {}
_opening = threading.Lock()


def listening_to(url: str) -> Listening:
    """Return this process's listener for a database."""
    with _opening:
        return _open.setdefault(url, Listening(url))
