"""Columns are filled in portions: the event loop runs between them, and writes in between are included."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest
from keys import key_of
from world import Words

from mindstream import ManualClock, Memory, SqliteStore
from mindstream.log.events import Remembered
from mindstream.memory.store.columns import PORTION, Columns
from mindstream.memory.store.index_cache import IndexCache
from mindstream.memory.store.record import Record, new_id
from mindstream.memory.store.store import Changes, Commit, Entry, Revision
from mindstream.service.privacy.erase import erase_person

NOW = 1e9
PORTIONS = 10


class CountingStore(SqliteStore):
    """A store that counts requests for changes and the returned rows; a test may act in between."""

    asked = given = 0
    between: Callable[[], None] | None = None

    async def changes(self, stream: str, since: int, after: int = 0, most: int | None = None) -> Changes:
        self.asked += 1
        if after and self.between:
            self.between()
        changes = await super().changes(key_of(stream), since, after, most)
        self.given += len(changes.records)
        return changes


def some(count: int, first: int = 0) -> list[Record]:
    texts = (f"turn {n} about thing{n % 7}" for n in range(first, first + count))
    vector = np.full(8, 8**-0.5, np.float16)
    return [
        Record(
            id=new_id(NOW), stream=key_of("ann"), kind="chat", text=text, created=NOW, accessed=NOW, episode=text[-1],
            embedder="plain", vector=vector,
        )
        for text in texts
    ]  # fmt: skip


def writing(*records: Record) -> Commit:
    return Commit(mind=key_of("ann"), at=NOW, entries=(Entry(Remembered(count=1, kinds={}), "test", records),))


@pytest.fixture
async def store(folder: Path) -> AsyncIterator[CountingStore]:
    store = CountingStore(folder)
    await store.commit(writing(*some(PORTION * PORTIONS - 1)))
    yield store
    await store.close()


async def reached(store: CountingStore, asked: int) -> None:
    """Wait until a number of portions was requested from the store."""
    for _ in range(100_000):
        if store.asked >= asked:
            return
        await asyncio.sleep(0)


async def like_new(columns: Columns, store: SqliteStore) -> None:
    """Compare columns with ones that are filled at once."""
    fresh = await IndexCache(store, "plain", 8).columns(key_of("ann"))
    live = [id_ for id_ in columns.ids if id_ in columns.position]
    assert live == list(fresh.ids)
    if not columns.traces:
        assert np.array_equal(columns.before.values, fresh.before.values)
        assert np.array_equal(columns.level.values, fresh.level.values)
        assert np.array_equal(columns.lexical.scores(["thing3"]), fresh.lexical.scores(["thing3"]))


async def test_the_event_loop_runs_between_portions(store: CountingStore) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    await IndexCache(store, "plain", 8).columns(key_of("ann"))
    beside.cancel()
    assert turns >= PORTIONS


async def test_concurrent_recalls_share_one_filling(store: CountingStore) -> None:
    shelf = IndexCache(store, "plain", 8)
    found = await asyncio.gather(*(shelf.columns(key_of("ann")) for _ in range(8)))
    assert all(columns is found[0] for columns in found)
    assert len(found[0]) == store.given == PORTION * PORTIONS - 1
    assert store.asked <= PORTIONS + 2 + 7  # each of the others asks once whether there is more


async def test_a_cancelled_filling_is_continued(store: CountingStore) -> None:
    shelf = IndexCache(store, "plain", 8)
    filling = asyncio.create_task(shelf.columns(key_of("ann")))
    await reached(store, PORTIONS // 2)
    filling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await filling
    await like_new(await shelf.columns(key_of("ann")), store)
    assert store.asked <= 2 * (PORTIONS + 2)


async def test_writes_between_portions_are_included(store: CountingStore, folder: Path) -> None:
    shelf, other = IndexCache(store, "plain", 8), SqliteStore(folder)
    first = (await store.changes("ann", 0)).records
    filling = asyncio.create_task(shelf.columns(key_of("ann")))
    for n in range(3):
        await reached(store, 2 + 2 * n)
        await other.commit(writing(*some(3, 10_000 + n)))
        await other.commit(
            Commit(
                mind=key_of("ann"),
                at=NOW,
                revisions=(Revision(id=first[n].id, level=4), Revision(id=first[-n].id, level=5)),
            )
        )
    await filling
    await like_new(await shelf.columns(key_of("ann")), store)
    await other.close()


async def test_records_erased_between_portions_are_not_found(store: CountingStore, folder: Path) -> None:
    shelf, other = IndexCache(store, "plain", 8), SqliteStore(folder)
    records = (await store.changes("ann", 0)).records
    filling = asyncio.create_task(shelf.columns(key_of("ann")))
    await reached(store, 4)
    erasing = threading.Thread(target=asyncio.run, args=(other.erase(key_of("ann"), [records[1].id, records[-1].id]),))
    erasing.start()
    erasing.join()  # the fill reads nothing until this has ended
    columns = await filling
    assert records[1].id not in columns.position
    assert records[-1].id not in columns.position
    await like_new(await shelf.columns(key_of("ann")), store)
    assert not (await shelf.columns(key_of("ann"))).traces
    await other.close()


async def test_columns_of_a_user_erased_during_filling_are_dropped(store: CountingStore, folder: Path) -> None:
    shelf, other = IndexCache(store, "plain", 8), SqliteStore(folder)
    filling = asyncio.create_task(shelf.columns(key_of("ann")))
    await reached(store, PORTIONS // 2)
    erasing = threading.Thread(target=asyncio.run, args=(erase_person(other, "ann", ManualClock()),))
    erasing.start()
    erasing.join()  # the fill reads nothing until this has ended
    assert len(await filling) == 0
    assert len(await shelf.columns(key_of("ann"))) == 0
    await other.close()


async def test_continuous_erasure_does_not_block_recall(store: CountingStore, folder: Path) -> None:
    stream, other = Memory(store, "ann", Words(), ManualClock()), SqliteStore(folder)
    left = [record.id for record in (await store.changes("ann", 0)).records]

    async def erase() -> None:
        while left:
            await other.erase(key_of("ann"), [left.pop(0)])

    erasing = asyncio.create_task(erase())
    found = await asyncio.wait_for(stream.recall("thing3", touch=False), 100)
    assert found
    erasing.cancel()
    await asyncio.gather(erasing, return_exceptions=True)
    await other.close()
