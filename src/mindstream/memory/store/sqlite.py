"""The store in a SQLite file: the default, nothing to install or start."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from mindstream import caches
from mindstream.clock import Moment
from mindstream.errors import Conflict
from mindstream.log import work
from mindstream.log.database import FILE, Database
from mindstream.log.erasure import delete_copies, erase_results, erase_typed, rewrite_where_due
from mindstream.log.events import Logged
from mindstream.log.names import StreamKey, StreamName
from mindstream.memory.fading import StrengthState
from mindstream.memory.store import checkpoints, portions, queries, registry
from mindstream.memory.store import erasure as carriers
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.erasure import Carriers
from mindstream.memory.store.record import UNIQUE, Kind, Record, normalised, same_words
from mindstream.memory.store.rows import COLUMNS, FIELDS, INSERT, insertion, record_of
from mindstream.memory.store.store import Changes, Commit, Entry, Erasure, Revision, checked_commit
from mindstream.memory.store.sums import sum_of_event, sum_of_vector
from mindstream.memory.store.tables import MIGRATIONS
from mindstream.memory.store.tenant import Tenant
from mindstream.memory.store.validation import MAX_VERSION
from mindstream.paths import usable

REVISED = tuple(f.name for f in fields(Revision) if f.name not in ("id", "was", "holds", "emptied"))
HOLDS = "(valid_until IS NULL OR valid_until > ?) AND forgotten IS NULL"
"""Asked with a moment: what it says holds then, as recall means it (memory/recall/filters), and it is not forgotten."""


class SqliteStore(AbstractAsyncContextManager["SqliteStore"]):
    """A data folder with one file, mindstream.db, in it.

    Args:
        tenant: whose streams are seen and written, and no others'; "": those that are no tenant's.
    """

    def __init__(self, folder: str | Path, tenant: str = "") -> None:
        self.folder = usable(folder)
        self.tenant = Tenant(tenant)
        self._database = Database(self.folder, MIGRATIONS)
        self._typed = registry.read_typed(self.folder / FILE)
        self._moment: int | None = None
        self._read_upto: dict[StreamKey, int] = {}
        """How far streams were read at that moment: until the next commit there is no more."""

    def key(self, name: StreamName) -> StreamKey:
        name = replace(name, tenant=name.tenant or self.tenant.name)
        self.tenant.own(name.key)
        found = self._typed.get((name.tenant, name.kind, name.normal), [])
        return next((key for key in (name.typed_key, name.key) if key in found), found[0] if found else name.key)

    async def commit(self, *commits: Commit) -> list[Logged]:
        checked = [checked_commit(commit) for commit in commits if self.tenant.own(commit.mind)]
        return await self._database.write(lambda each: [row for one in checked for row in _commit(each, one)])

    async def erase(self, stream: StreamKey, what: Sequence[str] | Erasure | None = None) -> int:
        erasure = Erasure(ids=tuple(what)) if isinstance(what, Sequence) else what
        self.tenant.own(stream)
        found = None if erasure is None else await self._carriers(stream, erasure)
        if found is not None and isinstance(what, Erasure):
            await asyncio.to_thread(self._erase_beside, stream, found)
        erased = await self._database.write(lambda each: carriers.erase(each, stream, found, next_change(each)))
        caches.empty(stream)
        return erased

    async def _carriers(self, stream: StreamKey, erasure: Erasure) -> Carriers:
        """Search the log before the write, which would hold up everybody."""
        async with self._database.snapshot() as snapshot:
            return await snapshot.read(lambda connection: carriers.find(connection, stream, erasure))

    def _erase_beside(self, stream: StreamKey, found: Carriers) -> None:
        """Take the words out of typed history, and delete copies from before a mending: they hold all words."""
        erase_typed(self.folder, stream, found.is_meant)
        erase_results(self.folder, stream)
        delete_copies(self.folder)

    async def version(self) -> int:
        return await self._database.glance(queries.last_change)

    async def last_seq(self) -> int:
        """Return the seq of the log's newest row, whosever it is; 0 where there is none."""
        sql = "SELECT coalesce(max(seq), 0) FROM log"
        return await self._database.glance(lambda connection: int(connection.execute(sql).fetchone()[0]))

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

        changes = await self._database.read(look)
        if moment is not None and moment == self._moment and not after and not changes.left:
            self._read_upto[stream] = changes.upto
        return changes

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

    async def owners(self, ids: Sequence[str]) -> dict[str, StreamKey]:
        if not ids:
            return {}
        sql = f"SELECT id, stream FROM records WHERE id IN ({{}}) AND {self.tenant.owned('stream')}"
        return await self._database.read(lambda connection: dict(queries.among(connection, sql, ids)))

    async def records(self, stream: StreamKey, ids: Sequence[str]) -> list[Record]:
        self.tenant.own(stream)
        if not ids:
            return []

        # "+": find them by id, not among all of the stream
        sql = f"SELECT {COLUMNS} FROM records WHERE id IN ({{}}) AND +stream = ?"
        rows = await self._database.read(lambda connection: list(queries.among(connection, sql, ids, stream)))
        found = {row[0]: record_of(row) for row in rows}
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

        def look(connection: sqlite3.Connection) -> list[Record]:
            return [record_of(row) for row in reversed(connection.execute(sql, [*values, n]).fetchall())]

        return await (self._database.read if slot is None else self._database.glance)(look)

    async def find_same(self, stream: StreamKey, kind: Kind, texts: Sequence[str], *, now: Moment) -> dict[str, Record]:
        wanted = {same_words(text): normalised(text) for text in texts}
        if not wanted:
            return {}
        sql = f"SELECT {COLUMNS} FROM records WHERE same IN ({{}}) AND stream = ? AND kind = ? AND {HOLDS}"

        def look(connection: sqlite3.Connection) -> dict[str, Record]:
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
        return await self._database.read(
            lambda connection: queries.read_log(connection, select, [*values, limit], kinds)
        )

    async def last(self, mind: StreamKey, kind: str) -> Logged | None:
        self.tenant.own(mind)

        def look(connection: sqlite3.Connection) -> Logged | None:
            for limit in (1, -1):  # nearly always the newest can be read
                newest = "WHERE mind = ? AND kind = ? ORDER BY seq DESC LIMIT ?"
                if found := queries.read_log(connection, newest, [mind, kind, limit], [kind]):
                    return found[0]
            return None

        return await self._database.glance(look)

    async def count(self, mind: StreamKey, kind: str) -> int:
        self.tenant.own(mind)
        sql = "SELECT count(*) FROM log WHERE mind = ? AND kind = ?"
        return await self._database.read(lambda connection: int(connection.execute(sql, (mind, kind)).fetchone()[0]))

    async def checkpoint(self, mind: StreamKey, name: str) -> Checkpoint | None:
        self.tenant.own(mind)

        def look(connection: sqlite3.Connection) -> Checkpoint | None:
            return checkpoints.read(connection.execute(checkpoints.QUERY, (mind, name)).fetchall(), name)

        return await self._database.read(look)

    async def streams(self) -> list[StreamKey]:
        sql = f"SELECT DISTINCT stream FROM records WHERE {self.tenant.owned('stream')} ORDER BY stream"
        return await self._database.read(lambda connection: [row[0] for row in connection.execute(sql)])

    async def minds(self) -> list[StreamKey]:
        """Name the streams of which the log tells anything."""
        sql = (  # from one name to the next: the index is walked once a name, not once a row
            "WITH RECURSIVE found(mind) AS (SELECT min(mind) FROM log UNION ALL"
            " SELECT (SELECT min(mind) FROM log WHERE mind > found.mind) FROM found WHERE found.mind IS NOT NULL)"
            f" SELECT mind FROM found WHERE mind IS NOT NULL AND {self.tenant.owned('mind')} ORDER BY mind"
        )
        return await self._database.read(lambda connection: [row[0] for row in connection.execute(sql)])

    async def streams_with_work(self) -> list[StreamKey]:
        """Name the streams that have unfinished work."""
        sql = f"SELECT DISTINCT mind FROM work WHERE done IS NULL AND {self.tenant.owned('mind')} ORDER BY mind"
        return await self._database.read(lambda connection: [row[0] for row in connection.execute(sql)])

    async def open_work(self, mind: StreamKey) -> list[work.Work]:
        # The index is named, because SQLite would rather walk through all work that was ever done (index work_once).
        open_ones = f"SELECT {work.COLUMNS} FROM work INDEXED BY work_open WHERE mind = ? AND done IS NULL ORDER BY id"
        return await self._database.glance(
            lambda connection: list(map(work.read, connection.execute(open_ones, (self.tenant.own(mind),))))
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
        await self._database.write(lambda connection: work.give_up(connection, owner, self.tenant.owned("mind")))

    async def compact(self) -> None:
        if not await asyncio.to_thread(rewrite_where_due, self.folder):
            await self._database.compact()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._database.close()


def _commit(connection: sqlite3.Connection, commit: Commit) -> list[Logged]:
    if commit.entries:
        registry.register(connection, commit.mind)
    if commit.fence:
        work.check_held(connection, commit.mind, commit.fence.work, commit.fence.owner)
    logged, changed = [], next_change(connection)
    for entry in commit.entries:
        row = (commit.mind, commit.at, entry.by, *entry.event.entry(), int(entry.system))
        seq = connection.execute(
            "INSERT INTO log (mind, at, by, kind, payload, system, sum) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*row, sum_of_event(*row)),
        ).lastrowid
        assert seq is not None
        logged.append(Logged(seq, commit.mind, commit.at, entry.by, entry.event, entry.system))
        if entry.distinct:
            _check_distinct(connection, entry, commit)
        if not entry.records:
            continue
        try:
            connection.executemany(INSERT, [insertion(record, seq, changed) for record in entry.records])
        except sqlite3.IntegrityError as error:
            raise Conflict(f"a record with that id, or that version of the slot, is there already ({error})") from None
        for record in entry.records:
            if record.slot is not None:
                _supersede(connection, record, changed)
    for revision in commit.revisions:
        _revise(connection, commit, revision, changed)
    if commit.unique:
        registry.take(connection, commit.mind, commit.unique, logged[0].seq)
    if commit.wake:
        work.add(connection, commit.mind, commit.wake.slots, logged[0].seq, commit.wake.owner, commit.wake.lease)
    if commit.finish:
        done = commit.finish
        work.finish(connection, commit.mind, done.work, done.owner, logged[0].seq, begun=done.begun)
    if commit.checkpoint:
        checkpoints.write(connection, commit.mind, commit.checkpoint, logged[0].seq)
    if commit.put_back:
        back = commit.put_back
        work.release(connection, commit.mind, back.work, back.owner, back.error, counts=back.counts)
    return logged


def _supersede(connection: sqlite3.Connection, new: Record, changed: int) -> None:
    """End the version of a slot that was there before a new one."""
    before = (new.stream, new.slot, (new.version or 0) - 1, new.created)
    connection.execute(
        "UPDATE records SET valid_until = ?, superseded_by = ?, changed = ?"
        " WHERE stream = ? AND slot = ? AND version = ? AND (valid_until IS NULL OR valid_until > ?)",
        (new.created, new.id, changed, *before),
    )


def _check_distinct(connection: sqlite3.Connection, entry: Entry, commit: Commit) -> None:
    """Raise Conflict where a record would say what one that holds, and goes on holding, says already."""
    ending = {
        revision.id
        for revision in commit.revisions
        if revision.forgotten is not None or (revision.valid_until is not None and revision.valid_until <= commit.at)
    }
    for record in entry.records:
        if record.kind in UNIQUE:
            same = connection.execute(
                f"SELECT id FROM records WHERE stream = ? AND kind = ? AND same = ? AND {HOLDS}",
                (record.stream, record.kind, same_words(record.text), commit.at),
            )
            if {row[0] for row in same} - ending:
                raise Conflict(f"a {record.kind} that says {record.text[:80]!r} is there already")


def _revise(connection: sqlite3.Connection, commit: Commit, revision: Revision, changed: int) -> None:
    new = {name: value for name in REVISED if (value := getattr(revision, name)) is not None}
    if revision.vector is not None:
        new["vector"] = revision.vector.tobytes()
        new["vector_sum"] = sum_of_vector(new["vector"])
    new |= dict.fromkeys(revision.emptied)
    sets = ", ".join(f"{name} = ?" for name in (*new, "changed"))
    where, values = "id = ? AND stream = ?", [*new.values(), changed, revision.id, commit.mind]
    if revision.was:
        where += " AND level = ? AND accessed = ?"
        values += [revision.was.level, revision.was.time]
    if revision.holds:
        where += f" AND {HOLDS}"
        values.append(commit.at)
    touched = connection.execute(f"UPDATE records SET {sets} WHERE {where}", values).rowcount
    if not touched and revision.was and _is_still(connection, commit.mind, revision.id, revision.was):
        _revise(connection, commit, replace(revision, was=None), changed)
    elif not touched and (revision.was or revision.holds):
        raise Conflict(f"the record {revision.id} was changed, superseded or forgotten meanwhile")


def _is_still(connection: sqlite3.Connection, stream: StreamKey, id_: str, was: StrengthState) -> bool:
    """Tell whether a row in which something odd stands is read as it was before."""
    rows = connection.execute(f"SELECT {COLUMNS} FROM records WHERE id = ? AND stream = ?", (id_, stream)).fetchall()
    return [(record.level, record.accessed) for record in map(record_of, rows)] == [(was.level, was.time)]


def next_change(connection: sqlite3.Connection) -> int:
    """Number the commits that touch records; two in one transaction may not share a number, readers ask 'after'."""
    row = connection.execute("UPDATE counters SET value = value + 1 WHERE name = 'changed' RETURNING value").fetchone()
    if row is None:  # lost: count on from the highest that is there
        row = connection.execute(
            "INSERT INTO counters SELECT 'changed', 1 + max((SELECT coalesce(max(changed), 0) FROM records),"
            " (SELECT coalesce(max(changed), 0) FROM erased)) RETURNING value"
        ).fetchone()
    return int(row[0])
