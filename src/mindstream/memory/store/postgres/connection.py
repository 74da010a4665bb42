"""A PostgreSQL database as the store of a tenant uses it: reads, writes, notifications, snapshots."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import psycopg

from mindstream.clock import SharedClock, SystemClock
from mindstream.errors import StorageError
from mindstream.identifiers import EVERYONE
from mindstream.location import Location
from mindstream.log.database import Snapshot
from mindstream.log.erasures import ERASURES
from mindstream.memory.store.postgres.pool import (
    NO_TENANT,
    REST_S,
    WAIT_S,
    Connection,
    ConnectionPool,
    Migration,
    Rows,
    ServerGone,
    explain_errors,
    open_database_of,
    set_tenant,
)
from mindstream.memory.store.postgres.writer import CommitWriter, digest_of, listening_to
from mindstream.memory.store.sql_store import OPEN

T = TypeVar("T")
STALE_S = 60
"""Time, in seconds, after which the server ends an idle write transaction (its process has probably died)."""
OF_ONE_MOMENT = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
AT_ONCE = b""
SEEN_S, LOOK_S = 60.0, 0.1
"""In seconds. SEEN_S: maximum wait for the end of older transactions before `VACUUM FULL`. LOOK_S: poll interval of
this wait."""
OLDER = """
SELECT 'process ' || pid FROM pg_stat_activity WHERE (datname = current_database() OR datname IS NULL)
AND greatest(age(backend_xid), age(backend_xmin)) > age({xid}::xid) AND pid <> pg_backend_pid()
AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
UNION ALL SELECT 'prepared transaction ' || gid FROM pg_prepared_xacts
WHERE database = current_database() AND age(transaction) > age({xid}::xid)
UNION ALL SELECT 'replication slot ' || slot_name FROM pg_replication_slots WHERE age(xmin) > age({xid}::xid)
"""
"""Finds what may still see rows that were deleted before the transaction with the number `xid`.

These are processes, prepared transactions and replication slots. A plain VACUUM does not count: its snapshot keeps no
deleted row.
"""
_clocks: dict[str, SharedClock] = {}


def clock_of(url: str) -> SharedClock:
    """Return the clock that all stores of a database in this process share, an estimate of the server's time."""
    return _clocks.setdefault(str(Location.of(url)), SharedClock())


@dataclass
class _Shared:
    """The connections of a process to one database, for reading and for writing; `users`: number of open stores."""

    reading: ConnectionPool
    writing: ConnectionPool
    migrated: int = 0
    users: int = 0


_shared: dict[str, _Shared] = {}
_sharing = threading.Lock()


def _join(url: str, migrations: Sequence[Migration], clock: SharedClock) -> _Shared:
    """Return the connections to a database that all stores of this process share.

    For the first store, check the database and migrate its tables. Do the same for a store whose number of migrations
    differs from the number of the store before it.

    Raises:
        StorageError: the database is unsuitable or cannot be reached.
    """
    with _sharing:
        found = _shared.get(url)
        if found is None or found.migrated != len(migrations):
            open_database_of(url, NO_TENANT, migrations, clock).close()
        if found is None:
            place = str(Location.of(url))
            reading, writing = (ConnectionPool(place, partial(_connect, url, stale_s)) for stale_s in (0, STALE_S))
            found = _shared[url] = _Shared(reading, writing)
        found.migrated = len(migrations)
        found.users += 1
        return found


def _leave(url: str) -> None:
    """Stop using the shared connections; when the last user leaves, they are closed."""
    with _sharing:
        found = _shared[url]
        found.users -= 1
        if not found.users:
            del _shared[url]
            found.reading.close()
            found.writing.close()


def _connect(url: str, stale_s: int) -> Connection:
    connection = psycopg.connect(url, connect_timeout=10, client_encoding="UTF8", autocommit=True)
    set_tenant(connection, NO_TENANT)
    if stale_s:
        connection.execute(f"SET idle_in_transaction_session_timeout = '{stale_s}s'".encode())
    return connection


class PostgresDatabase:
    """An open database, as a tenant sees it.

    Raises (from every method):
        StorageError: the server cannot be reached, rejects the request, or has no space; the message says which.
    """

    def __init__(self, url: str, tenant: str, migrations: Sequence[Migration]) -> None:
        self.shown = str(Location.of(url))
        with explain_errors(self.shown):
            self.clock = clock_of(url)
            self._lent = _join(url, migrations, self.clock)
        self._url, self._tenant = url, tenant
        writing = self._lent.writing
        self._writer = CommitWriter(self.shown, lambda: writing.lend(tenant), writing.forget, self.clock)
        self._closed = False

    def _require_open(self) -> None:
        if self._closed:
            raise StorageError(f"{self.shown} is closed")

    async def write(self, change: Callable[[Rows], T], about: Sequence[str] = ()) -> T:
        """Run `change` in a transaction and return its result once it is durable; `change` may run more than once.

        Args:
            about: the affected streams; their subscribers are notified.
        """
        self._require_open()
        notified = [self._digest(each) for each in ("", *about) if each != OPEN] if about else []
        notified += [digest_of(EVERYONE)] if OPEN in about else []
        return await self._writer.write(change, notified)

    async def read(self, look: Callable[[Rows], T], *, once: bool = False) -> T:
        """Run `look` on the committed data of one moment and return its result; `look` may run more than once.

        Args:
            once: `look` executes a single statement, so no transaction is needed.
        """
        return await asyncio.to_thread(self.run, look, AT_ONCE if once else OF_ONE_MOMENT)

    async def glance(self, look: Callable[[Rows], T]) -> T:
        """Run `look`, which reads a few rows by an index.

        Each statement of `look` sees what is committed when the statement runs.
        """
        return await asyncio.to_thread(self.run, look, AT_ONCE)

    def run(self, look: Callable[[Rows], T], first: bytes = OF_ONE_MOMENT, within_s: float = WAIT_S) -> T:
        """Run `look` in the caller's thread and return its result; if the server becomes unreachable, retry for
        `within_s` seconds.

        Args:
            first: the statement that begins the transaction; empty: `look` runs without one.
        """

        def read() -> T:
            with self.lent() as connection:
                rows = Rows(connection)
                if not first:
                    return look(rows)
                connection.execute(first)
                found = look(rows)
                connection.commit()  # a rollback would discard prepared statements; after an error, the pool rolls back
                return found

        return self._outlasting(read, within_s)

    def _outlasting(self, do: Callable[[], T], within_s: float = WAIT_S) -> T:
        """Call `do` and return its result. If the server becomes unreachable, call `do` again.

        Raises:
            StorageError: the server was unreachable for over `within_s` seconds.
        """
        clock = SystemClock()
        begun = clock.elapsed()
        for attempt in itertools.count():
            try:
                return do()
            except ServerGone as gone:
                if clock.elapsed() - begun > within_s:
                    raise StorageError(str(gone)) from None
                self._lent.reading.forget()
                if attempt:
                    threading.Event().wait(REST_S)
        raise AssertionError("unreachable")

    def change(self, change: Callable[[Rows], T]) -> T:
        """Run `change` in the caller's thread, in a transaction that does not wait for other commits of the tenant.

        No subscriber is notified. If the connection breaks during the commit, StorageError is raised even if the commit
        succeeded.
        """
        with explain_errors(self.shown), self._lent.writing.lend(self._tenant) as connection, connection.transaction():
            return change(Rows(connection))

    def subscribed(self, stream: str | None, notified: Callable[[], None]) -> AbstractContextManager[None]:
        """Until the block ends, call `notified` from another thread after each commit to a stream.

        Args:
            stream: None: any stream of the tenant. In a store of all tenants, None means instead: only commits with
                work that any process may claim.
        """
        return listening_to(self._url).subscribed(self._digest(stream or ""), notified)

    def _digest(self, stream: str) -> str:
        return digest_of("" if stream == ERASURES else self._tenant, stream)  # erasures are announced to all tenants

    @contextlib.contextmanager
    def lent(self, *, beyond: bool = False) -> Iterator[Connection]:
        """Lend a connection for reading. `beyond`: do not count it against the pool's maximum, because it is kept for
        long."""
        self._require_open()
        with explain_errors(self.shown), self._lent.reading.lend(self._tenant, beyond=beyond) as connection:
            yield connection

    @contextlib.asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Open a connection that sees the data of one moment until the block ends."""

        def begin(held: ExitStack) -> Rows:
            with ExitStack() as lent:
                connection = lent.enter_context(self.lent(beyond=True))
                connection.execute(OF_ONE_MOMENT)
                held.push(lent.pop_all())
                return Rows(connection)

        snapshot = Snapshot(lambda held: self._outlasting(partial(begin, held)), partial(explain_errors, self.shown))
        try:
            yield snapshot
        finally:
            await asyncio.shield(asyncio.to_thread(snapshot.close))

    async def vacuum(self, tables: str, *, full: bool) -> None:
        """Free the space of deleted rows.

        Args:
            full: rewrite the tables, so that no byte of deleted rows remains. The server would copy rows that an older
                transaction may still see, so this first waits for the end of such transactions.

        Raises:
            StorageError: an older transaction did not end within SEEN_S seconds; nothing was rewritten.
        """

        def run() -> None:
            with self.lent() as connection:
                if full:
                    _wait_for_older(connection)
                connection.execute(f"VACUUM ({'FULL, ' if full else ''}ANALYZE) {tables}".encode())

        await asyncio.to_thread(run)

    def abandon(self) -> None:
        """Release the connections of a store that could not be opened."""
        self._closed = True
        _leave(self._url)

    async def close(self) -> None:
        """Complete the pending writes and release the connections."""
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._writer.close)
            await asyncio.to_thread(_leave, self._url)


def _wait_for_older(connection: Connection) -> None:
    """Wait until no transaction can see rows that were deleted before now.

    Raises:
        StorageError: a transaction still can after SEEN_S seconds; the message names it.
    """
    clock = SystemClock()
    begun = clock.elapsed()
    (number,) = connection.execute(b"SELECT pg_current_xact_id()::text").fetchone() or ("",)
    older = OLDER.format(xid=f"'{number}'").encode()
    while found := connection.execute(older).fetchall():
        if clock.elapsed() - begun > SEEN_S:
            named = ", ".join(each for (each,) in found[:5])
            raise StorageError(
                "the data are deleted, but their bytes are still in the server's files, because an older transaction of"
                f" the database could read them: end that transaction ({named}), then repeat the deletion or compaction"
            )
        threading.Event().wait(LOOK_S)
