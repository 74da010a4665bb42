"""A store reports its changes from one snapshot, in portions; validity at a moment."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from keys import key_of

from mindstream.clock import ManualClock
from mindstream.errors import Conflict
from mindstream.log.events import Remembered
from mindstream.memory.forgetting_curve import StrengthState
from mindstream.memory.memory import Memory
from mindstream.memory.store import erasure as carriers
from mindstream.memory.store.queries import next_change, write
from mindstream.memory.store.record import Kind, Record, new_id
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Commit, Entry, Erasure, Revision
from mindstream.models.embedders.embedder import WordLlama

EVENT = Remembered(count=1, kinds={"note": 1})


def a_record(text: str, kind: Kind = "note", stream: str = "ann", at: float = 1e9) -> Record:
    return Record(id=new_id(at), stream=key_of(stream), kind=kind, text=text, created=at, accessed=at)


def writing(*records: Record) -> Commit:
    return Commit(mind=records[0].stream, at=1e9, entries=(Entry(EVENT, "ann", records),))


async def test_a_record_is_current_until_valid_until_for_every_reader(store: SqliteStore) -> None:
    ends = replace(a_record("the shop is closed"), valid_until=2e9)
    await store.commit(writing(ends))
    for now, holds in ((1.5e9, True), (2e9, False), (3e9, False)):
        assert bool(await store.latest(key_of("ann"), ["note"], now=now)) is holds
        assert bool(await store.find_same(key_of("ann"), "note", ["The shop is closed."], now=now)) is holds
    again = Entry(EVENT, "ann", (a_record("the shop is closed"),), distinct=True)
    with pytest.raises(Conflict):
        await store.commit(Commit(mind=key_of("ann"), at=1.5e9, entries=(again,)))
    sooner = Revision(id=ends.id, valid_until=1.6e9, holds=True)
    await store.commit(Commit(mind=key_of("ann"), at=1.5e9, revisions=(sooner,)))
    with pytest.raises(Conflict):
        await store.commit(Commit(mind=key_of("ann"), at=1.7e9, revisions=(sooner,)))
    await store.commit(Commit(mind=key_of("ann"), at=1.7e9, entries=(again,)))


async def test_revisions_of_one_commit_are_written_all_or_not_at_all(store: SqliteStore) -> None:
    records = [a_record(text) for text in ("one", "two", "three", "four")]
    await store.commit(writing(*records))
    key, was = key_of("ann"), StrengthState(0, False, 1e9)
    revised = [Revision(id=each.id, level=1, accessed=2e9, was=was) for each in records]
    changed = replace(revised[2], was=StrengthState(5, False, 1e9))
    with pytest.raises(Conflict):
        await store.commit(Commit(mind=key, at=1e9, revisions=(*revised[:2], changed, revised[3])))
    assert [each.level for each in await store.latest(key, n=4, now=1e9)] == [0] * 4
    with contextlib.closing(sqlite3.connect(store._database.path, isolation_level=None)) as connection:
        connection.execute("UPDATE records SET level = 99999 WHERE id = ?", (records[1].id,))  # damaged: read as 0
    await store.commit(Commit(mind=key, at=1e9, revisions=(*revised, Revision(id=records[0].id, importance=3.0))))
    assert [each.level for each in await store.latest(key, n=4, now=1e9)] == [1] * 4
    assert (await store.records(key, [records[0].id]))[0].importance == 3


async def test_changes_are_read_from_one_snapshot(folder: Path) -> None:
    store = SqliteStore(folder)
    kept, gone, new = (a_record(text) for text in ("kept", "gone", "new"))
    await store.commit(writing(kept, gone))
    upto = (await store.changes(key_of("ann"), 0)).upto
    between: list[Callable[[sqlite3.Connection], object]] = [
        lambda connection: write(connection, [writing(new)]),
        lambda connection: carriers.erase(
            connection,
            key_of("ann"),
            carriers.find(connection, key_of("ann"), Erasure(ids=(gone.id,))),
            next_change(connection),
        ),
    ]

    def interfere(statement: str) -> None:
        if between and "erased" in statement:
            with contextlib.closing(sqlite3.connect(store._database.path, isolation_level=None)) as connection:
                for write in between:
                    write(connection)
            between.clear()

    store._database._watch.set_trace_callback(interfere)
    seen, erased = set[str](), set[str]()
    await store.commit(writing(a_record("else nobody reads")))
    for _ in range(3):
        changes = await store.changes(key_of("ann"), upto)
        seen |= {record.id for record in changes.records}
        erased |= set(changes.gone)
        upto = changes.upto
    assert not between
    assert new.id in seen
    assert gone.id in erased
    await store.close()


async def test_recall_reads_the_store_only_after_another_process_has_written(folder: Path) -> None:
    store, other = SqliteStore(folder), SqliteStore(folder)
    here, there = (Memory(each, "ann", WordLlama(), ManualClock()) for each in (store, other))
    record = await here.retain("The key is under the mat.")
    assert [each.record.id for each in await here.recall("key", touch=False)] == [record.id]
    statements: list[str] = []

    def read(statement: str) -> None:
        if statement != "PRAGMA data_version":
            statements.append(statement)

    for connection in (store._database._readers._idle[0], store._database._watch):
        connection.set_trace_callback(read)
    assert [each.record.id for each in await here.recall("the mat", touch=False)] == [record.id]
    assert statements == []
    await there.correct(record.id, "The key is under the pot.")
    assert [each.record.text for each in await here.recall("key", touch=False)] == ["The key is under the pot."]
    assert statements
    await store.close()
    await other.close()


async def test_reads_in_one_turn_of_the_event_loop_look_for_commits_of_others_once(folder: Path) -> None:
    async with Memory(folder, "ann") as here, Memory(folder, "ann") as there:
        await here.retain("The key is under the mat.")
        await here.find()
        await asyncio.sleep(0)
        looks: list[str] = []
        assert isinstance(here.store, SqliteStore)
        here.store._database._watch.set_trace_callback(looks.append)
        for _ in range(3):
            assert len(await here.find()) == 1
        assert looks == ["PRAGMA data_version"]
        await asyncio.sleep(0)
        assert len(await here.find()) == 1 and len(looks) == 2
        await there.retain("The cat is in the garden.")
        assert len(await here.find()) == 2
