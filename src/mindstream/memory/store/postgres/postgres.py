"""The store in a PostgreSQL database; every method keeps what memory/store/store promises (mindstream.conformance)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from mindstream import caches
from mindstream.log.names import StreamKey
from mindstream.memory.store import erasure as carriers
from mindstream.memory.store import queries, registry
from mindstream.memory.store.postgres.connection import Connection, PostgresDatabase, Rows
from mindstream.memory.store.postgres.tables import ACCOUNTS, MIGRATIONS, TABLES
from mindstream.memory.store.record import Record
from mindstream.memory.store.rows import COLUMNS, FIELDS, record_of
from mindstream.memory.store.sql_store import SqlStore
from mindstream.memory.store.store import Changes, Erasure
from mindstream.memory.store.tenant import Tenant
from mindstream.memory.store.writing import next_change

PORTION_SIZE = 50_000
"""A portion ends where it has so many characters, however few records they are."""
NEWEST = (
    "SELECT (SELECT coalesce(max(changed), 0) FROM records WHERE stream = ?),"
    " (SELECT coalesce(max(changed), 0) FROM erased WHERE stream = ?)"
)
NEXT = f"SELECT {COLUMNS}, number FROM records WHERE stream = ? AND changed > ? AND number > ? ORDER BY number LIMIT ?"
TEXT, DATA = FIELDS.index("text"), FIELDS.index("data")


class WalledTenant(Tenant):
    """A tenant whose rows are all that there is to see."""

    def owned(self, column: str) -> str:  # noqa: ARG002
        return "true"  # row-level security asks that of every row, and a name that is made of rows has no tenant


class PostgresStore(SqlStore, AbstractAsyncContextManager["PostgresStore"]):
    """A database that `postgresql://user@host:port/db` names.

    Args:
        tenant: whose streams are seen and written, and no others'; "": those that are no tenant's.

    Raises:
        StorageError: it cannot be reached, or the role passes by row-level security.
    """

    _database: PostgresDatabase

    def __init__(self, url: str, tenant: str = "") -> None:
        self.tenant = WalledTenant(tenant)
        self._database = PostgresDatabase(url, tenant, MIGRATIONS)
        self._typed = self._database.run(registry.typed_keys)

    async def erase(self, stream: StreamKey, what: Sequence[str] | Erasure | None = None) -> int:
        erasure = Erasure(ids=tuple(what)) if isinstance(what, Sequence) else what
        self.tenant.own(stream)
        found = None
        if erasure is not None:
            meant = erasure
            found = await self._database.read(lambda connection: carriers.find(connection, stream, meant))
        erased = await self._database.write(lambda each: carriers.erase(each, stream, found, next_change(each)))
        caches.empty(stream, whole=what is None)
        return erased

    async def version(self) -> int:
        return await self._database.read(queries.last_change)

    async def changes(self, stream: StreamKey, since: int, after: int = 0, most: int | None = None) -> Changes:
        self.tenant.own(stream)
        return await self._database.read(lambda rows: _changes(rows, stream, since, after, most))

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
        await self._database.vacuum(", ".join((*TABLES, *ACCOUNTS)), full=due is not None)
        if due is not None:
            done = "UPDATE counters SET value = 0 WHERE name = 'erased' AND value = ?"
            await self._database.write(lambda rows: rows.execute(done, due))

    async def forget_tenant(self) -> None:
        if self.tenant.name:
            await self._database.write(lambda rows: rows.execute("DELETE FROM counters"))  # row-level security: its own
            await self._database.vacuum("counters", full=True)

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _changes(rows: Rows, stream: StreamKey, since: int, after: int, most: int | None) -> Changes:
    newest = rows.execute(NEWEST, (stream, stream)).fetchone()
    written, erased = newest or (0, 0)
    if since and not after and max(written, erased) <= since:
        return Changes(upto=since)
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
        row = rows.execute("SELECT count(*) FROM records WHERE stream = ? AND changed > ?", (stream, since)).fetchone()
        ahead = (row[0] if row else 0) - taken
    records = [record_of(row[:-1]) for row in found[:taken]]
    return Changes(records, gone, max(since, written, erased), left, ahead)
