"""The store in a SQLite file: the default, nothing to install or start."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from mindstream.errors import StorageError
from mindstream.log.database import FILE, Database, connect
from mindstream.log.erasure import delete_copies, erase_typed, overwrite_where_due
from mindstream.log.files import KEPT_COLUMNS, explain_errors
from mindstream.log.names import StreamKey
from mindstream.memory.store import erasure as carriers
from mindstream.memory.store import portions, queries, registry
from mindstream.memory.store.erasure import Carriers
from mindstream.memory.store.kept.columns_file import outdated
from mindstream.memory.store.record import KINDS, Kind, Record, Vector
from mindstream.memory.store.rows import COLUMNS, FIELDS, record_of
from mindstream.memory.store.sql_store import SqlStore
from mindstream.memory.store.store import Candidates, Changes, Erasure
from mindstream.memory.store.tables import MIGRATIONS
from mindstream.memory.store.tenant import Tenant
from mindstream.memory.store.word_index import in_sqlite
from mindstream.memory.store.word_index.segments import LARGEST, SEARCHED_FROM, SEVERAL
from mindstream.paths import usable
from mindstream.text.dates import DateSpan

SMALL = LARGEST // SEVERAL
TRIES = 5
"""How often in a row a segment is lost, because a record in it was changed meanwhile, before the filling ends."""


class SqliteStore(SqlStore):
    """A data folder with one file, mindstream.db, in it.

    Args:
        tenant: whose streams are seen and written, and no others'; "": those that are no tenant's.
    """

    # The index is named, because SQLite would rather walk through all work that was ever done (index work_once).
    open_work_table = "work INDEXED BY work_open"
    _database: Database

    def __init__(self, folder: str | Path, tenant: str = "") -> None:
        self.folder = usable(folder)
        self.columns_folder = self.folder / KEPT_COLUMNS
        self.tenant = Tenant(tenant)
        self._database = Database(self.folder, MIGRATIONS)
        self._typed = registry.read_typed(self.folder / FILE)
        self._compacting = asyncio.Lock()
        self._moment: int | None = None
        self._read_upto: dict[StreamKey, int] = {}
        """How far streams were read at that moment: until the next commit there is no more."""

    async def _carriers(self, stream: StreamKey, erasure: Erasure) -> Carriers:
        async with self._database.snapshot() as snapshot:
            return await snapshot.read(lambda connection: carriers.find(connection, stream, erasure))

    def _erase_beside(self, stream: StreamKey, found: Carriers) -> None:
        """Take the words out of typed history, and delete copies from before a mending: they hold all words."""
        erase_typed(self.folder, stream, found.is_meant)
        delete_copies(self.folder)

    def subscribe(self, stream: StreamKey | None, told: Callable[[], None]) -> AbstractContextManager[None]:  # noqa: ARG002
        return contextlib.nullcontext()  # a file tells nobody: it is cheap to look

    async def version(self) -> int:
        return await self._database.glance(queries.last_change)

    async def changes(self, stream: StreamKey, since: int, after: int = 0, most: int | None = None) -> Changes:
        self.tenant.own(stream)
        moment = self._database.moment()  # before it is read: what comes meanwhile is asked for again
        if moment is None or moment != self._moment:
            self._moment, self._read_upto = moment, {}
        elif not after and self._read_upto.get(stream) == since:
            return Changes(upto=since)

        def look(connection: sqlite3.Connection) -> Changes:
            found = portions.read_portion(connection, FIELDS, stream, since, after, most)
            return Changes([record_of(row) for row in found.rows], found.gone, found.upto, found.left, found.ahead)

        is_short = since > 0 and not after and most is not None  # what came since the last time, a portion at most
        changes = await (self._database.glance(look, together=True) if is_short else self._database.read(look))
        if not since and changes.ahead >= SEARCHED_FROM:
            self._index(stream)
        if moment is not None and moment == self._moment and not after and not changes.left:
            self._read_upto[stream] = changes.upto
        return changes

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

        def look(connection: sqlite3.Connection) -> Candidates:
            reader = in_sqlite.SqliteIndexReader(connection, words, n)
            return self._finder.find(reader, stream, vector, words, n, wanted, spans)

        found = await self._database.read(look)
        self._index(stream)  # now, that it is not in the way
        return found

    async def _fill(self, stream: StreamKey) -> None:
        """Fill the index, a segment a transaction, the first ones small: a process that ends soon fills something."""
        sizes, lost = itertools.chain([SMALL] * 2, itertools.repeat(LARGEST)), 0
        with contextlib.suppress(StorageError):  # what cannot be filled now is filled the next time
            while lost < TRIES and (segment := await self._built(stream, next(sizes))):
                kept = await self._database.write(partial(in_sqlite.put, stream=stream, built=segment))
                lost = 0 if kept else lost + 1

    async def _built(self, stream: StreamKey, most: int) -> in_sqlite.Built | None:
        pace = in_sqlite.Pace()

        def build() -> in_sqlite.Built | None:
            with explain_errors(self._database.path), contextlib.closing(connect(self._database.path)) as connection:
                return in_sqlite.build(connection, stream, most, pace.heed)

        building = asyncio.get_running_loop().run_in_executor(self._filler, build)
        try:
            return await asyncio.shield(building)
        finally:
            pace.broken_off.set()
            await asyncio.gather(building, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def walk(self, stream: StreamKey) -> AsyncIterator[tuple[int, AsyncIterator[Record]]]:
        self.tenant.own(stream)
        async with self._database.snapshot() as snapshot:

            def begin(connection: sqlite3.Connection) -> tuple[int, sqlite3.Cursor]:
                (count,) = connection.execute("SELECT count(*) FROM records WHERE stream = ?", (stream,)).fetchone()
                sql = f"SELECT {COLUMNS} FROM records WHERE +stream = ? ORDER BY number"  # "+": as they lie in the file
                return count, snapshot.held(connection.execute(sql, (stream,)))

            count, rows = await snapshot.read(begin)
            yield count, queries.walk_on(snapshot, rows)

    async def compact(self) -> None:
        async with self._compacting:  # two at once would stop each other; the later one finds it done
            stale = partial(outdated, self.columns_folder)
            if not await asyncio.to_thread(overwrite_where_due, self.folder, outdated=stale):
                await self._database.compact()
