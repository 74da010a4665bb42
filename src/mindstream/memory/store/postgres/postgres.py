"""The store in a PostgreSQL database; every method keeps what memory/store/store promises (see conformance)."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from psycopg import conninfo

from mindstream.clock import Moment, SharedClock
from mindstream.errors import StorageError
from mindstream.location import Location
from mindstream.log.erasure import erase_typed
from mindstream.log.files import KEPT_COLUMNS
from mindstream.log.names import StreamKey
from mindstream.log.work import Taken, take
from mindstream.memory.store import queries, registry
from mindstream.memory.store.erasure import Carriers
from mindstream.memory.store.kept.columns_file import outdated
from mindstream.memory.store.postgres.connection import AT_ONCE, PostgresDatabase, Rows
from mindstream.memory.store.postgres.lending import REST_S, Connection
from mindstream.memory.store.postgres.reading import PostgresIndexReader
from mindstream.memory.store.postgres.segments import Indexing
from mindstream.memory.store.postgres.tables import ACCOUNTS, MIGRATIONS, TABLES
from mindstream.memory.store.record import KINDS, Kind, Record, Vector
from mindstream.memory.store.rows import COLUMNS, FIELDS, record_of
from mindstream.memory.store.sql_store import SqlStore
from mindstream.memory.store.store import Candidates, Changes
from mindstream.memory.store.tenant import EVERYONE, Tenant
from mindstream.paths import home
from mindstream.text.dates import DateSpan

SKIPPING = "FOR UPDATE OF work SKIP LOCKED"
PORTION_SIZE = 50_000
"""A portion ends where it has so many characters, however few records they are."""
NEWEST = (
    "SELECT (SELECT coalesce(max(changed), 0) FROM records WHERE stream = ?),"
    " (SELECT coalesce(max(changed), 0) FROM erased WHERE stream = ?)"
)
NEXT = f"SELECT {COLUMNS}, number FROM records WHERE stream = ? AND changed > ? AND number > ? ORDER BY number LIMIT ?"
COMPACTED = (
    "UPDATE counters SET value = 0 WHERE name IN ('erased', 'unindexed')"
    " AND EXISTS (SELECT 1 FROM counters WHERE name = 'erased' AND value = ?)"
)
"""Nothing was erased while the tables were written anew; else both are due yet."""
HELD = "SELECT coalesce(sum(count), 0)::int8, coalesce(max(last), 0) FROM segments WHERE stream = ? AND ready"
CANCELS_S = 0.1
"""How often a filling that is broken off is told so: it may have been between two statements."""
TEXT, DATA = FIELDS.index("text"), FIELDS.index("data")


class WalledTenant(Tenant):
    """A tenant whose rows are all that there is to see."""

    def owned(self, column: str) -> str:  # noqa: ARG002
        return "1 = 1" if self.name == EVERYONE else "tenant = current_setting('mindstream.tenant')"


class PostgresStore(SqlStore):
    """A database that `postgresql://user@host:port/db` names.

    Args:
        tenant: whose streams are seen and written, and no others'; "": those that are no tenant's.

    Raises:
        StorageError: it cannot be reached, or the role passes by row-level security.
    """

    _database: PostgresDatabase

    def __init__(self, url: str, tenant: str = "") -> None:
        self.tenant = WalledTenant(tenant)
        self._place = Location.of(url)
        self._database = PostgresDatabase(url, tenant, MIGRATIONS)
        self.columns_folder = cache_folder(url, tenant)
        try:  # an event loop may stand still meanwhile: a server that is away is not waited for
            self._typed = self._database.run(registry.typed_keys, AT_ONCE, REST_S)
        except BaseException:
            self._database.abandon()
            raise

    async def candidates(
        self,
        stream: StreamKey,
        vector: Vector | None,
        words: Sequence[str],
        n: int,
        *,
        kinds: Sequence[Kind] | None = None,
        spans: Sequence[DateSpan] = (),
    ) -> Candidates:
        self.tenant.own(stream)
        wanted = KINDS if kinds is None else kinds
        found = await self._database.read(
            lambda rows: self._finder.find(PostgresIndexReader(rows), stream, vector, words, n, wanted, spans)
        )
        self._index(stream)  # now, that it is not in the way
        return found

    async def _fill(self, stream: StreamKey) -> None:
        indexing = Indexing(self._database, stream)
        running = asyncio.get_running_loop().run_in_executor(self._filler, indexing.run)
        try:
            with contextlib.suppress(StorageError):  # what cannot be filled now is filled the next time
                await asyncio.shield(running)
        finally:
            while not running.done():
                await asyncio.to_thread(indexing.break_off)
                await asyncio.wait([running], timeout=CANCELS_S)
            with contextlib.suppress(StorageError):
                running.result()

    def _erase_beside(self, stream: StreamKey, found: Carriers) -> None:
        erase_typed(self._place.beside, stream, found.is_meant)

    @property
    def clock(self) -> SharedClock:
        """The server's time, by which all who write to it agree."""
        return self._database.clock

    @contextlib.contextmanager
    def heeding(self, stream: StreamKey | None, told: Callable[[], None]) -> Iterator[None]:
        loop = asyncio.get_running_loop()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(told)

        with self._database.heeding(stream, tell):
            yield

    async def take_work(self, owner: str, now: Moment, lease: Moment, most: int, *, answers: bool) -> list[Taken]:
        """Take up work beside all commits: what another transaction is at is passed over, not waited for.

        Who begins a run claims it under the tenant's lock, and each commit that ends work looks whose it is.
        """
        among = self.tenant.owned("mind")
        return await asyncio.to_thread(
            self._database.change,
            lambda each: take(each, owner, now, lease, most, answers=answers, among=among, lock=SKIPPING),
        )

    async def version(self) -> int:
        if self.tenant.name == EVERYONE:
            return await self.last_seq()
        return await self._database.glance(queries.last_change)

    async def changes(self, stream: StreamKey, since: int, after: int = 0, most: int | None = None) -> Changes:
        self.tenant.own(stream)
        return await asyncio.to_thread(self._changes, stream, since, after, most)

    def _changes(self, stream: StreamKey, since: int, after: int, most: int | None) -> Changes:
        """Look first whether there is anything, in one statement: mostly there is not."""
        if since and not after and max(self._database.run(lambda rows: _newest(rows, stream), AT_ONCE)) <= since:
            return Changes(upto=since)
        return self._database.run(lambda rows: _changes(rows, stream, since, after, most))

    @contextlib.asynccontextmanager
    async def walk(self, stream: StreamKey) -> AsyncIterator[tuple[int, AsyncIterator[Record]]]:
        self.tenant.own(stream)
        async with self._database.snapshot() as snapshot:

            def portion(connection: Connection, after: int) -> list[tuple[Any, ...]]:
                return list(Rows(connection).execute(NEXT, (stream, -1, after, queries.A_PORTION)))

            def count(connection: Connection) -> int:
                row = Rows(connection).execute("SELECT count(*) FROM records WHERE stream = ?", (stream,)).fetchone()
                return int(row[0]) if row else 0

            async def each() -> AsyncIterator[Record]:
                after = 0
                while rows := await snapshot.read(lambda connection: portion(connection, after)):  # noqa: B023
                    for row in rows:
                        yield record_of(row[:-1])
                    after = rows[-1][-1]

            yield await snapshot.read(count), each()

    async def compact(self) -> None:
        sql = "SELECT value FROM counters WHERE name = 'erased' AND value > 0"
        due = await self._database.read(lambda rows: rows.execute(sql).fetchone())
        marked = "SELECT value FROM counters WHERE name = 'unindexed' AND value > 0"
        vectors = due and await self._database.read(lambda rows: rows.execute(marked).fetchone())
        others = [table for table in (*TABLES, *ACCOUNTS) if table != "nearness"]
        await self._database.vacuum(", ".join(others), full=due is not None)
        await self._database.vacuum("nearness", full=vectors is not None)  # which makes the graph anew: only where due
        if due is not None:
            for path in await self._database.read(lambda rows: outdated(self.columns_folder, rows)):
                path.unlink(missing_ok=True)
            await self._database.write(lambda rows: rows.execute(COMPACTED, due))

    async def forget_tenant(self) -> None:
        if self.tenant.name:
            await self._database.write(lambda rows: rows.execute("DELETE FROM counters"))  # row-level security: its own
            await self._database.vacuum("counters", full=True)


def cache_folder(url: str, tenant: str) -> Path | None:
    """Return where this machine keeps columns of a tenant of a database; None: nobody is at home here."""
    settings = {name: value for name, value in conninfo.conninfo_to_dict(url).items() if name != "password"}
    place = json.dumps([settings, tenant], sort_keys=True).encode()
    cache = os.environ.get("XDG_CACHE_HOME") or ((there := home()) and there / ".cache")
    digest = hashlib.blake2b(place, digest_size=16).hexdigest()
    return Path(cache) / "mindstream" / KEPT_COLUMNS / digest if cache else None


def _newest(rows: Rows, stream: StreamKey) -> tuple[int, int]:
    written, erased = rows.execute(NEWEST, (stream, stream)).fetchone() or (0, 0)
    return written, erased


def _changes(rows: Rows, stream: StreamKey, since: int, after: int, most: int | None) -> Changes:
    written, erased = _newest(rows, stream)
    gone = []
    if erased > since and not after:
        deleted = rows.execute("SELECT id FROM erased WHERE stream = ? AND changed > ?", (stream, since))
        gone = [row[0] for row in deleted]
    found = rows.execute(NEXT, (stream, since, after, None if most is None else most + 1)).fetchall()
    taken, size = 0, 0
    while taken < len(found) and (most is None or (taken < most and size < PORTION_SIZE)):
        size += len(found[taken][TEXT]) + len(found[taken][DATA] or "")
        taken += 1
    left = found[taken - 1][-1] if taken < len(found) else 0
    ahead = 0
    if left and not after:
        ahead = _count(rows, stream, since) - taken
    records = [record_of(row[:-1]) for row in found[:taken]]
    return Changes(records, gone, max(since, written, erased), left, ahead)


def _count(rows: Rows, stream: StreamKey, since: int) -> int:
    """Return how many records of a stream changed since; of all, the segments know it: a count takes a second."""
    held, last = rows.execute(HELD, (stream,)).fetchone() or (0, 0)
    if since or not held:
        sql, after, held = "SELECT count(*) FROM records WHERE stream = ? AND changed > ?", since, 0
    else:
        sql, after = "SELECT count(*) FROM records WHERE stream = ? AND number > ?", last
    row = rows.execute(sql, (stream, after)).fetchone()
    return int(held) + int(row[0] if row else 0)
