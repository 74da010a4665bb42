"""A PostgreSQL database: a pool of connections, each a tenant's; errors in plain words, without a password."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import conninfo
from psycopg_pool import ConnectionPool, PoolTimeout

from mindstream.errors import StorageError

T = TypeVar("T")
Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
Migration: TypeAlias = Callable[[Connection], None]
MOST = 8
"""So many connections a store has at most; each is a process of the server."""
WAIT_S = 30.0
LOCK = 0x6D696E64  # "mind"
OF_ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
ONE_WRITER = "SELECT value FROM counters WHERE name = 'changed' FOR UPDATE"
"""A tenant's writers come one after the other: whoever reads "after" a number misses nothing that was numbered less."""


class Rows:
    """A connection that takes statements as SQLite does: a ? stands for each value."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def execute(self, sql: str, values: Sequence[Any] = ()) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run a statement."""
        return self.connection.execute(_translated(sql), values or None)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run a statement once for each row of values."""
        cursor = self.connection.cursor()
        cursor.executemany(_translated(sql), rows)
        return cursor


@lru_cache(1000)
def _translated(sql: str) -> bytes:
    return (sql.replace("%", "%%").replace("?", "%s") if "?" in sql else sql).encode()


class PostgresDatabase:
    """An open database, as a tenant sees it.

    Raises (from every method):
        StorageError: the server cannot be reached, refuses, or has no room; the message says which.
    """

    def __init__(self, url: str, tenant: str, migrations: Sequence[Migration]) -> None:
        self.shown = shown(url)
        with explain_errors(self.shown):
            settings = conninfo.conninfo_to_dict(url, client_encoding="UTF8")
            open_database_of(url, tenant, migrations).close()
            self._pool = ConnectionPool(
                kwargs=settings, min_size=1, max_size=MOST, timeout=WAIT_S, open=True, name=f"pool of {self.shown}",
                configure=lambda each: _be(each, tenant), connection_class=psycopg.Connection[tuple[Any, ...]],
            )  # fmt: skip
        self._closed = False

    async def write(self, change: Callable[[Rows], T]) -> T:
        """Run `change` in a transaction and return its result once it is durable."""
        return await self._run(change, ONE_WRITER)

    async def read(self, look: Callable[[Rows], T]) -> T:
        """Run `look` on what is committed, all of it as of one moment, and return its result."""
        return await self._run(look, OF_ONE_MOMENT)

    glance = read

    async def _run(self, work: Callable[[Rows], T], first: str) -> T:
        return await asyncio.to_thread(self.run, work, first)

    def run(self, work: Callable[[Rows], T], first: str = OF_ONE_MOMENT) -> T:
        """Run work in a transaction that begins with a statement; in the thread that calls."""
        with self._connection() as connection:
            connection.execute(first.encode())
            return work(Rows(connection))

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Connection]:
        if self._closed:
            raise StorageError(f"{self.shown} is closed")
        with explain_errors(self.shown), self._pool.connection() as connection:
            yield connection

    @contextlib.asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Read on a connection of one's own, on which the database stands still until the block ends."""
        snapshot = Snapshot(self.shown, self._connection())
        try:
            yield snapshot
        finally:
            await asyncio.shield(asyncio.to_thread(snapshot.close))

    async def vacuum(self, tables: str, *, full: bool) -> None:
        """Give back the room of rows that are no more; `full`: write the tables anew, without a byte of them."""
        await asyncio.to_thread(self._vacuum, f"VACUUM ({'FULL, ' if full else ''}ANALYZE) {tables}")

    def _vacuum(self, sql: str) -> None:
        with self._connection() as connection:
            connection.autocommit = True
            try:
                connection.execute(sql.encode())
            finally:
                connection.autocommit = False

    async def close(self) -> None:
        """Finish what is running and let the connections go."""
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._pool.close)


class Snapshot:
    """A connection on which the database stands still; what is asked of it runs in a thread."""

    def __init__(self, place: str, lent: contextlib.AbstractContextManager[Connection]) -> None:
        self._place, self._lent = place, lent
        self._connection: Connection | None = None
        self._lock = threading.Lock()  # whoever gave up waiting has left its work behind

    async def read(self, look: Callable[[Connection], T]) -> T:
        """Run `look`, after all that was asked before, and return its result."""
        return await asyncio.to_thread(self._look, look)

    def _look(self, look: Callable[[Connection], T]) -> T:
        with self._lock:
            if self._connection is None:
                self._connection = self._lent.__enter__()
                self._connection.execute(OF_ONE_MOMENT)
            with explain_errors(self._place):
                return look(self._connection)

    def close(self) -> None:
        """Wait for what is running and give the connection back."""
        with self._lock:
            if self._connection is not None:
                try:
                    self._connection.rollback()
                finally:
                    self._lent.__exit__(None, None, None)


def shown(url: str) -> str:
    """Return what may be shown of a URL: where it leads, without a password or any setting.

    Raises:
        StorageError: it is none.
    """
    try:
        found = conninfo.conninfo_to_dict(url)
    except psycopg.Error:  # its words may repeat a piece of the URL
        raise StorageError("that is no URL of a PostgreSQL database: postgresql://user@host:port/db") from None
    place = f"{found.get('host') or 'localhost'}{':' + str(found['port']) if found.get('port') else ''}"
    user = f"{found['user']}@" if found.get("user") else ""
    return f"postgresql://{user}{place}/{found.get('dbname') or ''}"


@contextlib.contextmanager
def explain_errors(place: str) -> Iterator[None]:
    """Raise StorageError in place of the driver's errors; they do not repeat a URL."""
    try:
        yield
    except PoolTimeout:
        raise StorageError(f"{place}: no connection was free, or could be made, for {WAIT_S:.0f} seconds") from None
    except psycopg.Error as error:
        raise StorageError(f"{place}: {' '.join(str(error).split())}") from None


def open_database_of(url: str, tenant: str, migrations: Sequence[Migration]) -> Connection:
    """Connect as a tenant to a database of ours, brought up to date.

    Raises:
        StorageError: the role passes by row-level security, it is not in UTF8, or a newer mindstream has written it.
    """
    connection = psycopg.connect(url, connect_timeout=10, client_encoding="UTF8")
    try:
        _refuse_what_is_unfit(connection, shown(url))
        _bring_up_to_date(connection, migrations, shown(url))
        _be(connection, tenant)
        connection.execute("INSERT INTO counters (name, value) VALUES ('changed', 0) ON CONFLICT DO NOTHING")
        connection.commit()
    except BaseException:
        connection.close()
        raise
    return connection


def _be(connection: Connection, tenant: str) -> None:
    """Let a connection be a tenant's: row-level security shows it that tenant's rows alone."""
    connection.execute("SELECT set_config('mindstream.tenant', %s, false)", (tenant,))
    connection.commit()


def _refuse_what_is_unfit(connection: Connection, place: str) -> None:
    if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
        raise StorageError(f"{place}: the database is in {encoding}, which cannot hold all letters; make one in UTF8")
    sql = "SELECT rolname FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)"
    if row := connection.execute(sql).fetchone():
        raise StorageError(
            f"{place}: the role {row[0]!r} passes by row-level security, and so by the wall between tenants;"
            " connect as a role that is neither SUPERUSER nor BYPASSRLS and owns the database"
        )


def _bring_up_to_date(connection: Connection, migrations: Sequence[Migration], place: str) -> None:
    """Make or migrate the tables under one lock: `migrations` is append-only, the database counts what it has seen."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
    connection.execute("CREATE TABLE IF NOT EXISTS mindstream_migrations (seen integer NOT NULL)")
    row = connection.execute("SELECT coalesce(max(seen), 0) FROM mindstream_migrations").fetchone()
    seen = int(row[0]) if row else 0
    if seen > len(migrations):
        raise StorageError(f"{place} was written by a newer mindstream; upgrade mindstream, or choose another database")
    for number, migration in enumerate(migrations[seen:], seen + 1):
        migration(connection)
        connection.execute("INSERT INTO mindstream_migrations (seen) VALUES (%s)", (number,))
    connection.commit()
