"""Methods of the store that are the same for SQLite and PostgreSQL.

`ErasureWatch` applies erasures by other processes to this process within LOOK_S seconds: to its caches, and to open
minds. A PostgreSQL store announces erasures at once (`subscribe`); other stores are polled.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar
from weakref import WeakSet

from mindstream import caches
from mindstream.clock import Moment
from mindstream.errors import StorageError
from mindstream.identifiers import StreamKey, StreamName, Tenant, tenant_of
from mindstream.log import audit, erasures, work
from mindstream.log.audit import AuditRow, Deed
from mindstream.log.database import Snapshot
from mindstream.log.erasures import ERASURES, Erased, digest_of
from mindstream.log.events import Logged
from mindstream.log.sql import Sql
from mindstream.memory.store import checkpoints, lineage, queries, registry
from mindstream.memory.store import erasure as carriers
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.erasure import Carriers
from mindstream.memory.store.kept_columns import delete_erased, delete_kept, kept_beside
from mindstream.memory.store.queries import COLUMNS, HOLDS, next_change, record_of
from mindstream.memory.store.record import (
    KINDS,
    MAX_VERSION,
    Kind,
    Record,
    Vector,
    checked_commit,
    normalised,
    same_words_once,
)
from mindstream.memory.store.registry import TypedKeys
from mindstream.memory.store.store import AFTER, Candidates, Changes, Closure, Commit, Erasure, Kept, Store
from mindstream.memory.store.word_index.candidates import Finder, IndexReader
from mindstream.memory.store.word_index.segments import SMALLEST
from mindstream.text.dates import DateSpan

T = TypeVar("T")
MOST = 2**62
ANY = ("",)
"""Value of the argument `about` of a write whose streams are unknown: subscribers of the whole tenant are notified."""
FEW = 20
"""Maximum number of rows that are read by `glance`, if an index finds them. For SQLite, `glance` reads on the event
loop's thread, which takes less time than a change to another thread.
"""
MAX_IN_PLACE = 256
"""Maximum number of records that an erasure removes from columns in memory; for more, the columns are rebuilt."""
NEWEST = 20
"""Number of the newest records of each kind whose embedders determine the stream's embedder."""
WALKED = 256
"""Number of records that `walk` reads at a time."""
OPEN = "\n"
"""Used in notifications instead of the name of a stream. It means that there may be work that any process can claim. No
stream can have this name."""


class SqlDatabase(Protocol):
    """Runs functions that get a database connection."""

    async def write(self, change: Callable[[Any], T], about: Sequence[str] = ()) -> T:
        """Run `change` in a transaction and return its result once it is durable; `about`: the affected streams."""

    async def read(self, look: Callable[[Any], T], *, once: bool = False) -> T:
        """Run `look` on the committed data of one moment. `once`: `look` executes a single statement, which needs no
        transaction to see one moment."""

    async def glance(self, look: Callable[[Any], T]) -> T:
        """Read a few rows by an index; each statement of `look` sees what is committed when it runs."""

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        """Open a connection that sees the data of one moment until the block ends."""

    async def close(self) -> None:
        """Complete all requested reads and writes, then close the connections."""


class BackgroundWork(Protocol):
    """An object that works in the background for a store, such as an index cache."""

    async def lose(self, stream: StreamKey, gone: Sequence[Record], changed: Sequence[tuple[Record, Record]]) -> bool:
        """Remove erased records from this process's caches, and update reworded records. Return whether this succeeded.

        If it did not, the caller must drop the whole stream from the caches (`caches.empty`).

        Args:
            changed: the old and the new form of each reworded record.
        """

    async def close(self) -> None:
        """Cancel the background work and discard its unfinished results."""


class SqlStore(Store):
    """The methods of a store that are the same in every SQL database.

    Attributes:
        on_commit: called with the log rows of each commit through this store, once the rows are durable; None: nothing
            is called.
        columns_folder: the folder on this machine with the arrays (`Columns`) by which long streams are ranked; None:
            these arrays are not stored.
        at_work: objects whose background work must end before the store is closed.
    """

    open_work_table: ClassVar[str] = "work"
    of_stream: ClassVar[str] = "stream = ?"
    """SQL condition by which `walk` selects the records of a stream."""
    on_commit: Callable[[Sequence[Logged]], None] | None = None

    def __init__(self, tenant: Tenant, database: SqlDatabase, typed: TypedKeys, columns_folder: Path | None) -> None:
        self.tenant, self.columns_folder = tenant, columns_folder
        self._database = database
        self._typed = typed
        self.at_work: WeakSet[BackgroundWork] = WeakSet()
        self._filler = ThreadPoolExecutor(1, "index")  # a thread of its own, because filling an index takes minutes
        self._indexing: dict[StreamKey, asyncio.Task[None]] = {}
        self._unindexed: Counter[StreamKey] = Counter()  # records written since a stream's index was last filled
        self._finder = Finder()
        self._salt = ""

    async def _fill(self, stream: StreamKey) -> None:
        """Fill the index of a stream; after an error, the next call continues."""
        raise NotImplementedError

    def _reader(self, connection: Any, words: Sequence[str], n: int) -> IndexReader:
        """Return a reader of the index."""
        raise NotImplementedError

    def _changed(
        self, connection: Any, stream: StreamKey, since: int, after: int, most: int | None
    ) -> tuple[Sequence[tuple[Any, ...]], int]:
        """Return rows of records that were changed after `since`, and the `after` for the next call (0: no more rows).

        Each row has the values of COLUMNS, then the record's number.
        """
        raise NotImplementedError

    def _count_changed(self, connection: Any, stream: StreamKey, since: int) -> int:
        raise NotImplementedError

    def _note_own(self, number: int, commit: Commit, logged: Sequence[Logged]) -> None:
        """Take note of a commit through this store, once the commit is durable.

        `number`: number of the call of `commit` among the writes of all processes. All commits of a call have the same
        number.
        """

    def _erase_beside(self, stream: StreamKey, found: Carriers) -> None:
        """Remove the words of erased records from files next to the database."""
        raise NotImplementedError

    async def _rows(self, sql: str, values: Sequence[Any] = (), *, few: bool = False) -> list[Any]:
        """Return the rows of one statement; `few`: the statement reads only a few rows, by an index."""

        def look(connection: Any) -> list[Any]:
            return list(connection.execute(sql, values).fetchall())

        return await (self._database.glance(look) if few else self._database.read(look, once=True))

    async def _first_column(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return [row[0] for row in await self._rows(sql, values)]

    def _index(self, stream: StreamKey) -> asyncio.Task[None]:
        """Return the task that fills the index of a stream in the background; start it if it is not running."""
        if stream not in self._indexing:
            self._unindexed.pop(stream, None)
            self._indexing[stream] = asyncio.ensure_future(self._fill(stream))
            self._indexing[stream].add_done_callback(lambda _: self._indexing.pop(stream, None))
        return self._indexing[stream]

    async def index(self, stream: StreamKey) -> None:
        """Fill the index of a stream with all committed records; short streams have no index."""
        if running := self._indexing.get(stream):
            await asyncio.wait([running])
        await asyncio.wait([self._index(stream)])

    async def read(self, look: Callable[[Any], T]) -> T:
        """Call a function with a connection (see log/sql), and return its result. The function sees the committed data
        of one moment."""
        return await self._database.read(look)

    async def write(self, change: Callable[[Any], T], about: Sequence[str] = ()) -> T:
        """Call a function with a connection, in a transaction; return its result. `about`: the affected streams."""
        return await self._database.write(change, about)

    def key(self, name: StreamName) -> StreamKey:
        name = replace(name, tenant=name.tenant or self.tenant.name)
        self.tenant.own(name.key)
        found = self._typed.get((name.tenant, name.kind, name.normal), [])
        return next((key for key in (name.typed_key, name.key) if key in found), found[0] if found else name.key)

    async def commit(self, *commits: Commit) -> list[Logged]:
        checked = [checked_commit(commit) for commit in commits if self.tenant.own(commit.mind)]
        about = [one.mind for one in checked] + [OPEN for one in checked if _opens_work(one)]

        written, number = await self.write(partial(queries.write, commits=checked), about)
        logged = [row for rows in written for row in rows]
        if self.on_commit is not None:
            self.on_commit(logged)
        for one, rows in zip(checked, written, strict=True):
            self._note_own(number, one, rows)
            if records := sum(len(entry.records) for entry in one.entries):
                self._unindexed[one.mind] += records
                if self._unindexed[one.mind] >= SMALLEST:
                    self._index(one.mind)
        return logged

    async def closure(
        self, stream: StreamKey, ids: Sequence[str], *, all_slots: bool = False, slots_below: Sequence[str] = ()
    ) -> Closure:
        owned, key = self.tenant.owned("stream"), self.tenant.own(stream)
        return await self.read(
            lambda each: lineage.find_closure(each, key, ids, owned, all_slots=all_slots, slots_below=slots_below)
        )

    async def answers(self, stream: StreamKey, after: int, ids: Sequence[str] | None = None) -> list[str]:
        key = self.tenant.own(stream)
        return await self.read(lambda each: lineage.find_answers(each, key, after, ids))

    async def unembedded(self, stream: StreamKey) -> list[str]:
        sql = "SELECT id FROM records WHERE stream = ? AND embedder = '' ORDER BY number"
        return await self._first_column(sql, (self.tenant.own(stream),))

    async def owners(self, ids: Sequence[str]) -> dict[str, StreamKey]:
        sql = f"SELECT id, stream FROM records WHERE id IN ({{}}) AND {self.tenant.owned('stream')}"
        return await self.read(lambda connection: dict(queries.among(connection, sql, ids))) if ids else {}

    async def recorded_embedder(self, stream: StreamKey) -> str:
        self.tenant.own(stream)
        newest = "SELECT embedder FROM records WHERE stream = ? AND kind = ? ORDER BY number DESC LIMIT ?"
        some = " UNION ALL ".join(f"SELECT * FROM ({newest}) AS kind_{n}" for n in range(len(KINDS)))
        sql = (
            f"SELECT embedder FROM ({some}) AS newest WHERE embedder <> ''"
            " GROUP BY embedder ORDER BY count(*) DESC, embedder LIMIT 1"
        )
        rows = await self._rows(sql, [value for kind in KINDS for value in (stream, kind, NEWEST)], few=True)
        return rows[0][0] if rows else ""

    async def records(self, stream: StreamKey, ids: Sequence[str]) -> list[Record]:
        self.tenant.own(stream)
        if not ids:
            return []
        sql = (
            # no condition on the stream: with it, the planner would scan the whole stream
            f"SELECT {COLUMNS} FROM records WHERE id IN ({{}})"
        )

        def look(connection: Sql) -> list[tuple[Any, ...]]:
            return list(queries.among(connection, sql, ids))

        if len(ids) <= FEW:
            rows = await self._database.glance(look)
        else:
            rows = await self._database.read(look, once=len(ids) <= queries.MAX_VALUES)
        found = {row[0]: record_of(row) for row in rows if row[1] == stream}
        return [found[id_] for id_ in ids if id_ in found]

    async def latest(
        self,
        stream: StreamKey,
        kinds: Sequence[Kind] | None = None,
        n: int = 1,
        *,
        now: Moment,
        episode: str | None = None,
        slot: str | None = None,
    ) -> list[Record]:
        conditions: dict[str, Sequence[Any]] = {"stream = ?": (self.tenant.own(stream),)}
        if slot is None:
            conditions[HOLDS] = (now,)
        else:  # the newest version of a slot is the current one, whatever its times are: versions are written in order
            conditions |= {f"version BETWEEN 1 AND {MAX_VERSION}": (), "slot = ?": (slot,)}
        if episode is not None:
            conditions["episode = ?"] = (episode,)
        if kinds is not None:
            conditions[f"kind IN ({queries.marks(kinds)})"] = kinds
        order = "number" if slot is None else "version"  # both have an index
        sql = f"SELECT {COLUMNS} FROM records WHERE {' AND '.join(conditions)} ORDER BY {order} DESC LIMIT ?"
        values = [value for some in conditions.values() for value in some]
        rows = await self._rows(sql, [*values, n if slot is None else min(n, 1)], few=slot is not None)
        return [record_of(row) for row in reversed(rows)]

    async def find_same(self, stream: StreamKey, kind: Kind, texts: Sequence[str], *, now: Moment) -> dict[str, Record]:
        wanted = {number: normalised(text) for text in texts for number in same_words_once(text)}
        sql = f"SELECT {COLUMNS} FROM records WHERE same IN ({{}}) AND stream = ? AND kind = ? AND {HOLDS}"
        values = (self.tenant.own(stream), kind, now)

        def look(connection: Sql) -> dict[str, Record]:
            rows = queries.among(connection, f"{sql} ORDER BY number DESC", list(wanted), *values)
            found = {normalised(record.text): record for record in map(record_of, rows)}
            return {text: found[text] for text in wanted.values() if text in found}

        return await self._database.read(look, once=len(wanted) <= queries.MAX_VALUES) if wanted else {}

    def _read_changes(self, connection: Any, stream: StreamKey, since: int, after: int, most: int | None) -> Changes:
        written, erased = queries.newest_changes(connection, stream)
        if since and not after and max(written, erased) <= since:
            return Changes(upto=since)
        gone: list[str] = []
        if erased > since and not after:
            sql = "SELECT id FROM erased WHERE stream = ? AND changed > ?"
            gone = [row[0] for row in connection.execute(sql, (stream, since))]
        rows, left = self._changed(connection, stream, since, after, most)
        ahead = self._count_changed(connection, stream, since) - len(rows) if left and not after else 0
        return Changes([record_of(row[:-1]) for row in rows], gone, max(since, written, erased), left, ahead)

    @contextlib.asynccontextmanager
    async def walk(self, stream: StreamKey) -> AsyncIterator[tuple[int, AsyncIterator[Record]]]:
        self.tenant.own(stream)
        async with self._database.snapshot() as snapshot:
            sql = "SELECT count(*) FROM records WHERE stream = ?"
            count = await snapshot.read(lambda connection: int(connection.execute(sql, (stream,)).fetchone()[0]))
            yield count, self._walk(snapshot, stream)

    async def _walk(self, snapshot: Snapshot, stream: StreamKey) -> AsyncIterator[Record]:
        sql = f"SELECT {COLUMNS}, number FROM records WHERE {self.of_stream} AND number > ? ORDER BY number LIMIT ?"

        def portion(after: int, connection: Any) -> list[Any]:
            return list(connection.execute(sql, (stream, after, WALKED)))

        after = 0
        while rows := await snapshot.read(partial(portion, after)):
            for row in rows:
                yield record_of(row[:-1])
            after = rows[-1][-1]

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

        def look(connection: Any) -> Candidates:
            return self._finder.find(self._reader(connection, words, n), stream, vector, words, n, wanted, spans)

        found = await self.read(look)
        self._index(stream)  # only after the search, which it would slow down
        return found

    async def events(
        self, mind: StreamKey | None = None, after: int = 0, kinds: Sequence[str] | None = None, limit: int = 1000
    ) -> list[Logged]:
        where: list[str] = ["seq > ?", self.tenant.owned("mind") if mind is None else "mind = ?"]
        values: list[Any] = [after] if mind is None else [after, self.tenant.own(mind)]
        if kinds is not None:
            where.append(f"kind IN ({queries.marks(kinds)})")
            values.extend(kinds)
        select = f"WHERE {' AND '.join(where)} ORDER BY seq LIMIT ?"
        read = self._database.glance if limit <= FEW else partial(self._database.read, once=True)
        return await read(lambda connection: queries.read_log(connection, select, [*values, limit], kinds))

    async def last(self, mind: StreamKey, kind: str) -> Logged | None:
        self.tenant.own(mind)

        def look(connection: Sql) -> Logged | None:
            for limit in (1, MOST):  # the newest row is nearly always readable
                newest = "WHERE mind = ? AND kind = ? ORDER BY seq DESC LIMIT ?"
                if found := queries.read_log(connection, newest, [mind, kind, limit], [kind]):
                    return found[0]
            return None

        return await self._database.glance(look)

    async def count(self, mind: StreamKey, kind: str) -> int:
        sql = "SELECT count(*) FROM log WHERE mind = ? AND kind = ?"
        return int((await self._first_column(sql, (self.tenant.own(mind), kind)))[0])

    async def checkpoint(self, mind: StreamKey, name: str) -> Checkpoint | None:
        return checkpoints.read(await self._rows(checkpoints.QUERY, (self.tenant.own(mind), name)), name)

    async def taken_by(self, mind: StreamKey, unique: str) -> int | None:
        rows = await self._rows(registry.TAKEN, (self.tenant.own(mind), unique), few=True)
        return int(rows[0][0]) if rows else None

    async def erase(self, stream: StreamKey, what: Sequence[str] | Erasure | None = None) -> int:
        erasure = Erasure(ids=tuple(what)) if isinstance(what, Sequence) else what
        self.tenant.own(stream)
        found = None if erasure is None else await self._carriers(stream, erasure)
        before = await self._as_they_are(stream, found)
        if found is not None and isinstance(what, Erasure):
            await asyncio.to_thread(self._erase_beside, stream, found)
        deed, reading = erasure and erasure.deed, erasures.READING.get()

        def write(rows: Sql) -> tuple[int, int, bool, str]:
            is_ours = reading is not None and erasures.lost_since(rows, stream, reading.upto) is None
            last = erasures.last(rows)
            count = carriers.erase(rows, stream, found, next_change(rows))
            if erasure and deed:
                audit.write(rows, erasure.at, replace(deed, counts={"records": count, **deed.counts}))
            upto = erasures.last(rows)
            return count, upto, is_ours, erasures.digest_for(rows, stream) if upto > last else ""

        erased, upto, is_ours, digest = await self.write(write, [stream, erasures.ERASURES])
        if reading is not None and is_ours:  # the erasure that a task makes itself must not block its later commits
            reading.upto = upto
        if digest and erasure is not None:
            caches.note_erasure(digest, upto)
        await asyncio.to_thread(delete_kept, self.columns_folder, stream)
        done = await self._remove_in_place(stream, found, before) if found is not None else []
        caches.empty(stream, whole=what is None, without=done)
        return erased

    async def _carriers(self, stream: StreamKey, erasure: Erasure) -> Carriers:
        """Find the rows with words of the erased records. This is done before the transaction of the erasure, because
        that transaction blocks all writers."""
        async with self._database.snapshot() as snapshot:
            return await snapshot.read(lambda connection: carriers.find(connection, stream, erasure))

    async def _as_they_are(self, stream: StreamKey, found: Carriers | None) -> dict[str, Record]:
        """Return the current state of the records that an erasure will delete or change; {} if more than
        MAX_IN_PLACE."""
        ids = {*found.ids, *found.records, *found.rewritten} if found else set()
        return {each.id: each for each in await self.records(stream, sorted(ids))} if len(ids) <= MAX_IN_PLACE else {}

    async def _remove_in_place(
        self, stream: StreamKey, found: Carriers, before: Mapping[str, Record]
    ) -> list[BackgroundWork]:
        """Remove erased records from the columns that objects of `at_work` hold; return the objects that could do so.

        The result is [] if the erasure is too large, or if a record was written meanwhile.
        """
        touched = {*found.records, *found.rewritten} - found.ids
        if not before or not touched <= before.keys():  # too many records, or one was written after `before` was read
            return []
        after = await self.records(stream, sorted(touched))
        gone = [before[id_] for id_ in found.ids if id_ in before]
        changed = [(before[each.id], each) for each in after]
        return [each for each in list(self.at_work) if await each.lose(stream, gone, changed)]

    async def streams(self) -> list[StreamKey]:
        sql = f"SELECT DISTINCT stream FROM records WHERE {self.tenant.owned('stream')} ORDER BY stream"
        return await self._first_column(sql)

    async def minds(self) -> list[StreamKey]:
        """Return the streams that have rows in the log."""
        sql = (  # steps from one name to the next: one index search per name instead of one read per row
            "WITH RECURSIVE found(mind) AS (SELECT min(mind) FROM log UNION ALL"
            " SELECT (SELECT min(mind) FROM log WHERE mind > found.mind) FROM found WHERE found.mind IS NOT NULL)"
            " SELECT mind FROM found WHERE mind IS NOT NULL ORDER BY mind"
        )
        return [mind for mind in await self._first_column(sql) if tenant_of(mind) == self.tenant.name]

    async def streams_with_work(self) -> list[StreamKey]:
        """Return the streams that have unfinished work."""
        sql = f"SELECT DISTINCT mind FROM work WHERE done IS NULL AND {self.tenant.owned('mind')} ORDER BY mind"
        return await self._first_column(sql)

    async def open_work(self, *minds: StreamKey) -> list[work.Work]:
        asked = ", ".join("?" * len(minds))
        sql = f"SELECT {work.COLUMNS} FROM {self.open_work_table} WHERE mind IN ({asked}) AND done IS NULL ORDER BY id"
        return [work.read(row) for row in await self._rows(sql, tuple(map(self.tenant.own, minds)), few=True)]

    async def claim(
        self, mind: StreamKey, slot: str, owner: str, now: Moment, lease: Moment, before: int | None = None
    ) -> list[work.Work]:
        key = self.tenant.own(mind)
        return await self.write(lambda each: work.claim(each, key, slot, owner, now, lease, before))

    async def renew(self, work_ids: Sequence[int], owner: str, lease: Moment) -> None:
        owned = self.tenant.owned("mind")
        await self.write(lambda each: work.renew(each, work_ids, owner, lease, owned))

    async def give_up(self, owner: str) -> None:
        owned = self.tenant.owned("mind")
        await self.write(lambda each: work.give_up(each, owner, owned), [*ANY, OPEN])

    async def release_work(self, mind: StreamKey, cause: int, owner: str, ended: Sequence[str] = ()) -> None:
        key = self.tenant.own(mind)
        await self.write(lambda each: work.release_work(each, key, cause, owner, ended), [key, OPEN])

    async def open_to_anybody(self, now: Moment, *, answers: bool) -> list[work.Work]:
        """Return the work that any process may claim (see log/work), of all minds of this store's tenant.

        Args:
            answers: return answers; False: return work of reasoners.
        """
        owned = self.tenant.owned("mind")
        return await self._database.read(
            lambda each: work.find_open(each, now, answers=answers, among=owned), once=True
        )

    async def take_work(self, owner: str, now: Moment, lease: Moment, most: int, *, answers: bool) -> list[work.Taken]:
        """Claim work that any process may claim, of at most `most` minds. The work of each mind gets an owner of its
        own, whose name begins with `owner`."""
        owned = self.tenant.owned("mind")
        return await self.write(lambda each: work.take(each, owner, now, lease, most, answers=answers, among=owned))

    async def last_seq(self) -> int:
        """Return the seq of the newest row of the tenant's log; 0 if the log is empty."""
        sql = f"SELECT coalesce(max(seq), 0) FROM log WHERE {self.tenant.owned('mind')}"
        return int((await self._rows(sql, few=True))[0][0])

    async def next_row(self, after: int, kinds: Sequence[str]) -> Logged | None:
        """Return the tenant's first log row of these kinds after a seq; None if there is none yet.

        A row that cannot be read has the event `Unknown`.
        """
        where = (
            f"WHERE seq > ? AND {self.tenant.owned('mind')} AND kind IN ({queries.marks(kinds)}) ORDER BY seq LIMIT 1"
        )
        rows = await self._database.read(
            lambda connection: queries.read_log(connection, where, [after, *kinds], None), once=True
        )
        return rows[0] if rows else None

    async def kept(self, stream: StreamKey | None = None, prefix: str = "") -> list[Kept]:
        own = self.tenant.owned("stream") if stream is None else "stream = ?"
        values = [] if stream is None else [self.tenant.own(stream)]
        sql = f"SELECT stream, name, at, value FROM kept WHERE {own} AND name >= ? AND name < ? ORDER BY at, name"
        return [Kept(*row) for row in await self._rows(sql, (*values, prefix, prefix + AFTER))]

    async def keep(
        self,
        stream: StreamKey,
        name: str,
        at: Moment,
        change: Callable[[str | None], str | None],
        words_read: int | None = None,
    ) -> str | None:
        self.tenant.own(stream)

        def write(connection: Sql) -> str | None:
            erasures.check(connection, stream, None, words_read)
            row = connection.execute("SELECT value FROM kept WHERE stream = ? AND name = ?", (stream, name)).fetchone()
            before = None if row is None else str(row[0])
            if (value := change(before)) is None:
                connection.execute("DELETE FROM kept WHERE stream = ? AND name = ?", (stream, name))
            elif value != before:
                sql = (
                    "INSERT INTO kept (stream, name, at, value) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (stream, name) DO UPDATE SET at = excluded.at, value = excluded.value"
                )
                connection.execute(sql, (stream, name, at, value))
            return before

        return await self.write(write)

    async def drop_kept(self, stream: StreamKey, prefix: str, before: Moment) -> None:
        self.tenant.own(stream)
        sql = "DELETE FROM kept WHERE stream = ? AND name >= ? AND name < ? AND at < ?"
        await self.write(lambda connection: connection.execute(sql, (stream, prefix, prefix + AFTER, before)))

    async def last_erasure(self) -> int:
        return await self._database.glance(erasures.last)

    async def erased_since(self, number: int) -> tuple[str, list[Erased]]:
        return await self._database.glance(lambda connection: erasures.after(connection, number))

    async def digest(self, text: str) -> str:
        """Return a keyed digest of a text. The key is made at the first call and stored in the database: without it,
        the text cannot be guessed."""
        if not self._salt:
            self._salt = await self._database.glance(erasures.salt_of) or await self.write(erasures.made_salt)
        return erasures.digest_of(self._salt, text)

    async def lost_since(self, stream: StreamKey, number: int) -> bool | None:
        self.tenant.own(stream)
        return await self._database.glance(lambda connection: erasures.lost_since(connection, stream, number))

    async def note(self, at: Moment, deed: Deed) -> None:
        await self.write(lambda connection: audit.write(connection, at, deed))

    async def audit(self, about: str = "", tenant: str = "", limit: int = 1000) -> list[AuditRow]:
        if self.tenant.name:
            return []
        return await self.read(lambda connection: audit.read(connection, about, tenant, limit))

    async def forget_tenant(self) -> None:
        """Delete the counters of this store's tenant. Call this last, after all other data of the tenant is deleted.

        A store that has no counters of its own for each tenant does nothing.
        """

    async def is_forgotten(self) -> bool:
        """Return whether no counters of this store's tenant exist (see `forget_tenant`).

        A store that has no counters of its own for each tenant returns True.
        """
        return True

    async def close(self) -> None:
        fillings = [*self._indexing.values()]
        for filling in fillings:
            filling.cancel()
        await asyncio.gather(*fillings, return_exceptions=True)
        for each in list(self.at_work):
            await each.close()
        await self._database.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def last_change(connection: Sql) -> int:
    """Return the number of the last commit of any process; -1 if the counter is lost, which the next commit
    restores."""
    row = connection.execute("SELECT CAST(value AS INTEGER) FROM counters WHERE name = 'changed'").fetchone()
    return int(row[0]) if row else -1


def _opens_work(commit: Commit) -> bool:
    return commit.put_back is not None or (commit.wake is not None and commit.wake.lease <= commit.at)


LOOK_S = 1.0
"""Poll interval for erasures by other processes, in seconds: the maximum time until this process drops the erased data.
If a mind is running a step, that step is finished first.
"""


class ErasureWatch:
    """Applies the erasures of a store to this process's caches, and remembers the last one that it applied."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._folder = store.columns_folder
        self._began: int | None = None
        self._upto: int | None = None

    async def begin(self) -> int:
        """Record and return the number of the last erasure. Call this before the process reads anything. Then only the
        kept files (store/kept_columns) can still contain data that was erased earlier."""
        if self._began is None:
            self._began = await self._store.last_erasure()
        return self._began

    async def look(self) -> list[str]:
        """Apply the erasures since the last look to this process's caches and to the kept files; return the affected
        streams that this process has opened.

        The first look also deletes the kept files (store/kept_columns) that still contain data erased earlier.
        """
        began, upto, kept = await self.begin(), self._upto, {}
        if upto is None:
            kept = await asyncio.to_thread(kept_beside, self._folder)
            upto = min([began, *(reached for _, reached in kept.values())])
        self._upto = upto
        salt, erased = await self._store.erased_since(upto)
        if not erased:
            return []
        new = [each for each in erased if each.number > began and not caches.was_erased_here(each.digest, each.number)]
        last = {each.digest: 0 for each in new} | {each.digest: each.number for each in new if each.whole}
        found = {stream: last[digest] for stream in caches.streams() if (digest := digest_of(salt, stream)) in last}
        for stream, number in found.items():
            caches.empty(stream, whole=number > 0, before=number)
        kept = kept or await asyncio.to_thread(kept_beside, self._folder)
        await asyncio.to_thread(delete_erased, kept, salt, erased)  # if this fails, the next look repeats it
        self._upto = erased[-1].number
        return list(found)


@contextlib.asynccontextmanager
async def watching(store: SqlStore) -> AsyncIterator[None]:
    """While the block runs, apply erasures by other processes to this process.

    They are applied at once if the store announces them, otherwise within LOOK_S seconds.
    """
    watch, told = ErasureWatch(store), asyncio.Event()
    with contextlib.suppress(StorageError):  # if this fails, the first `look` calls `begin`
        await watch.begin()  # before this process reads anything

    async def go_on() -> None:
        with store.subscribe(ERASURES, told.set):
            while True:
                told.clear()
                with contextlib.suppress(StorageError, OSError):  # the next look tries again
                    await watch.look()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(told.wait(), LOOK_S)

    going = asyncio.ensure_future(go_on())
    try:
        yield
    finally:
        if not going.get_loop().is_closed():  # a memory may be closed on another loop than the one that opened it
            going.cancel()
