"""The store in a SQLite file: the default, which needs no server and no further packages."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from mindstream import caches
from mindstream.errors import InputError, StorageError
from mindstream.identifiers import StreamKey, Tenant
from mindstream.log.database import FILE, Database, connect, explain_errors
from mindstream.log.erasure import delete_copies, erase_typed, overwrite_where_due
from mindstream.log.events import Logged
from mindstream.log.files import KEPT_COLUMNS, private_database, private_folder
from mindstream.memory.store import queries, registry
from mindstream.memory.store.erasure import Carriers
from mindstream.memory.store.kept_columns import outdated
from mindstream.memory.store.queries import COLUMNS
from mindstream.memory.store.record import Record, copied
from mindstream.memory.store.sql_store import SqlStore, last_change
from mindstream.memory.store.store import Changes, Commit, Revision
from mindstream.memory.store.tables import MIGRATIONS
from mindstream.memory.store.word_index import in_sqlite
from mindstream.memory.store.word_index.segments import LARGEST, SEARCHED_FROM, SEVERAL
from mindstream.paths import usable

MOST = 128
"""Maximum number of a stream's changes by this process that are kept in memory for the stream's columns. If there are
more, the columns read the changes from the database."""
STREAMS = 1_000
"""Maximum number of streams whose changes are remembered. When it is reached, the changes of all streams are
forgotten."""
Change = Record | Revision
REAL = ("created", "accessed", "importance", "valid_from", "valid_until", "forgotten")
"""Fields of a record that the database stores as floating-point numbers."""
PLAIN = frozenset({str, int, float, bool, type(None)})
"""Types of values that JSON returns unchanged."""


class OwnChanges:
    """The recent changes by this process, which it need not read from the database. They are complete only if no other
    process has committed in between. All processes take the numbers of their commits from one counter, so a missing
    number shows a commit of another process."""

    def __init__(self) -> None:
        self._first, self._last = 0, -1  # all commits from number `_first` to `_last` are by this process
        self._read: dict[StreamKey, tuple[int, int]] = {}
        """For each stream, the last change that was read, and the number of the last commit at that time."""
        self._made: dict[StreamKey, list[tuple[int, Change]]] = {}
        caches.watch(self)

    def forget(self, stream: str) -> None:
        """Discard the remembered changes of a stream, so that they are read from the database again. Also called after
        an erasure."""
        self._made.pop(StreamKey(stream), None)
        self._read.pop(StreamKey(stream), None)

    def note_read(self, stream: StreamKey, upto: int, number: int) -> None:
        """Remember that the changes of a stream were read up to `upto`, when `number` was the last commit.

        If this process has committed since that read began, nothing is remembered. The stream's changes are then read
        again.
        """
        if len(self._read) >= STREAMS:
            self._read.clear()
            self._made.clear()
        self._made.pop(stream, None)
        if number < self._last:
            self._read.pop(stream, None)
            return
        self._read[stream] = upto, number

    def add(self, number: int, commit: Commit, logged: Sequence[Logged]) -> None:
        """Add a commit of this process, after the commit has become durable.

        Args:
            number: the number of the commit among the commits of all processes.
        """
        stream = commit.mind
        if number not in (self._last, self._last + 1):
            self._first = number
        self._last = number
        if stream not in self._read or not (commit.entries or commit.revisions):
            return
        made = self._made.setdefault(stream, [])
        made += ((number, change) for change in _changes_of(commit, logged))
        if len(made) > MOST or not _is_simple(commit):
            self.forget(stream)

    def take(self, stream: StreamKey, since: int, number: int) -> tuple[list[Change], int] | None:
        """Return and forget the changes of a stream after `since`; return also the number to pass as `since` next time.
        None: not all of these changes are known.

        Args:
            number: the number of the last commit of any process, read before this call; negative: not known.
        """
        upto, before = self._read.get(stream, (-1, -1))
        if upto != since or number < 0:
            return None
        if not (self._first <= before + 1 and self._last >= number):  # another process has committed after `before`
            return ([], upto) if number == before else None
        made = [(at, change) for at, change in self._made.pop(stream, ()) if at > before]
        upto = made[-1][0] if made else upto
        self._read[stream] = upto, self._last
        return [change for _, change in made], upto


def _is_simple(commit: Commit) -> bool:
    """Return whether a commit itself shows all its changes; columns then need not read the changes from the database.

    A commit that writes a version of a slot is not simple, because this also ends the version before. A commit that
    changes a vector or its embedder, or empties a field, is not simple either.
    """
    return not (
        any(record.slot is not None for entry in commit.entries for record in entry.records)
        or any(each.vector is not None or each.embedder is not None or each.emptied for each in commit.revisions)
    )


def _changes_of(commit: Commit, logged: Sequence[Logged]) -> Iterator[Change]:
    for entry, row in zip(commit.entries, logged, strict=True):
        for record in entry.records:
            yield _as_stored(record, row.seq)
    yield from commit.revisions


def _as_stored(record: Record, seq: int) -> Record:
    """Return a record as the database returns it."""
    stored = copied(record)
    for name in REAL:
        if type(value := getattr(record, name)) is int:
            object.__setattr__(stored, name, float(value))
    plain = all(type(value) in PLAIN for value in record.data.values())
    object.__setattr__(stored, "data", dict(record.data) if plain else json.loads(json.dumps(dict(record.data))))
    object.__setattr__(stored, "seq", seq)
    return stored


SMALL = LARGEST // SEVERAL
TRIES = 5
"""Filling the word index ends after this many segments in a row could not be written, because a record had changed."""
RESUMES = 2
"""Maximum number of turns of the event loop between a commit of this process and its note (`OwnChanges.add`).

The turns begin when the commit is durable, and end when the committing task resumes and notes the commit.
"""
CHANGED = "SELECT number FROM records INDEXED BY records_changed WHERE stream = ? AND changed > ? LIMIT ?"
COUNT = "SELECT count(*) FROM records INDEXED BY records_changed WHERE stream = ? AND changed > ?"


class SqliteStore(SqlStore):
    """A data folder with the file mindstream.db.

    Args:
        tenant: the tenant whose streams are visible; "": streams without a tenant.
    """

    # The index is named because SQLite would otherwise use the index work_once, and scan all finished work, too.
    open_work_table = "work INDEXED BY work_open"
    of_stream = "+stream = ?"  # "+" prevents the use of an index, so that rows are read in the order of the file
    _database: Database

    def __init__(self, folder: str | Path, tenant: str = "") -> None:
        self.folder = usable(folder)
        isolated = Tenant(tenant)
        database = Database(self.folder, MIGRATIONS)
        typed = registry.read_typed(self.folder / FILE)
        super().__init__(isolated, database, typed, self.folder / KEPT_COLUMNS)
        self._compacting = asyncio.Lock()
        self._moment: int | None = None
        self._read_upto: dict[StreamKey, int] = {}
        """For each stream, the last change that was read. It is valid only while `_moment` equals the database's
        current moment, which changes with each commit."""
        self._own = OwnChanges()

    def _erase_beside(self, stream: StreamKey, found: Carriers) -> None:
        """Erase data in files other than the database.

        Remove the erased words from the terminal's input history. Delete the copies of the database that were made
        before repairs.
        """
        erase_typed(self.folder, stream, found.is_meant)
        delete_copies(self.folder)

    def subscribe(self, stream: StreamKey | None, told: Callable[[], None]) -> AbstractContextManager[None]:  # noqa: ARG002
        return contextlib.nullcontext()  # SQLite notifies no other process; callers poll, which is cheap here

    async def version(self) -> int:
        return await self._database.glance(last_change)

    def is_read(self, stream: StreamKey, upto: int) -> bool:
        """Return whether nothing can have changed in a stream since its changes up to `upto` were read."""
        self.tenant.own(stream)
        moment = self._database.moment()
        if moment is None or moment != self._moment:
            self._moment, self._read_upto = moment, {}
        return self._read_upto.get(stream) == upto

    def _note_own(self, number: int, commit: Commit, logged: Sequence[Logged]) -> None:
        self._own.add(number, commit, logged)

    async def own_changes(self, stream: StreamKey, since: int) -> tuple[list[Record | Revision], int] | None:
        """Return all changes of a stream after `since`, and the number to pass as `since` next time. None: another
        process has made some of these changes, or this process does not know them any more."""
        moment = self._moment  # taken before the read: a commit during the read makes it outdated
        known, turns = self._database.of_this_turn(), RESUMES
        if (number := known.get("version")) is None:
            number = known["version"] = await self.version()
        while (found := self._own.take(stream, since, number)) is None and turns:
            turns -= 1
            await asyncio.sleep(0)
        if found is not None and moment is not None and moment == self._moment:
            self._read_upto[stream] = found[1]
        return found

    async def changes(self, stream: StreamKey, since: int, after: int = 0, most: int | None = None) -> Changes:
        if not after and self.is_read(stream, since):
            return Changes(upto=since)
        moment = self._moment  # taken before the read: a commit during the read makes it outdated

        def look(connection: sqlite3.Connection) -> tuple[Changes, int]:
            changes = self._read_changes(connection, stream, since, after, most)
            return changes, last_change(connection)

        is_short = since > 0 and not after and most is not None
        changes, number = await (self._database.glance(look, together=True) if is_short else self._database.read(look))
        if not since and changes.ahead >= SEARCHED_FROM:
            self._index(stream)
        if not after and not changes.left:
            self._own.note_read(stream, changes.upto, number)
            if moment is not None and moment == self._moment:
                self._read_upto[stream] = changes.upto
        return changes

    def _changed(
        self, connection: sqlite3.Connection, stream: StreamKey, since: int, after: int, most: int | None
    ) -> tuple[Sequence[tuple[Any, ...]], int]:
        sql = f"SELECT {COLUMNS}, number FROM records WHERE {{}} AND changed > ? ORDER BY number"
        if most is None:
            return connection.execute(sql.format("stream = ?"), (stream, since)).fetchall(), 0
        left, is_short = 0, bool(since and not after)
        numbers = [row[0] for row in connection.execute(CHANGED, (stream, since, most + 1))] if is_short else []
        if not is_short or len(numbers) > most:
            numbers = in_sqlite.numbers_between(connection, stream, after, 2**62, most)
            left = numbers[-1] if len(numbers) >= most else 0
        rows: Iterable[tuple[Any, ...]] = connection.execute(
            sql.format(f"number IN ({','.join(map(str, numbers))})"), (since,)
        )
        return queries.cut_portion(rows, left)

    def _count_changed(self, connection: sqlite3.Connection, stream: StreamKey, since: int) -> int:
        return int(connection.execute(COUNT, (stream, since)).fetchone()[0])

    def _reader(self, connection: sqlite3.Connection, words: Sequence[str], n: int) -> in_sqlite.SqliteIndexReader:
        return in_sqlite.SqliteIndexReader(connection, words, n)

    async def _fill(self, stream: StreamKey) -> None:
        """Fill the index, one segment per transaction. The first segments are small, so that short-lived processes also
        complete some."""
        sizes, lost = itertools.chain([SMALL] * 2, itertools.repeat(LARGEST)), 0
        with contextlib.suppress(StorageError):  # the next call continues
            while lost < TRIES and (segment := await self._built(stream, next(sizes))):
                is_kept = await self._database.write(partial(in_sqlite.put, stream=stream, built=segment))
                lost = 0 if is_kept else lost + 1

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

    async def compact(self) -> None:
        async with self._compacting:  # concurrent calls would block each other; the second finds the work done
            stale = partial(outdated, self.columns_folder)
            if not await asyncio.to_thread(overwrite_where_due, self.folder, outdated=stale):
                await self._database.compact()


def copy_without(
    source: Path, target: Path, rows: Iterable[int], at: float, unrated: Iterable[str] = (), lost: Iterable[str] = ()
) -> None:
    """Copy a folder's database file without some rows of the log, and without the records that these rows wrote.

    Neither open nor finished work is copied.

    Args:
        rows: numbers of the log rows that are not copied.
        at: latest time of a record's last recall in the copy. A later recall is set to this time, because the times of
            earlier recalls are not stored.
        unrated: ids of records that have no importance in the copy, because they were rated later.
        lost: ids of further records that are not copied.

    Raises:
        InputError: the target contains a database file already.
        StorageError: one of the folders cannot be used.
    """
    path = private_folder(target) / FILE
    if path.exists():
        raise InputError(f"the target folder {target} already contains data: name another folder")
    private_database(path)
    with explain_errors(source / FILE), contextlib.closing(sqlite3.connect(source / FILE)) as connection:
        connection.execute("VACUUM INTO ?", (str(path),))
    with explain_errors(path), contextlib.closing(sqlite3.connect(path)) as connection:
        gone = [(row,) for row in rows]
        for table in ("log", "records", "checkpoints", "uniques"):
            connection.executemany(f"DELETE FROM {table} WHERE seq = ?", gone)
        connection.executemany("DELETE FROM records WHERE id = ?", [(each,) for each in lost])
        connection.execute("DELETE FROM work")
        connection.execute("UPDATE records SET accessed = ? WHERE accessed > ?", (at, at))
        connection.executemany("UPDATE records SET importance = NULL WHERE id = ?", [(each,) for each in unrated])
        connection.commit()
        connection.execute("VACUUM")
