"""The thread that writes a tenant's rows: what waits goes into one transaction, of which is known whether it was kept.

A transaction that fails because somebody else was first, or because the server went away, is run again. Where the
connection breaks while it commits, a row of this writer's own, written with it, tells whether it was kept.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

from mindstream import chance
from mindstream.clock import SharedClock
from mindstream.errors import StorageError
from mindstream.log.reader_threads import Pending
from mindstream.memory.store.postgres.faults import may_go_again

if TYPE_CHECKING:
    from mindstream.memory.store.postgres.lending import Connection

T = TypeVar("T")
GATHER = 256
GONE_S, REST_S = 30.0, 0.1
"""So long a server that has gone away is waited for, and so long between two looks."""
CHANNEL = "mindstream"
BEGIN = (
    b"BEGIN; SELECT extract(epoch FROM statement_timestamp())::float8;"
    b" SELECT value FROM counters WHERE name = 'changed' FOR UPDATE"
)
"""A tenant's writers come one after the other: whoever reads "after" a number misses nothing that was numbered less."""
FIRST = b"INSERT INTO counters (name, value) VALUES ('changed', 0) ON CONFLICT DO NOTHING"
OF_THE_DEAD = "at < now() - interval '1 day'"
"""Rows of writers that were killed; who lives writes its own with each commit."""
Settled = tuple["Write[Any]", Any, BaseException | None]


class Write(Pending[T]):
    """A change that waits to be written, and whom it concerns: those are told with the commit (see listening)."""

    work: Callable[[Any], T]

    def __init__(self, work: Callable[[Any], T], told: Sequence[str]) -> None:
        super().__init__(work)
        self.told = told


class Writer:
    """Writes what is put to it.

    Args:
        lend: lends a connection of the tenant's, in autocommit.
        forget: lets go of connections that nobody has: the server went away.
        explain: makes of the driver's error one of ours, for whoever waits.
        clock: learns what the server's says.
    """

    def __init__(
        self,
        name: str,
        lend: Callable[[], AbstractContextManager[Connection]],
        forget: Callable[[], None],
        explain: Callable[[psycopg.Error], StorageError],
        clock: SharedClock,
    ) -> None:
        self._lend, self._forget, self._explain, self._clock = lend, forget, explain, clock
        self._lent = contextlib.ExitStack()
        self._id, self._batch = chance.token(), 0
        self._connection: Connection | None = None
        self._waiting: queue.SimpleQueue[Write[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name=name, daemon=True)
        self._started = False
        self._lock = threading.Lock()

    def put(self, write: Write[Any]) -> None:
        """Write it with whatever waits beside it."""
        with self._lock:
            if not self._started:
                self._started = True
                self._thread.start()
        self._waiting.put(write)

    def close(self) -> None:
        """Write what waits, and let go."""
        if self._started:
            self._waiting.put(None)
            self._thread.join()

    def _write_all(self) -> None:
        while gathered := self._gather():
            for write, result, failure in self._written(gathered):
                write.settle(result, failure)
            gathered.clear()
        with contextlib.suppress(psycopg.Error, StorageError):
            if self._batch:
                self._take().execute(f"DELETE FROM writers WHERE id = '{self._id}' OR {OF_THE_DEAD}".encode())
        self._let_go()

    def _gather(self) -> list[Write[Any]]:
        """Return what waits; nothing at the end."""
        first = self._waiting.get()
        gathered = list[Write[Any]]()
        while first is not None:
            gathered.append(first)
            if len(gathered) == GATHER or self._waiting.empty():
                return gathered
            first = self._waiting.get()
        if gathered:  # the end comes after what was put before it
            self._waiting.put(None)
        return gathered

    def _written(self, gathered: list[Write[Any]]) -> list[Settled]:
        """Write all of it; what fails because of the server is tried again, as long as that may help."""
        begun = self._clock.elapsed()
        alone = False
        while True:
            try:
                settled = self._transact(gathered, each_alone=alone)
                self._let_go()
                return settled
            except psycopg.Error as error:
                failure: Exception = error
                again = may_go_again(error) and self._clock.elapsed() - begun < GONE_S
                self._roll_back()
            except _Alone:
                self._roll_back()
                again = alone = True
                continue
            except Exception as error:  # noqa: BLE001 (whatever it is, whoever waits is told)
                failure, again = error, False
                self._let_go()
            if not again:
                self._let_go()
                told = self._explain(failure) if isinstance(failure, psycopg.Error) else failure
                return [(write, None, told) for write in gathered]
            if self._connection is None:
                threading.Event().wait(REST_S)

    def _transact(self, gathered: list[Write[Any]], *, each_alone: bool) -> list[Settled]:
        """Run all writes in one transaction.

        `each_alone`: each in a savepoint of its own, for one of them fails by itself.
        """
        from mindstream.memory.store.postgres.connection import Rows

        connection = self._take()
        self._begin(connection)
        rows, settled = Rows(connection), list[Settled]()
        for write in gathered:
            if each_alone:
                connection.execute(b"SAVEPOINT one")
            try:
                settled.append((write, write.work(rows), None))
            except Exception as error:
                if isinstance(error, psycopg.Error) and may_go_again(error):
                    raise
                if not each_alone and len(gathered) > 1:
                    raise _Alone from None
                if connection.closed:
                    raise
                connection.execute(b"ROLLBACK TO one" if each_alone else b"ROLLBACK")
                told = self._explain(error) if isinstance(error, psycopg.Error) else error
                settled.append((write, None, told))
                if not each_alone:
                    return settled
        self._commit(connection, sorted({name for write in gathered for name in write.told}))
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

    def _commit(self, connection: Connection, told: Sequence[str]) -> None:
        """End the transaction; where it is not known whether it was kept, find out.

        Raises:
            psycopg.Error: it was not kept.
        """
        self._batch += 1
        notes = "".join(f"NOTIFY {CHANNEL}, '{name}';" for name in told)
        kept = (
            f"INSERT INTO writers (id, batch) VALUES ('{self._id}', {self._batch})"
            f" ON CONFLICT (id) DO UPDATE SET batch = {self._batch}, at = now()"
        )
        try:
            connection.execute(f"{notes}{kept}; COMMIT".encode())
        except psycopg.Error as error:
            if not connection.closed or not self._was_kept():
                raise error

    def _was_kept(self) -> bool:
        """Tell, on a new connection, whether the last transaction was kept; one that is still ending is waited for.

        To look for a row would not wait for the first one, which nobody sees yet: so a row is written, or found there.
        """
        begun = self._clock.elapsed()
        sql = (
            f"INSERT INTO writers (id, batch) VALUES ('{self._id}', 0)"
            " ON CONFLICT (id) DO UPDATE SET at = now() RETURNING batch"
        )
        while True:
            self._let_go()
            try:
                self._forget()
                row = self._take().execute(sql.encode()).fetchone()
            except psycopg.Error as error:
                if not may_go_again(error) or self._clock.elapsed() - begun > GONE_S:
                    raise
                threading.Event().wait(REST_S)
            else:
                return row is not None and row[0] == self._batch

    def _roll_back(self) -> None:
        try:
            if self._connection is not None:
                self._connection.rollback()
        except psycopg.Error:
            pass
        if self._connection is not None and self._connection.closed:
            self._let_go()
            self._forget()

    def _take(self) -> Connection:
        if self._connection is None:
            self._connection = self._lent.enter_context(self._lend())
        return self._connection

    def _let_go(self) -> None:
        self._connection = None
        self._lent.close()


class _Alone(Exception):  # noqa: N818
    """One write of several has failed by itself: it must not take the others with it."""
