"""The store in a PostgreSQL database; it implements the protocols in memory/store/store."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from psycopg import conninfo

from mindstream.clock import Moment, SharedClock
from mindstream.errors import StorageError
from mindstream.identifiers import EVERYONE, StreamKey, Tenant
from mindstream.location import Location
from mindstream.log.erasure import erase_typed
from mindstream.log.files import KEPT_COLUMNS
from mindstream.log.work import Taken, take
from mindstream.memory.store import queries, registry
from mindstream.memory.store.erasure import Carriers
from mindstream.memory.store.kept_columns import outdated
from mindstream.memory.store.postgres.connection import AT_ONCE, PostgresDatabase
from mindstream.memory.store.postgres.index import Indexing, PostgresIndexReader
from mindstream.memory.store.postgres.pool import REST_S, Rows
from mindstream.memory.store.postgres.tables import ACCOUNTS, MIGRATIONS, TABLES
from mindstream.memory.store.queries import COLUMNS
from mindstream.memory.store.sql_store import SqlStore, last_change
from mindstream.memory.store.store import Changes
from mindstream.paths import home

SKIPPING = "FOR UPDATE OF work SKIP LOCKED"
NEXT = f"SELECT {COLUMNS}, number FROM records WHERE stream = ? AND changed > ? AND number > ? ORDER BY number LIMIT ?"
COMPACTED = (
    "UPDATE counters SET value = 0 WHERE name IN ('erased', 'unindexed')"
    " AND EXISTS (SELECT 1 FROM counters WHERE name = 'erased' AND value = ?)"
)
"""Resets the counters, unless something was erased while the tables were rewritten."""
HELD = "SELECT coalesce(sum(count), 0)::int8, coalesce(max(last), 0) FROM segments WHERE stream = ? AND ready"
CANCELS_S = 0.1
"""When the task that fills an index is to end, it is cancelled again at this interval, in seconds, until it ends.

A cancellation between two statements of the task has no effect.
"""


class IsolatedTenant(Tenant):
    """A tenant in a database whose row-level security hides the rows of other tenants."""

    def owned(self, column: str) -> str:  # noqa: ARG002
        return "1 = 1" if self.name == EVERYONE else "tenant = current_setting('mindstream.tenant')"


class PostgresStore(SqlStore):
    """The store of a database with a URL postgresql://user@host:port/db.

    Args:
        tenant: the tenant whose streams are visible; "": streams without a tenant.

    Raises:
        StorageError: the database cannot be reached, or the role bypasses row-level security.
    """

    _database: PostgresDatabase

    def __init__(self, url: str, tenant: str = "") -> None:
        isolated = IsolatedTenant(tenant)
        self._place = Location.of(url)
        database = PostgresDatabase(url, tenant, MIGRATIONS)
        try:  # only one attempt: this may block an event loop, so it must not wait for a server that is down
            typed = database.run(registry.typed_keys, AT_ONCE, REST_S)
        except BaseException:
            database.abandon()
            raise
        super().__init__(isolated, database, typed, cache_folder(url, tenant))

    def _reader(self, connection: Rows, words: Sequence[str], n: int) -> PostgresIndexReader:  # noqa: ARG002
        return PostgresIndexReader(connection)

    async def _fill(self, stream: StreamKey) -> None:
        indexing = Indexing(self._database, stream)
        running = asyncio.get_running_loop().run_in_executor(self._filler, indexing.run)
        try:
            with contextlib.suppress(StorageError):  # after an error, the next call continues the filling
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
        """A clock that shows the server's time, which is the same for all its clients."""
        return self._database.clock

    @contextlib.contextmanager
    def subscribe(self, stream: StreamKey | None, told: Callable[[], None]) -> Iterator[None]:
        loop = asyncio.get_running_loop()

        def call() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(told)

        with self._database.subscribed(stream, call):
            yield

    async def take_work(self, owner: str, now: Moment, lease: Moment, most: int, *, answers: bool) -> list[Taken]:
        """Claim work without waiting for commits: skip rows that another transaction has locked.

        This is safe, because a run takes the tenant's lock when it claims its work, and each commit that ends work
        checks the work's owner.
        """
        owned = self.tenant.owned("mind")
        return await asyncio.to_thread(
            self._database.change,
            lambda each: take(each, owner, now, lease, most, answers=answers, among=owned, lock=SKIPPING),
        )

    async def version(self) -> int:
        if self.tenant.name == EVERYONE:
            return await self.last_seq()
        return await self._database.glance(last_change)

    async def changes(self, stream: StreamKey, since: int, after: int = 0, most: int | None = None) -> Changes:
        self.tenant.own(stream)

        def read() -> Changes:
            if since and not after:  # usually nothing has changed: check this first, by one statement
                newest = self._database.run(lambda rows: queries.newest_changes(rows, stream), AT_ONCE)
                if max(newest) <= since:
                    return Changes(upto=since)
            return self._database.run(lambda rows: self._read_changes(rows, stream, since, after, most))

        return await asyncio.to_thread(read)

    def _changed(
        self, connection: Rows, stream: StreamKey, since: int, after: int, most: int | None
    ) -> tuple[Sequence[tuple[Any, ...]], int]:
        found = connection.execute(NEXT, (stream, since, after, None if most is None else most + 1)).fetchall()
        if most is None:
            return found, 0
        return queries.cut_portion(found[:most], found[most - 1][-1] if len(found) > most else 0)

    def _count_changed(self, connection: Rows, stream: StreamKey, since: int) -> int:
        """Return the number of a stream's records that were written or changed after the change `since`.

        For a whole stream (`since` 0), add up the stored numbers of records per segment, and count only the records
        after the last segment. Counting all records would take a second.
        """
        held, last = connection.execute(HELD, (stream,)).fetchone() or (0, 0)
        column, after = ("changed", since) if since or not held else ("number", last)
        sql = f"SELECT count(*) FROM records WHERE stream = ? AND {column} > ?"
        row = connection.execute(sql, (stream, after)).fetchone()
        return (int(held) if column == "number" else 0) + int(row[0] if row else 0)

    async def compact(self) -> None:
        rows = await self._rows("SELECT name, value FROM counters WHERE name IN ('erased', 'unindexed') AND value > 0")
        due = dict(rows)
        is_due = "erased" in due
        others = [table for table in (*TABLES, *ACCOUNTS) if table != "nearness"]
        await self._database.vacuum(", ".join(others), full=is_due)
        await self._database.vacuum("nearness", full=is_due and "unindexed" in due)  # full: rebuilds the HNSW index
        if is_due:
            for path in await self.read(lambda each: outdated(self.columns_folder, each)):
                path.unlink(missing_ok=True)
            await self.write(lambda each: each.execute(COMPACTED, (due["erased"],)))

    async def forget_tenant(self) -> None:
        if self.tenant.name:
            await self.write(lambda rows: rows.execute("DELETE FROM counters"))  # row-level security: only the tenant's
            await self._database.vacuum("counters", full=True)

    async def is_forgotten(self) -> bool:
        return not await self._rows("SELECT 1 FROM counters LIMIT 1")


def cache_folder(url: str, tenant: str) -> Path | None:
    """Return the folder in which this machine keeps columns of a tenant of a database; None: no home folder is
    known."""
    settings = {name: value for name, value in conninfo.conninfo_to_dict(url).items() if name != "password"}
    place = json.dumps([settings, tenant], sort_keys=True).encode()
    cache = os.environ.get("XDG_CACHE_HOME") or ((there := home()) and there / ".cache")
    digest = hashlib.blake2b(place, digest_size=16).hexdigest()
    return Path(cache) / "mindstream" / KEPT_COLUMNS / digest if cache else None
