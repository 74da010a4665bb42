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

from mindstream.clock import SharedClock, SystemClock
from mindstream.errors import StorageError
from mindstream.location import Location
from mindstream.log.erasures import ERASURES
from mindstream.memory.store.postgres.faults import may_go_again
from mindstream.memory.store.postgres.listening import digest_of, listening_to
from mindstream.memory.store.postgres.writer import Write, Writer
from mindstream.memory.store.tenant import EVERYONE

T = TypeVar("T")
Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
Migration: TypeAlias = Callable[[Connection], None]
MOST = 8
"""So many connections a store has at most; each is a process of the server."""
WAIT_S = 30.0
IDLE_S = 60.0
"""So long a connection is held that nobody uses."""
STALE_S = 60
"""A transaction that is begun and asks nothing for so long is ended by the server: whoever began it has gone."""
LOCK = 0x6D696E64  # "mind"
OF_ONE_MOMENT = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
AT_ONCE = b""


FULL = ("53100", "53200")
"""SQLSTATE of a disk that is full, and of memory."""
_clocks: dict[str, SharedClock] = {}


def clock_of(url: str) -> SharedClock:
    """Return the time of a database's server, as this process knows it: one for all who use it."""
    return _clocks.setdefault(str(Location.of(url)), SharedClock())


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
        self.shown = str(Location.of(url))
        with explain_errors(self.shown):
            settings = conninfo.conninfo_to_dict(url, client_encoding="UTF8")
            self.clock = clock_of(url)
            open_database_of(url, tenant, migrations, self.clock).close()
            self._pool = ConnectionPool(
                kwargs=settings | {"autocommit": True}, min_size=0, max_size=MOST, timeout=WAIT_S, max_idle=IDLE_S,
                open=True, name=f"pool of {self.shown}", configure=lambda each: _be(each, tenant),
                connection_class=psycopg.Connection[tuple[Any, ...]],
            )  # fmt: skip
        self._url, self._tenant = url, tenant
        self._writer = Writer(f"writer of {self.shown}", self._connect, self._explained, self.clock)
        self._closed = False

    async def write(self, change: Callable[[Rows], T], about: Sequence[str] = ()) -> T:
        """Run `change` in a transaction and return its result once it is durable; it may be run more than once.

        Args:
            about: the streams that it concerns: who heeds them is told.
        """
        if self._closed:
            raise StorageError(f"{self.shown} is closed")
        told = [self._digest(each) for each in ("", *about)] if about else []
        write = Write(change, told)
        self._writer.put(write)
        return await write.future

    async def read(self, look: Callable[[Rows], T]) -> T:
        """Run `look` on what is committed, all of it as of one moment, and return its result."""
        return await asyncio.to_thread(self.run, look)

    async def glance(self, look: Callable[[Rows], T]) -> T:
        """Run `look`, each of its statements on what is committed then; for one that an index answers."""
        return await asyncio.to_thread(self.run, look, AT_ONCE)

    def run(self, look: Callable[[Rows], T], first: bytes = OF_ONE_MOMENT) -> T:
        """Read in the thread that calls; where the server goes away, once more when it is back."""
        clock = SystemClock()
        begun = clock.elapsed()
        while True:
            try:
                with self._connection() as connection:
                    return _look(connection, look, first)
            except Gone as gone:
                if clock.elapsed() - begun > WAIT_S:
                    raise StorageError(str(gone)) from None
                with contextlib.suppress(psycopg.Error, PoolTimeout):
                    self._pool.check()

    def heeding(self, stream: str | None, told: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
        """Call `told`, from another thread, when anybody has written to a stream; None: to any of the tenant's."""
        digest = "" if self._tenant == EVERYONE else self._digest(stream or "")
        return listening_to(self._url).heeding(digest, told)

    def _digest(self, stream: str) -> str:
        return digest_of("" if stream == ERASURES else self._tenant, stream)  # erasures are told over all walls

    def _connect(self) -> Connection:
        connection = psycopg.connect(self._url, connect_timeout=10, client_encoding="UTF8", autocommit=True)
        _be(connection, self._tenant)
        connection.execute(f"SET idle_in_transaction_session_timeout = '{STALE_S}s'".encode())
        return connection

    def _explained(self, error: psycopg.Error) -> StorageError:
        return explained(error, self.shown)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Connection]:
        if self._closed:
            raise StorageError(f"{self.shown} is closed")
        with explain_errors(self.shown), self._pool.connection() as connection:
            yield connection

    lent = _connection

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
            connection.execute(sql.encode())

    async def close(self) -> None:
        """Finish what is running and let the connections go."""
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._writer.close)
            await asyncio.to_thread(self._pool.close)


def _look(connection: Connection, look: Callable[[Rows], T], first: bytes) -> T:
    if not first:
        return look(Rows(connection))
    connection.execute(first)
    try:
        return look(Rows(connection))
    finally:
        if not connection.closed:
            connection.rollback()


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


@contextlib.contextmanager
def explain_errors(place: str) -> Iterator[None]:
    """Raise StorageError in place of the driver's errors; they do not repeat a URL."""
    try:
        yield
    except PoolTimeout:
        raise StorageError(f"{place}: no connection was free, or could be made, for {WAIT_S:.0f} seconds") from None
    except psycopg.Error as error:
        raise explained(error, place) from None


class Gone(StorageError):  # noqa: N818 (a state, not a fault of ours)
    """The server went away, or comes up just now: it may help to ask again."""


def explained(error: psycopg.Error, place: str) -> StorageError:
    """Return what went wrong, in words that repeat no URL; a disk that is full is said to be."""
    told = " ".join(str(error).split())
    if may_go_again(error):
        return Gone(f"{place}: {told}")
    if error.sqlstate in FULL:
        return StorageError(f"{place}: the server has no room left ({told}): give it some, then go on")
    return StorageError(f"{place}: {told}")


def connected(url: str) -> Connection:
    """Connect, or say what to do.

    Raises:
        StorageError: the server is not there, or does not let the role in.
    """
    place = str(Location.of(url))
    try:
        return psycopg.connect(url, connect_timeout=10, client_encoding="UTF8")
    except psycopg.OperationalError as error:
        told = " ".join(str(error).split()).rstrip(".?")
        raise StorageError(
            f"{place} cannot be reached: {told}. See that the server runs (pg_isready), that the database and the role"
            " are there, and that the role gets in: a password is best kept in PGPASSWORD or ~/.pgpass"
        ) from None


def open_database_of(
    url: str, tenant: str, migrations: Sequence[Migration], clock: SharedClock | None = None
) -> Connection:
    """Connect as a tenant to a database of ours, brought up to date.

    Raises:
        StorageError: the role passes by row-level security, it is not in UTF8, or a newer mindstream has written it.
    """
    connection = connected(url)
    try:
        _refuse_what_is_unfit(connection, str(Location.of(url)))
        _bring_up_to_date(connection, migrations, str(Location.of(url)))
        _be(connection, tenant)
        connection.execute("INSERT INTO counters (name, value) VALUES ('changed', 0) ON CONFLICT DO NOTHING")
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


def _be(connection: Connection, tenant: str) -> None:
    """Let a connection be a tenant's: row-level security shows it that tenant's rows alone.

    The planner knows nothing of names (tables.WORDS), and takes each stream for a short one: it would collect all of it
    and sort. Without bitmaps it walks the index that has the order.
    """
    connection.execute(
        "SELECT set_config('mindstream.tenant', %s, false), set_config('enable_bitmapscan', 'off', false)", (tenant,)
    )
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
