import gc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from keys import key_of

from mindstream.clock import SystemClock
from mindstream.identifiers import StreamKey
from mindstream.log.events import Remembered
from mindstream.memory.memory import Memory
from mindstream.memory.recall.recall import HELD_AT_ONCE
from mindstream.memory.store import index_cache
from mindstream.memory.store.columns import WHOLE_OF_STREAM, Columns
from mindstream.memory.store.index_cache import IndexCache
from mindstream.memory.store.record import Record, RecordDraft, new_id
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Changes, Commit, Entry, Revision
from mindstream.models.embedders.embedder import WordLlama, embedder

NOW = 1_700_000_000.0


def a_record(text: str, episode: str = "", stream: str = "ann", width: int = 8) -> Record:
    vector = np.random.default_rng(len(text)).standard_normal(width).astype(np.float16)
    return Record(
        id=new_id(NOW), stream=key_of(stream), kind="chat", text=text, created=NOW, accessed=NOW, episode=episode,
        embedder="e", vector=vector,
    )  # fmt: skip


async def write(store: SqliteStore, *records: Record) -> None:
    entry = Entry(Remembered(count=len(records), kinds={}), "test", records)
    await store.commit(Commit(mind=records[0].stream, at=NOW, entries=(entry,)))


async def fill(columns: Columns, store: SqliteStore) -> None:
    async for _ in columns.reading(store):
        pass


async def test_cached_columns_include_writes_of_another_store(store: SqliteStore, folder: Path) -> None:
    shelf, other = IndexCache(store, "e", 8), SqliteStore(folder)
    await write(store, a_record("one"))
    assert len(await shelf.columns(key_of("ann"))) == 1
    record = a_record("two")
    await write(other, record)
    assert (await shelf.columns(key_of("ann"))).ids[-1] == record.id
    await other.commit(Commit(mind=key_of("ann"), at=NOW, revisions=(Revision(id=record.id, level=3),)))
    assert (await shelf.columns(key_of("ann"))).level.values[-1] == 3
    await other.erase(key_of("ann"), [record.id])
    assert record.id not in (await shelf.columns(key_of("ann"))).position
    await other.close()


async def test_incremental_filling_gives_the_same_columns(store: SqliteStore) -> None:
    gradual = Columns(key_of("ann"), "e", 8)
    for i in range(40):
        await write(store, a_record(f"turn {'x' * i} {i}?", f"{i % 3}"))
        await fill(gradual, store)
    at_once = Columns(key_of("ann"), "e", 8)
    await fill(at_once, store)
    query, everything = np.ones(8, np.float32) / 8**0.5, np.ones(40, bool)
    assert list(gradual.ids) == list(at_once.ids)
    assert np.array_equal(gradual.before.values, at_once.before.values)
    one, two = (c.vectors.near(query, everything, lambda: np.arange(40)) for c in (gradual, at_once))
    assert np.allclose(one[1], two[1], atol=0.01)
    assert np.array_equal(gradual.lexical.scores(["turn", "7"]), at_once.lexical.scores(["turn", "7"]))


async def test_streams_of_a_store_share_an_index_cache_bounded_by_records(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    streams = [Memory(store, name, embedder("wordllama"), SystemClock()) for name in ("a", "b", "c")]
    for stream in streams:
        await stream.retain_all([RecordDraft(text=f"thing {n} of {stream.name}") for n in range(10)])
    shelves = {id(stream._recaller.shelf) for stream in streams}
    assert len(shelves) == 1
    shelf = streams[0]._recaller.shelf
    shelf._records = 25
    for stream in streams:
        assert len(await stream.recall("thing", k=3)) == 3
    assert list(shelf._held) == ["b", "c"]
    shelf._records = 5
    assert len((await streams[0].columns()).ids) == 10, "the requested stream is cached, whatever its size"
    assert list(shelf._held) == ["a"]
    for stream in streams:
        await stream.close()
    await store.close()


async def test_a_recaller_is_freed_with_its_last_stream(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    for n in range(5):
        async with Memory(store, f"mind {n}", WordLlama(), SystemClock()) as stream:
            await stream.retain("a kettle")
            assert (await stream.recall("kettle"))[0].record.text == "a kettle"
    del stream
    gc.collect()
    assert len(vars(store)["_recallers"]) == 0
    await store.close()


def test_only_the_newest_records_of_a_stream_are_held_whole() -> None:
    ann = Columns(key_of("ann"), "e", 8)
    first = a_record("the first")
    ann.take(Changes([first, *(a_record(f"line {n}") for n in range(WHOLE_OF_STREAM))]))
    assert first.id not in ann.whole
    assert len(ann.whole) == WHOLE_OF_STREAM
    ann.take(Changes([replace(first, level=2)]))  # changed: it is held again in its new state
    assert ann.held([first.id])[first.id].level == 2
    assert len(ann.whole) == WHOLE_OF_STREAM


async def test_the_streams_unused_for_the_longest_time_hold_fewer_records_whole(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_cache, "WHOLE", 20)
    shelf, names = IndexCache(store, "e", 8), ("ann", "bob", "cleo")
    for name in names:
        await write(store, *(a_record(f"line {n} of {name}", stream=name) for n in range(8)))
        await shelf.columns(key_of(name))
    ann, bob, cleo = [await shelf.columns(key_of(name)) for name in names]
    assert [len(each.whole) for each in (ann, bob, cleo)] == [6, 6, 8]  # of 24 records, ann's and bob's first two
    assert list(ann.whole) == ann.ids[2:]
    await write(store, a_record("the last", stream="ann"))
    await shelf.columns(key_of("ann"))
    assert [len(each.whole) for each in (ann, bob, cleo)] == [7, 4, 8]  # bob was used before cleo


async def test_columns_that_a_recall_still_uses_hold_no_erased_texts(store: SqliteStore) -> None:
    shelf = IndexCache(store, "e", 8)
    await write(store, a_record("a secret"))
    columns = await shelf.columns(key_of("ann"))
    assert len(columns.whole) == 1
    shelf.forget(key_of("ann"))
    assert not columns.whole


@pytest.mark.parametrize("meanwhile", ["nothing", "a change", "an erasure"])
async def test_a_recall_holds_the_records_it_reads_unless_the_stream_changed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    store = SqliteStore(tmp_path)
    async with Memory(store, "ann", WordLlama(), SystemClock()) as memory:
        await memory.retain("The kettle is green.")
        (kettle,) = [each.record for each in await memory.recall("kettle", touch=False)]
        (await memory.columns()).whole.clear()
        read, changed = store.records, list[str]()

        async def slow(stream: StreamKey, ids: Sequence[str]) -> list[Record]:
            found = await read(stream, ids)
            if not changed and meanwhile != "nothing":
                changed.append(meanwhile)
                await (memory.forget(kettle.id) if meanwhile == "an erasure" else memory.retain("The pot is red."))
                await memory.columns()
            return found

        monkeypatch.setattr(store, "records", slow)
        found = await memory.recall("kettle", touch=False)
        assert [each.record for each in found] == [kettle]  # as of the beginning of the recall
        assert (kettle.id in (await memory.columns()).whole) == (meanwhile == "nothing")
        if meanwhile == "an erasure":
            assert not await memory.recall("kettle", touch=False)
    await store.close()


async def test_a_long_list_displaces_no_held_records(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    async with Memory(store, "ann", WordLlama(), SystemClock()) as memory:
        await memory.retain_all([RecordDraft(text=f"note {n}") for n in range(HELD_AT_ONCE + 1)])
        (columns := await memory.columns()).whole.clear()
        assert len(await memory.find(None)) == HELD_AT_ONCE + 1
        assert not columns.whole
        await memory.find(3)
        assert len(columns.whole) == 3
    await store.close()


async def test_ended_versions_of_a_slot_are_not_held(store: SqliteStore) -> None:
    shelf = IndexCache(store, "e", 8)
    for version in (1, 2, 3):
        await write(store, replace(a_record(f"belief {version}"), kind="belief", slot="sleep", version=version))
        columns = await shelf.columns(key_of("ann"))
    assert len(columns) == 3
    assert [record.text for record in columns.held(columns.whole).values()] == ["belief 3"]


def test_only_vectors_that_can_get_a_neighbour_are_kept_apart() -> None:
    columns = Columns(key_of("ann"), "e", 8)
    alone, first, second = a_record("alone"), a_record("first", episode="a"), a_record("second", episode="a")
    columns.take(Changes(records=[alone, first, second], upto=1))
    assert columns.vectors.state()["alone_at"].tolist() == [2]
