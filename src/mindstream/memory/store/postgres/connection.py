"""A PostgreSQL database as a tenant's store uses it; errors in plain words, without a password."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeVar

import psycopg

from mindstream.clock import SharedClock, SystemClock
from mindstream.errors import StorageError
from mindstream.location import Location
from mindstream.log.erasures import ERASURES
from mindstream.memory.store.postgres.entering import Migration, open_database_of
from mindstream.memory.store.postgres.faults import may_go_again
from mindstream.memory.store.postgres.lending import NOBODY, REST_S, WAIT_S, Connection, Lending, be
from mindstream.memory.store.postgres.listening import digest_of, listening_to
from mindstream.memory.store.postgres.writer import Write, Writer
from mindstream.memory.store.sql_store import OPEN
from mindstream.memory.store.tenant import EVERYONE

T = TypeVar("T")
STALE_S = 60
"""A transaction that is begun and asks nothing for so long is ended by the server: whoever began it has gone."""
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
        return self.connection.execute(_translated(sql), values or None, binary=True)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> psycopg.Cursor[tuple[Any, ...]]:
        """Run a statement once for each row of values."""
        cursor = self.connection.cursor()
        cursor.executemany(_translated(sql), rows)
        return cursor


def binary(rows: Rows, sql: str, values: tuple[Any, ...]) -> psycopg.Cursor[tuple[Any, ...]]:
    """Run a statement of the driver's own form, and have its rows in the server's: arrays and bytes as they are."""
    return rows.connection.cursor(binary=True).execute(sql.encode(), values)


@lru_cache(1000)
def _translated(sql: str) -> bytes:
    return (sql.replace("%", "%%").replace("?", "%s") if "?" in sql else sql).encode()


@dataclass
class Lent:
    """What a process is lent of a database: to read, and to write; `users`: stores that are open."""

    reading: Lending
    writing: Lending
    migrated: int
    users: int = 0


class Lendings:
    """The connections of a process, by URL: all stores of a database share them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lent: dict[str, Lent] = {}

    def join(self, url: str, migrations: Sequence[Migration], clock: SharedClock) -> Lent:
        """Share in the connections to a database; who is the first sees to it that it is fit.

        Raises:
            StorageError: it is not, or cannot be reached.
        """
        with self._lock:
            found = self._lent.get(url)
            if found is None or found.migrated != len(migrations):
                open_database_of(url, NOBODY, migrations, clock).close()
            if found is None:
                place = str(Location.of(url))
                found = Lent(Lending(place, partial(_connect, url)), Lending(place, partial(_connect, url, STALE_S)), 0)
                self._lent[url] = found
            found.migrated = len(migrations)
            found.users += 1
            return found

    def leave(self, url: str) -> None:
        """Share in them no longer; the last one lets them go."""
        with self._lock:
            found = self._lent[url]
            found.users -= 1
            if not found.users:
                del self._lent[url]
                found.reading.close()
                found.writing.close()


_lendings = Lendings()


def _connect(url: str, stale_s: int = 0) -> Connection:
    connection = psycopg.connect(url, connect_timeout=10, client_encoding="UTF8", autocommit=True)
    be(connection, NOBODY)
    if stale_s:
        connection.execute(f"SET idle_in_transaction_session_timeout = '{stale_s}s'".encode())
    return connection


class PostgresDatabase:
    """An open database, as a tenant sees it.

    Raises (from every method):
        StorageError: the server cannot be reached, refuses, or has no room; the message says which.
    """

    def __init__(self, url: str, tenant: str, migrations: Sequence[Migration]) -> None:
        self.shown = str(Location.of(url))
        with explain_errors(self.shown):
            self.clock = clock_of(url)
            self._lent = _lendings.join(url, migrations, self.clock)
        self._url, self._tenant = url, tenant
        self._writer = Writer(
            f"writer of {self.shown}",
            lambda: self._lent.writing.lend(tenant),
            self._lent.writing.forget,
            self._explained,
            self.clock,
        )
        self._closed = False

    async def write(self, change: Callable[[Rows], T], about: Sequence[str] = ()) -> T:
        """Run `change` in a transaction and return its result once it is durable; it may be run more than once.

        Args:
            about: the streams that it concerns: who heeds them is told.
        """
        if self._closed:
            raise StorageError(f"{self.shown} is closed")
        told = [self._digest(each) for each in ("", *about) if each != OPEN] if about else []
        told += [digest_of(EVERYONE)] if OPEN in about else []
        write = Write(change, told)
        self._writer.put(write)
        return await write.future

    async def read(self, look: Callable[[Rows], T], *, once: bool = False) -> T:
        """Run `look` on what is committed, all of it as of one moment, and return its result.

        Args:
            once: it is one statement, which is as of one moment by itself.
        """
        return await asyncio.to_thread(self.run, look, AT_ONCE if once else OF_ONE_MOMENT)

    async def glance(self, look: Callable[[Rows], T]) -> T:
        """Run `look`, each of its statements on what is committed then; for one that an index answers."""
        return await asyncio.to_thread(self.run, look, AT_ONCE)

    def run(self, look: Callable[[Rows], T], first: bytes = OF_ONE_MOMENT, within_s: float = WAIT_S) -> T:
        """Read in the thread that calls; where the server goes away, once more when it is back, for so long."""

        def read() -> T:
            with self.lent() as connection:
                return _look(connection, look, first)

        return self._outlasting(read, within_s)

    def _outlasting(self, do: Callable[[], T], within_s: float = WAIT_S) -> T:
        """Do something again where the server goes away, for so long."""
        clock = SystemClock()
        begun = clock.elapsed()
        for again in itertools.count():
            try:
                return do()
            except Gone as gone:
                if clock.elapsed() - begun > within_s:
                    raise StorageError(str(gone)) from None
                self._lent.reading.forget()
                if again:
                    threading.Event().wait(REST_S)
        raise AssertionError("unreachable")

    def change(self, change: Callable[[Rows], T]) -> T:
        """Run `change` in a transaction beside the tenant's commits, in the thread that calls, and nobody is told.

        Where nobody knows whether it was kept it is not said to be.
        """
        with explain_errors(self.shown), self._lent.writing.lend(self._tenant) as connection, connection.transaction():
            return change(Rows(connection))

    def heeding(self, stream: str | None, told: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
        """Call `told`, from another thread, when anybody has written to a stream; None: to any of the tenant's.

        Whoever sees all tenants is told where there may be work to take up.
        """
        return listening_to(self._url).heeding(self._digest(stream or ""), told)

    def _digest(self, stream: str) -> str:
        return digest_of("" if stream == ERASURES else self._tenant, stream)  # erasures are told over all walls

    def _explained(self, error: psycopg.Error) -> StorageError:
        return explained(error, self.shown)

    @contextlib.contextmanager
    def lent(self, *, beyond: bool = False) -> Iterator[Connection]:
        """Lend a connection to read; `beyond`: beside the others, for it is kept for long."""
        if self._closed:
            raise StorageError(f"{self.shown} is closed")
        with explain_errors(self.shown), self._lent.reading.lend(self._tenant, beyond=beyond) as connection:
            yield connection

    def _begun(self) -> tuple[Connection, contextlib.ExitStack]:
        """Lend a connection on which the database stands still until the stack is closed."""
        with contextlib.ExitStack() as lent:
            connection = lent.enter_context(self.lent(beyond=True))
            connection.execute(OF_ONE_MOMENT)
            return connection, lent.pop_all()

    @contextlib.asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Read on a connection of one's own, on which the database stands still until the block ends."""
        snapshot = Snapshot(self.shown, lambda: self._outlasting(self._begun))
        try:
            yield snapshot
        finally:
            await asyncio.shield(asyncio.to_thread(snapshot.close))

    async def vacuum(self, tables: str, *, full: bool) -> None:
        """Give back the room of rows that are no more; `full`: write the tables anew, without a byte of them."""
        await asyncio.to_thread(self._vacuum, f"VACUUM ({'FULL, ' if full else ''}ANALYZE) {tables}")

    def _vacuum(self, sql: str) -> None:
        with self.lent() as connection:
            connection.execute(sql.encode())

    def abandon(self) -> None:
        """Let the connections go of what could not be opened whole."""
        self._closed = True
        _lendings.leave(self._url)

    async def close(self) -> None:
        """Finish what is running and let the connections go."""
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._writer.close)
            await asyncio.to_thread(_lendings.leave, self._url)


def _look(connection: Connection, look: Callable[[Rows], T], first: bytes) -> T:
    if not first:
        return look(Rows(connection))
    connection.execute(first)
    found = look(Rows(connection))
    connection.commit()  # a rollback would take the prepared statements along; where it fails, whoever lends it does it
    return found


class Snapshot:
    """A connection on which the database stands still; what is asked of it runs in a thread."""

    def __init__(self, place: str, begin: Callable[[], tuple[Connection, contextlib.ExitStack]]) -> None:
        self._place, self._begin = place, begin
        self._lent: contextlib.ExitStack | None = None
        self._connection: Connection | None = None
        self._lock = threading.Lock()  # whoever gave up waiting has left its work behind

    async def read(self, look: Callable[[Connection], T]) -> T:
        """Run `look`, after all that was asked before, and return its result."""
        return await asyncio.to_thread(self._look, look)

    def _look(self, look: Callable[[Connection], T]) -> T:
        with self._lock, explain_errors(self._place):
            if self._connection is None:
                self._connection, self._lent = self._begin()
            return look(self._connection)

    def close(self) -> None:
        """Wait for what is running and give the connection back, which ends what it had begun."""
        with self._lock:
            if self._lent is not None:
                self._lent.close()


@contextlib.contextmanager
def explain_errors(place: str) -> Iterator[None]:
    """Raise StorageError in place of the driver's errors; they do not repeat a URL."""
    try:
        yield
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
