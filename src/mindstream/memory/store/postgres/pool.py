"""Connections to a PostgreSQL database: connect, check and migrate it, explain its errors, share a few connections.

A process shares a few connections among the stores of all tenants. With row-level security, a connection sees only the
rows of the tenant that it is set to. So the pool sets the tenant before it lends a connection, and does not lend one
whose tenant could not be set. When a connection comes back, a transaction that is still open is rolled back.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import psycopg

from mindstream.clock import SharedClock, SystemClock
from mindstream.errors import StorageError
from mindstream.location import Location

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
Cursor: TypeAlias = psycopg.Cursor[tuple[Any, ...]]
Migration: TypeAlias = Callable[[Connection], None]
MOST = 8
"""Maximum number of connections lent at a time; each occupies a process of the server."""
WAIT_S, IDLE_S, REST_S = 30.0, 60.0, 0.1
"""In seconds. WAIT_S: maximum wait for a free connection. IDLE_S: time after which an idle connection is closed.
REST_S: pause between two attempts to reach a server."""
NO_TENANT, UNKNOWN = "\n", "\r"
"""Tenant of a new connection, and of one whose tenant could not be set; neither is a valid tenant name."""
IDLE = psycopg.pq.TransactionStatus.IDLE
LOCK = 0x6D696E64  # "mind"
FULL = ("53100", "53200")
"""SQLSTATE codes of a full disk and of exhausted memory."""
TRANSIENT = ("08", "40", "57P", "25P03")
"""Beginnings of the SQLSTATE codes after which a retry may help: connection exceptions, rolled back transactions
(serialization, deadlock), a server that stops or starts, and a transaction that was idle for too long (the machine was
suspended)."""
REFUSALS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "invalid ")
"""Texts of libpq's error messages if the server is reachable but rejects the connection; these errors have no
SQLSTATE."""


def is_transient(error: psycopg.Error) -> bool:
    """Return whether the statement that failed with this error may succeed if it is retried."""
    if error.sqlstate is not None:
        return error.sqlstate.startswith(TRANSIENT)
    refused = any(each in str(error) for each in REFUSALS)
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not refused


class ServerGone(StorageError):  # noqa: N818 (a state of the server)
    """The server is unreachable, is starting or stopping, or has rolled back the transaction: a retry may help."""


def explained(error: psycopg.Error, place: str) -> StorageError:
    """Return the StorageError for an error of the driver. The message does not contain the URL, which may have a
    password."""
    text = f"{place}: {' '.join(str(error).split())}"
    if is_transient(error):
        return ServerGone(text)
    if error.sqlstate in FULL:
        return StorageError(f"{text}: the server's disk or memory is full; free some space, then try again")
    return StorageError(text)


@contextlib.contextmanager
def explain_errors(place: str) -> Iterator[None]:
    """Raise StorageError in place of errors of the driver."""
    try:
        yield
    except psycopg.Error as error:
        raise explained(error, place) from None


class Rows:
    """A connection that accepts the same statements as SQLite's, with a ? as the placeholder of each value."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Cursor:
        """Run a statement."""
        return self.connection.execute(_translated(sql), values or None, binary=True)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> Cursor:
        """Run a statement once for each row of values."""
        cursor = self.connection.cursor()
        cursor.executemany(_translated(sql), rows)
        return cursor


@lru_cache(1000)
def _translated(sql: str) -> bytes:
    return (sql.replace("%", "%%").replace("?", "%s") if "?" in sql else sql).encode()


def connect_to(url: str) -> Connection:
    """Connect to a database.

    Raises:
        StorageError: the server is unreachable or rejects the role; the message says what to do.
    """
    try:
        return psycopg.connect(url, connect_timeout=10, client_encoding="UTF8")
    except psycopg.OperationalError as error:
        raise StorageError(
            f"{Location.of(url)} cannot be reached: {' '.join(str(error).split()).rstrip('.?')}. Check that the server"
            " runs (pg_isready), that the database and the role exist, and that the role may connect: keep a password"
            " in PGPASSWORD or ~/.pgpass"
        ) from None


def open_database_of(
    url: str, tenant: str, migrations: Sequence[Migration], clock: SharedClock | None = None
) -> Connection:
    """Connect as a tenant to a mindstream database, after its migrations.

    Args:
        clock: a clock that is corrected by the server's time; None: no clock is corrected.

    Raises:
        StorageError: the server cannot be reached, the role bypasses row-level security, the encoding is not UTF8, or a
            newer mindstream has written the database.
    """
    connection, place = connect_to(url), str(Location.of(url))
    try:
        if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
            raise StorageError(
                f"{place}: the encoding must be UTF8, but is {encoding}; create the database with ENCODING 'UTF8'"
            )
        sql = "SELECT rolname FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)"
        if row := connection.execute(sql).fetchone():
            raise StorageError(
                f"{place}: the role {row[0]!r} bypasses row-level security, and so the isolation of tenants;"
                " connect as a role that is neither SUPERUSER nor BYPASSRLS and owns the database"
            )
        _migrate(connection, migrations, place)
        set_tenant(connection, tenant)
        connection.commit()
        if clock is not None:
            asked = clock.own.now()
            row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
            clock.learn(float(row[0]) if row else asked, asked, clock.own.now())
            connection.commit()
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: Connection, migrations: Sequence[Migration], place: str) -> None:
    """Create or migrate the tables under one lock. `migrations` is append-only; the database stores how many were
    applied."""
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


def set_tenant(connection: Connection, tenant: str) -> None:
    """Set the tenant of a connection: row-level security then shows only the rows of that tenant.

    Bitmap scans are switched off, so that PostgreSQL's planner reads the rows of a stream in order by an index. The
    planner has no statistics of columns with users' words or names (tables.WORDS), such as the name of a stream. It
    therefore assumes that each stream is short, and would collect and sort all rows of a stream.
    """
    connection.execute(
        "SELECT set_config('mindstream.tenant', %s, false), set_config('enable_bitmapscan', 'off', false)", (tenant,)
    )


@dataclass
class _Pooled:
    connection: Connection
    tenant: str
    since: float = 0.0


class ConnectionPool:
    """Lends connections, which are opened on demand in the caller's thread.

    Args:
        connect: opens a connection in autocommit mode.
    """

    def __init__(self, place: str, connect: Callable[[], Connection]) -> None:
        self._place, self._connect = place, connect
        self._room = threading.BoundedSemaphore(MOST)
        self._lock = threading.Lock()
        self._idle: list[_Pooled] = []
        self._clock = SystemClock()
        self._sweep: threading.Timer | None = None
        self._closed = False

    @contextlib.contextmanager
    def lend(self, tenant: str, *, beyond: bool = False) -> Iterator[Connection]:
        """Lend a connection that is set to the tenant while the block runs.

        Args:
            beyond: whether the connection does not count against MOST, because it is kept for long.

        Raises:
            StorageError: no connection became free within WAIT_S.
            psycopg.Error: no connection can be opened, or the block raises it.
        """
        if not beyond and not self._room.acquire(timeout=WAIT_S):
            raise StorageError(f"{self._place}: no connection became free within {WAIT_S:.0f} seconds; try again later")
        try:
            pooled = self._take(tenant)
            try:
                if pooled.tenant != tenant:
                    pooled.tenant = UNKNOWN
                    set_tenant(pooled.connection, tenant)
                    pooled.tenant = tenant
                yield pooled.connection
            finally:
                self._take_back(pooled)
        finally:
            if not beyond:
                self._room.release()

    def forget(self) -> None:
        """Close all idle connections, because the server has become unreachable."""
        with self._lock:
            idle, self._idle = self._idle, []
        _close(idle)

    def close(self) -> None:
        """Close all connections; one that is lent is closed when it comes back."""
        self._closed = True
        with self._lock:
            if self._sweep is not None:
                self._sweep.cancel()
        self.forget()

    def _take(self, tenant: str) -> _Pooled:
        with self._lock:
            if self._idle:
                own = [at for at, each in enumerate(self._idle) if each.tenant == tenant]
                return self._idle.pop(own[-1] if own else -1)
        return _Pooled(self._connect(), NO_TENANT)

    def _take_back(self, pooled: _Pooled) -> None:
        connection = pooled.connection
        with contextlib.suppress(psycopg.Error):
            if not connection.closed and connection.info.transaction_status != IDLE:
                connection.rollback()
        is_sound = not connection.closed and connection.info.transaction_status == IDLE and connection.autocommit
        pooled.since = self._clock.elapsed()
        with self._lock:
            is_kept = len(self._idle) < 2 * MOST  # MOST does not count connections lent with `beyond`
            if is_sound and is_kept and pooled.tenant != UNKNOWN and not self._closed:
                self._idle.append(pooled)
                if self._sweep is None:
                    self._start_sweep()
                return
        _close([pooled])

    def _start_sweep(self) -> None:
        self._sweep = threading.Timer(IDLE_S / 2, self._close_old)
        self._sweep.daemon = True
        self._sweep.start()

    def _close_old(self) -> None:
        before = self._clock.elapsed() - IDLE_S
        with self._lock:
            old = [each for each in self._idle if each.since < before]
            self._idle = [each for each in self._idle if each.since >= before]
            self._sweep = None
            if self._idle and not self._closed:
                self._start_sweep()
        _close(old)


def _close(pooled: list[_Pooled]) -> None:
    for each in pooled:
        with contextlib.suppress(psycopg.Error):
            each.connection.close()
