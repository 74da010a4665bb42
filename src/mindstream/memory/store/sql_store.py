"""What a store asks of SQL tables and writes to them, in words that SQLite and PostgreSQL both read."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar
from weakref import WeakSet

from mindstream import caches
from mindstream.clock import Moment
from mindstream.log import audit, erasures, kept, work
from mindstream.log.audit import AuditRow, Deed
from mindstream.log.erasures import Erased
from mindstream.log.events import Logged
from mindstream.log.names import StreamKey, StreamName, tenant_of
from mindstream.log.sql import Sql
from mindstream.memory.store import checkpoints, lineage, queries, registry, writing
from mindstream.memory.store import erasure as carriers
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.erasure import Carriers
from mindstream.memory.store.kept.columns_file import delete_kept
from mindstream.memory.store.record import KINDS, Kind, Record, normalised, same_words_once
from mindstream.memory.store.registry import TypedKeys
from mindstream.memory.store.rows import COLUMNS, record_of
from mindstream.memory.store.store import Closure, Commit, Erasure, Kept, Store
from mindstream.memory.store.tenant import Tenant
from mindstream.memory.store.validation import MAX_VERSION, checked_commit
from mindstream.memory.store.word_index.candidates import Finder
from mindstream.memory.store.word_index.segments import SMALLEST
from mindstream.memory.store.writing import HOLDS, next_change

T = TypeVar("T")
MOST = 2**62
ANY = ("",)
"""Nobody knows which streams it concerns: whoever heeds the tenant is told."""
FEW = 20
"""Maximum number of rows, found by an index, that are read on the event loop's thread."""
MAX_IN_PLACE = 256
"""Maximum number of records that are removed in place from what is held in memory; for more it is built again."""
NEWEST = 20
"""Records of each kind whose embedder is looked at."""
OPEN = "\n"
"""No stream is called so: there may be work for whoever takes it up."""


class SqlDatabase(Protocol):
    """Runs functions of a connection: each a transaction of its own, or what is read as of one moment."""

    async def write(self, change: Callable[[Any], T], about: Sequence[str] = ()) -> T:
        """Run `change` in a transaction and return its result once it is durable; `about`: the streams it concerns."""

    async def read(self, look: Callable[[Any], T], *, once: bool = False) -> T:
        """Run `look` on what is committed; `once`: it is one statement."""

    async def glance(self, look: Callable[[Any], T]) -> T:
        """Read a few rows that an index finds; each statement of `look` reads what is committed then."""

    async def close(self) -> None:
        """Finish what is waiting and let go."""


class AtWork(Protocol):
    """Something that is done behind."""

    async def lose(self, stream: StreamKey, gone: Sequence[Record], changed: Sequence[tuple[Record, Record]]) -> bool:
        """Let go of what was erased; False: it has not, and lets go of all of the stream."""

    async def close(self) -> None:
        """Break it off; nothing half done stays."""


class SqlStore(Store):
    """The methods of a store that are the same in every database of SQL."""

    open_work_table: ClassVar[str] = "work"
    tenant: Tenant
    on_commit: Callable[[Sequence[Logged]], None] = staticmethod(lambda _: None)
    """Called with the rows of each commit made through this store, once they are durable."""
    columns_folder: Path | None = None
    """Where this machine keeps columns of long streams."""
    _database: SqlDatabase
    _typed: TypedKeys
    _salt = ""
    _known = (0, 0)
    """The seq that was committed here last, and the number of the last erasure then."""

    @cached_property
    def at_work(self) -> WeakSet[AtWork]:
        """Who does something behind with this store: it ends first where the store is closed."""
        return WeakSet()

    @cached_property
    def _filler(self) -> ThreadPoolExecutor:
        """Fills indexes, one stream after the other: it takes minutes, and everybody shares the loop's own threads."""
        return ThreadPoolExecutor(1, "index")

    @cached_property
    def _indexing(self) -> dict[StreamKey, asyncio.Task[None]]:
        return {}

    @cached_property
    def _unindexed(self) -> Counter[StreamKey]:
        """How many records were written since the index of a stream was last filled."""
        return Counter()

    @cached_property
    def _finder(self) -> Finder:
        return Finder()

    async def _fill(self, stream: StreamKey) -> None:
        """Fill the index of a stream; what cannot be filled now is filled the next time."""
        raise NotImplementedError

    def _index(self, stream: StreamKey) -> asyncio.Task[None]:
        """Fill the index of a stream in the background."""
        if stream not in self._indexing:
            self._unindexed.pop(stream, None)
            self._indexing[stream] = asyncio.ensure_future(self._fill(stream))
            self._indexing[stream].add_done_callback(lambda _: self._indexing.pop(stream, None))
        return self._indexing[stream]

    async def index(self, stream: StreamKey) -> None:
        """Fill the index of a stream with all that is written by now; a short stream has none."""
        if running := self._indexing.get(stream):
            await asyncio.wait([running])
        await asyncio.wait([self._index(stream)])

    async def read(self, look: Callable[[Any], T]) -> T:
        """Run a function of a connection (see log/sql) on what is committed, as of one moment."""
        return await self._database.read(look)

    async def write(self, change: Callable[[Any], T], about: Sequence[str] = ()) -> T:
        """Run a function of a connection in a transaction of its own; `about`: the streams that it concerns."""
        return await self._database.write(change, about)

    def key(self, name: StreamName) -> StreamKey:
        name = replace(name, tenant=name.tenant or self.tenant.name)
        self.tenant.own(name.key)
        found = self._typed.get((name.tenant, name.kind, name.normal), [])
        return next((key for key in (name.typed_key, name.key) if key in found), found[0] if found else name.key)

    async def commit(self, *commits: Commit) -> list[Logged]:
        checked = [checked_commit(commit) for commit in commits if self.tenant.own(commit.mind)]
        about = [one.mind for one in checked] + [OPEN for one in checked if _opens_work(one)]
        upto = list[int]()
        logged = await self._database.write(
            lambda each: [row for one in checked for row in writing.write(each, one, upto.append)], about
        )
        if logged and upto:
            self._known = (logged[-1].seq, upto[-1])
        self.on_commit(logged)
        for one in checked:
            if records := sum(len(entry.records) for entry in one.entries):
                self._unindexed[one.mind] += records
                if self._unindexed[one.mind] >= SMALLEST:
                    self._index(one.mind)
        return logged

    async def closure(
        self, stream: StreamKey, ids: Sequence[str], *, all_slots: bool = False, slots_below: Sequence[str] = ()
    ) -> Closure:
        owned, key = self.tenant.owned("stream"), self.tenant.own(stream)
        return await self._database.read(
            lambda each: lineage.find_closure(each, key, ids, owned, all_slots=all_slots, slots_below=slots_below)
        )

    async def answers(self, stream: StreamKey, after: int, ids: Sequence[str] | None = None) -> list[str]:
        key = self.tenant.own(stream)
        return await self._database.read(lambda each: lineage.find_answers(each, key, after, ids))

    async def unembedded(self, stream: StreamKey) -> list[str]:
        sql = "SELECT id FROM records WHERE stream = ? AND embedder = '' ORDER BY number"
        values = (self.tenant.own(stream),)
        return await self._database.read(lambda each: [row[0] for row in each.execute(sql, values)], once=True)

    async def owners(self, ids: Sequence[str]) -> dict[str, StreamKey]:
        if not ids:
            return {}
        sql = f"SELECT id, stream FROM records WHERE id IN ({{}}) AND {self.tenant.owned('stream')}"
        return await self._database.read(lambda connection: dict(queries.among(connection, sql, ids)))

    async def recorded_embedder(self, stream: StreamKey) -> str:
        self.tenant.own(stream)
        newest = "SELECT embedder FROM records WHERE stream = ? AND kind = ? ORDER BY number DESC LIMIT ?"
        some = " UNION ALL ".join(f"SELECT * FROM ({newest}) AS kind_{n}" for n in range(len(KINDS)))
        sql = (
            f"SELECT embedder FROM ({some}) AS newest WHERE embedder <> ''"
            " GROUP BY embedder ORDER BY count(*) DESC, embedder LIMIT 1"
        )
        values = [value for kind in KINDS for value in (stream, kind, NEWEST)]
        row = await self._database.glance(lambda connection: connection.execute(sql, values).fetchone())
        return row[0] if row else ""

    async def records(self, stream: StreamKey, ids: Sequence[str]) -> list[Record]:
        self.tenant.own(stream)
        if not ids:
            return []
        sql = f"SELECT {COLUMNS} FROM records WHERE id IN ({{}})"  # found by id, not among all of the stream

        def look(connection: Sql) -> list[tuple[Any, ...]]:
            return list(queries.among(connection, sql, ids))

        if len(ids) <= FEW:
            rows = await self._database.glance(look)
        else:
            rows = await self._database.read(look, once=len(ids) <= queries.MOST_AMONG)
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
        # What is newest in a slot holds, whatever became of its mark: a version is written after it or never.
        where: list[str] = ["stream = ?", HOLDS if slot is None else f"version BETWEEN 1 AND {MAX_VERSION}"]
        values: list[Any] = [self.tenant.own(stream), now] if slot is None else [self.tenant.own(stream)]
        n = n if slot is None else min(n, 1)
        for column, value in (("episode", episode), ("slot", slot)):
            if value is not None:
                where.append(f"{column} = ?")
                values.append(value)
        if kinds is not None:
            where.append(f"kind IN ({','.join('?' * len(kinds))})")
            values.extend(kinds)
        order = "number" if slot is None else "version"  # each has its index
        sql = f"SELECT {COLUMNS} FROM records WHERE {' AND '.join(where)} ORDER BY {order} DESC LIMIT ?"

        def look(connection: Sql) -> list[Record]:
            return [record_of(row) for row in reversed(connection.execute(sql, [*values, n]).fetchall())]

        if slot is not None:
            return await self._database.glance(look)
        return await self._database.read(look, once=True)

    async def find_same(self, stream: StreamKey, kind: Kind, texts: Sequence[str], *, now: Moment) -> dict[str, Record]:
        wanted = {number: normalised(text) for text in texts for number in same_words_once(text)}
        if not wanted:
            return {}
        sql = f"SELECT {COLUMNS} FROM records WHERE same IN ({{}}) AND stream = ? AND kind = ? AND {HOLDS}"

        def look(connection: Sql) -> dict[str, Record]:
            rows = queries.among(
                connection, f"{sql} ORDER BY number DESC", list(wanted), self.tenant.own(stream), kind, now
            )
            found = {normalised(record.text): record for record in map(record_of, rows)}
            return {text: found[text] for text in wanted.values() if text in found}

        return await self._database.read(look)

    async def events(
        self, mind: StreamKey | None = None, after: int = 0, kinds: Sequence[str] | None = None, limit: int = 1000
    ) -> list[Logged]:
        where: list[str] = ["seq > ?", self.tenant.owned("mind") if mind is None else "mind = ?"]
        values: list[Any] = [after] if mind is None else [after, self.tenant.own(mind)]
        if kinds is not None:
            where.append(f"kind IN ({','.join('?' * len(kinds))})")
            values.extend(kinds)
        select = f"WHERE {' AND '.join(where)} ORDER BY seq LIMIT ?"
        read = self._database.glance if limit <= FEW else partial(self._database.read, once=True)
        return await read(lambda connection: queries.read_log(connection, select, [*values, limit], kinds))

    async def last(self, mind: StreamKey, kind: str) -> Logged | None:
        self.tenant.own(mind)

        def look(connection: Sql) -> Logged | None:
            for limit in (1, MOST):  # nearly always the newest can be read
                newest = "WHERE mind = ? AND kind = ? ORDER BY seq DESC LIMIT ?"
                if found := queries.read_log(connection, newest, [mind, kind, limit], [kind]):
                    return found[0]
            return None

        return await self._database.glance(look)

    async def count(self, mind: StreamKey, kind: str) -> int:
        self.tenant.own(mind)
        sql = "SELECT count(*) FROM log WHERE mind = ? AND kind = ?"
        return await self._database.read(
            lambda connection: int(connection.execute(sql, (mind, kind)).fetchone()[0]), once=True
        )

    async def checkpoint(self, mind: StreamKey, name: str) -> Checkpoint | None:
        self.tenant.own(mind)

        def look(connection: Sql) -> Checkpoint | None:
            return checkpoints.read(connection.execute(checkpoints.QUERY, (mind, name)).fetchall(), name)

        return await self._database.read(look, once=True)

    async def taken_by(self, mind: StreamKey, unique: str) -> int | None:
        self.tenant.own(mind)
        return await self._database.glance(lambda connection: registry.find_taken(connection, mind, unique))

    async def erase(self, stream: StreamKey, what: Sequence[str] | Erasure | None = None) -> int:
        erasure = Erasure(ids=tuple(what)) if isinstance(what, Sequence) else what
        self.tenant.own(stream)
        found = None if erasure is None else await self._carriers(stream, erasure)
        before = await self._lost(stream, found)
        if found is not None and isinstance(what, Erasure):
            await asyncio.to_thread(self._erase_beside, stream, found)
        about = [stream, erasures.ERASURES]
        deed, reading = erasure and erasure.deed, erasures.READING.get()

        def write(rows: Sql) -> tuple[int, int, bool, str]:
            is_ours = reading is not None and erasures.lost_since(rows, stream, reading.upto) is None
            before = erasures.last(rows)
            count = carriers.erase(rows, stream, found, next_change(rows))
            if erasure and deed:
                audit.write(rows, erasure.at, replace(deed, counts={"records": count, **deed.counts}))
            upto = erasures.last(rows)
            return count, upto, is_ours, erasures.digest_for(rows, stream) if upto > before else ""

        erased, upto, is_ours, digest = await self._database.write(write, about)
        if reading is not None and is_ours:  # a task knows what it erases itself
            reading.upto = upto
        if digest and erasure is not None:
            caches.note_erasure(digest, upto)
        await asyncio.to_thread(delete_kept, self.columns_folder, stream)
        done = await self._take_out(stream, found, before) if found is not None else []
        caches.empty(stream, whole=what is None, without=done)
        return erased

    async def _lost(self, stream: StreamKey, found: Carriers | None) -> dict[str, Record]:
        """Return the records that an erasure deletes or changes as they are before it, where they are few."""
        ids = {*found.ids, *found.records, *found.rewritten} if found else set()
        return {each.id: each for each in await self.records(stream, sorted(ids))} if len(ids) <= MAX_IN_PLACE else {}

    async def _take_out(self, stream: StreamKey, found: Carriers, before: dict[str, Record]) -> list[AtWork]:
        """Take what was erased out of what is held of a stream; return who has let go of it."""
        touched = {*found.records, *found.rewritten} - found.ids
        if not before or not touched <= before.keys():  # too many, or one that was written meanwhile
            return []
        after = await self.records(stream, sorted(touched))
        gone = [before[id_] for id_ in found.ids if id_ in before]
        changed = [(before[each.id], each) for each in after]
        return [each for each in list(self.at_work) if await each.lose(stream, gone, changed)]

    async def _carriers(self, stream: StreamKey, erasure: Erasure) -> Carriers:
        """Search the log before the write, which would hold up everybody."""
        return await self._database.read(lambda connection: carriers.find(connection, stream, erasure))

    def _erase_beside(self, stream: StreamKey, found: Carriers) -> None:
        """Take the words out of what lies beside the tables."""

    async def streams(self) -> list[StreamKey]:
        sql = f"SELECT DISTINCT stream FROM records WHERE {self.tenant.owned('stream')} ORDER BY stream"
        return await self._database.read(lambda connection: [row[0] for row in connection.execute(sql)], once=True)

    async def minds(self) -> list[StreamKey]:
        """Name the streams of which the log tells anything."""
        sql = (  # from one name to the next: the index is walked once a name, not once a row
            "WITH RECURSIVE found(mind) AS (SELECT min(mind) FROM log UNION ALL"
            " SELECT (SELECT min(mind) FROM log WHERE mind > found.mind) FROM found WHERE found.mind IS NOT NULL)"
            " SELECT mind FROM found WHERE mind IS NOT NULL ORDER BY mind"
        )
        return await self._database.read(
            lambda connection: [row[0] for row in connection.execute(sql) if tenant_of(row[0]) == self.tenant.name],
            once=True,
        )

    async def streams_with_work(self) -> list[StreamKey]:
        """Name the streams that have unfinished work."""
        sql = f"SELECT DISTINCT mind FROM work WHERE done IS NULL AND {self.tenant.owned('mind')} ORDER BY mind"
        return await self._database.read(lambda connection: [row[0] for row in connection.execute(sql)], once=True)

    async def open_work(self, mind: StreamKey) -> list[work.Work]:
        open_ones = f"SELECT {work.COLUMNS} FROM {self.open_work_table} WHERE mind = ? AND done IS NULL ORDER BY id"
        return await self._database.glance(
            lambda connection: list(map(work.read, connection.execute(open_ones, (self.tenant.own(mind),)).fetchall()))
        )

    async def claim(
        self, mind: StreamKey, slot: str, owner: str, now: Moment, lease: Moment, before: int | None = None
    ) -> list[work.Work]:
        return await self._database.write(
            lambda each: work.claim(each, self.tenant.own(mind), slot, owner, now, lease, before)
        )

    async def renew(self, work_ids: Sequence[int], owner: str, lease: Moment) -> None:
        owned = self.tenant.owned("mind")
        await self._database.write(lambda connection: work.renew(connection, work_ids, owner, lease, owned))

    async def give_up(self, owner: str) -> None:
        among = self.tenant.owned("mind")
        await self._database.write(lambda connection: work.give_up(connection, owner, among), [*ANY, OPEN])

    async def release_work(self, mind: StreamKey, cause: int, owner: str, ended: Sequence[str] = ()) -> None:
        key = self.tenant.own(mind)
        await self._database.write(lambda each: work.release_work(each, key, cause, owner, ended), [key, OPEN])

    async def open_to_anybody(self, now: Moment, *, answers: bool) -> list[work.Work]:
        """Return what of all minds anybody may take up (see log/work)."""
        among = self.tenant.owned("mind")
        return await self._database.read(
            lambda each: work.find_open(each, now, answers=answers, among=among), once=True
        )

    async def take_work(self, owner: str, now: Moment, lease: Moment, most: int, *, answers: bool) -> list[work.Taken]:
        """Take up what of so many minds is open to anybody, and hold it under names that begin with `owner`."""
        among = self.tenant.owned("mind")
        return await self._database.write(
            lambda each: work.take(each, owner, now, lease, most, answers=answers, among=among)
        )

    async def last_seq(self) -> int:
        """Return the seq of the newest row of the tenant's log; 0 where there is none."""
        sql = f"SELECT coalesce(max(seq), 0) FROM log WHERE {self.tenant.owned('mind')}"
        return await self._database.glance(lambda connection: int(connection.execute(sql).fetchone()[0]))

    async def next_row(self, after: int, kinds: Sequence[str]) -> Logged | None:
        """Return the first row of these kinds after a seq; one that cannot be read is `Unknown`."""
        owned = self.tenant.owned("mind")
        where = f"WHERE seq > ? AND {owned} AND kind IN ({','.join('?' * len(kinds))}) ORDER BY seq LIMIT 1"
        rows = await self._database.read(
            lambda connection: queries.read_log(connection, where, [after, *kinds], None), once=True
        )
        return rows[0] if rows else None

    async def kept(self, stream: StreamKey | None = None, prefix: str = "") -> list[Kept]:
        own = self.tenant.owned("stream") if stream is None else "stream = ?"
        values = [] if stream is None else [self.tenant.own(stream)]
        sql = f"SELECT stream, name, at, value FROM kept WHERE {own} AND name >= ? AND name < ? ORDER BY at, name"
        return await self._database.read(
            lambda connection: [
                Kept(*each) for each in connection.execute(sql, (*values, prefix, f"{prefix}\U0010ffff"))
            ],
            once=True,
        )

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
            return kept.change(connection, stream, name, at, change)

        return await self._database.write(write)

    async def drop_kept(self, stream: StreamKey, prefix: str, before: Moment) -> None:
        self.tenant.own(stream)
        await self._database.write(lambda connection: kept.drop(connection, stream, prefix, before))

    async def last_erasure(self) -> int:
        return await self._database.glance(erasures.last)

    async def erased_since(self, number: int) -> tuple[str, list[Erased]]:
        return await self._database.glance(lambda connection: erasures.after(connection, number))

    async def erasures_at(self, seq: int) -> int:
        """Return the number of the last erasure when a row was written or later, without a look where that is known."""
        known, number = self._known
        return number if known >= seq else await self.last_erasure()

    async def digest(self, text: str) -> str:
        """Return a keyed digest of a text: whoever does not have the database cannot make it, nor try names by it."""
        if not self._salt:
            self._salt = await self._database.glance(erasures.salt_of) or await self._database.write(erasures.made_salt)
        return erasures.digest_of(self._salt, text)

    async def lost_since(self, stream: StreamKey, number: int) -> bool | None:
        self.tenant.own(stream)
        return await self._database.glance(lambda connection: erasures.lost_since(connection, stream, number))

    async def note(self, at: Moment, deed: Deed) -> None:
        await self._database.write(lambda connection: audit.write(connection, at, deed))

    async def audit(self, about: str = "", tenant: str = "", limit: int = 1000) -> list[AuditRow]:
        if self.tenant.name:
            return []
        return await self._database.read(lambda connection: audit.read(connection, about, tenant, limit))

    async def forget_tenant(self) -> None:
        """Let go of what the database counts for this store's tenant, where all else of it is deleted."""

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


def _opens_work(commit: Commit) -> bool:
    return commit.put_back is not None or (commit.wake is not None and commit.wake.lease <= commit.at)
