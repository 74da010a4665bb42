"""Columns take what their own process commits without reading it back, and give the same as columns that read all."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keys import key_of

from mindstream import SqliteStore, caches
from mindstream.log.events import Logged, Remembered
from mindstream.memory.forgetting_curve import StrengthState
from mindstream.memory.store.columns import Columns
from mindstream.memory.store.index_cache import IndexCache
from mindstream.memory.store.record import Record, without_vectors
from mindstream.memory.store.sqlite import OwnChanges
from mindstream.memory.store.store import Changes, Commit, Entry, Revision
from mindstream.text.lexical import GrowingArray

NOW, ANN = 1e9, key_of("ann")
WAS = StrengthState(0, False, NOW)


class CountingStore(SqliteStore):
    """A store that counts how often changes are read from the database."""

    asked = 0

    async def changes(self, stream: str, since: int, after: int = 0, most: int | None = None) -> Changes:
        self.asked += 1
        return await super().changes(key_of(stream), since, after, most)


def a_record(n: int, **fields: object) -> Record:
    vector = np.zeros(8, np.float16)
    vector[n % 8] = 1
    usual = Record(
        id=f"record{n}", stream=ANN, kind="observation", text=f"The kettle of flat {n} sings", created=NOW,
        accessed=NOW, episode=str(n % 2), embedder="plain", vector=vector,
    )  # fmt: skip
    return replace(usual, **fields)  # type: ignore[arg-type]


def commit_of(*records: Record, revisions: tuple[Revision, ...] = ()) -> Commit:
    entries = (Entry(Remembered(count=len(records), kinds={}), "ann", records),) if records else ()
    return Commit(mind=ANN, at=NOW, entries=entries, revisions=revisions)


@pytest.fixture
async def store(folder: Path) -> AsyncIterator[CountingStore]:
    store = CountingStore(folder)
    await store.commit(commit_of(a_record(0), a_record(1)))
    yield store
    await store.close()


async def is_like_new(columns: Columns, store: SqliteStore) -> bool:
    """Return whether columns, and the records that they hold, equal those that are read from the database."""
    fresh = await IndexCache(store, "plain", 8).columns(ANN)
    arrays = [name for name, column in vars(fresh).items() if isinstance(column, GrowingArray)]
    same = all(np.array_equal(getattr(columns, a).values, getattr(fresh, a).values, equal_nan=True) for a in arrays)
    stored = list(without_vectors(await store.records(ANN, list(fresh.ids))))
    held = columns.held(columns.whole)
    return (
        same
        and columns.upto == fresh.upto
        and [repr(vars_of(held[each.id])) for each in stored] == list(map(repr, map(vars_of, stored)))
    )


def vars_of(record: Record) -> list[object]:
    return [getattr(record, name) for name in Record.__slots__]


@pytest.mark.parametrize(
    "commit",
    [
        commit_of(a_record(2), a_record(3, keywords=("tea",), importance=3, valid_until=2_000_000_000)),
        commit_of(a_record(4, data={"numbers": (1, 2), "of": {"x": [None, True, 1.5]}}, created=999_999_999)),
        commit_of(revisions=(Revision(id="record1", level=1, lasting=True, accessed=NOW + 5, was=WAS),)),
        commit_of(a_record(5), revisions=(Revision(id="record0", forgotten=NOW + 1), Revision(id="nobody", level=2))),
        commit_of(revisions=(Revision(id="record0", importance=7, valid_until=NOW + 9, superseded_by="record1"),)),
        commit_of(),
    ],
)
async def test_own_commits_are_not_read_back(store: CountingStore, commit: Commit) -> None:
    cache = IndexCache(store, "plain", 8)
    await cache.columns(ANN)
    asked = store.asked
    await store.commit(commit, replace(commit, entries=(), revisions=()))
    columns = await cache.columns(ANN)
    assert store.asked == asked
    assert await is_like_new(columns, store)


@pytest.mark.parametrize(
    "commit",
    [
        commit_of(a_record(6, kind="belief", slot="tea", version=1)),
        commit_of(revisions=(Revision(id="record1", vector=a_record(5).vector, embedder="plain"),)),
        commit_of(*(a_record(n) for n in range(10, 600))),
    ],
)
async def test_other_commits_are_read(store: CountingStore, commit: Commit) -> None:
    cache = IndexCache(store, "plain", 8)
    await cache.columns(ANN)
    asked = store.asked
    await store.commit(commit)
    columns = await cache.columns(ANN)
    assert store.asked > asked
    assert len(columns) == len(await store.records(ANN, ["record0", "record1"])) + sum(
        len(each.records) for each in commit.entries
    )


async def test_a_commit_of_another_process_in_between_is_read(store: CountingStore, folder: Path) -> None:
    cache, other = IndexCache(store, "plain", 8), SqliteStore(folder)
    await cache.columns(ANN)
    await store.commit(commit_of(a_record(2)))
    await other.commit(commit_of(a_record(3), revisions=(Revision(id="record2", level=4),)))
    await store.commit(commit_of(a_record(4)))
    assert await is_like_new(await cache.columns(ANN), store)
    await store.commit(commit_of(a_record(5)))
    assert await is_like_new(await cache.columns(ANN), store)
    await other.close()


async def test_commits_of_one_call_share_a_number_and_none_is_read_back(store: CountingStore) -> None:
    cache = IndexCache(store, "plain", 8)
    await cache.columns(ANN)
    before, asked = await store.version(), store.asked
    await store.commit(commit_of(a_record(2)), commit_of(a_record(3)))
    await store.commit(commit_of(a_record(4)))
    assert await store.version() == before + 2
    columns = await cache.columns(ANN)
    assert store.asked == asked
    assert await is_like_new(columns, store)


def block_until_written(path: Path, records: int) -> None:
    """Block the event loop, so that no task can resume, until a database has a number of records."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        while connection.execute("SELECT count(*) FROM records").fetchone() != (records,):
            time.sleep(0.01)
    time.sleep(0.05)


async def test_a_durable_commit_whose_task_has_not_resumed_is_not_read_back(store: CountingStore, folder: Path) -> None:
    cache = IndexCache(store, "plain", 8)
    await cache.columns(ANN)
    asked, committing = store.asked, asyncio.create_task(store.commit(commit_of(a_record(2))))
    await asyncio.sleep(0)
    block_until_written(folder / "mindstream.db", 3)
    columns = await cache.columns(ANN)
    assert (committing.done(), store.asked) == (True, asked)
    assert await is_like_new(columns, store)


async def test_an_own_commit_that_is_durable_before_a_read_returns_is_not_lost(
    store: CountingStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, other = IndexCache(store, "plain", 8), SqliteStore(folder)
    await cache.columns(ANN)
    await other.commit(commit_of(a_record(2)))
    glance = store._database.glance

    async def late(look: Callable[[sqlite3.Connection], Any], *, together: bool = False) -> object:
        found = await glance(look, together=together)
        if together:
            monkeypatch.undo()
            await store.commit(commit_of(a_record(3)))
        return found

    monkeypatch.setattr(store._database, "glance", late)
    assert len(await cache.columns(ANN)) == 3
    assert await is_like_new(await cache.columns(ANN), store)
    await other.close()


@pytest.mark.parametrize("is_known", [True, False])
def test_a_read_that_is_older_than_an_own_commit_does_not_hide_it(is_known: bool) -> None:
    own, logged = OwnChanges(), [Logged(2, ANN, NOW, "ann", Remembered(count=1, kinds={}))]
    if is_known:
        own.note_read(ANN, 1, 1)
    own.add(2, commit_of(a_record(2)), logged)
    own.note_read(ANN, 1, 1)
    assert own.take(ANN, 1, 2) is None
    own.note_read(ANN, 2, 2)
    assert own.take(ANN, 2, 2) == ([], 2)


def test_erased_words_do_not_wait_to_be_taken() -> None:
    own = OwnChanges()
    own.note_read(ANN, 1, 1)
    logged = [Logged(1, ANN, NOW, "ann", Remembered(count=1, kinds={}))]
    own.add(2, commit_of(a_record(2)), logged)
    caches.empty(ANN)
    assert own.take(ANN, 1, 2) is None
    own.note_read(ANN, 2, 2)
    own.add(3, commit_of(a_record(3)), logged)
    assert own.take(ANN, 2, 3) == ([a_record(3, seq=1)], 3)
    assert own.take(ANN, 3, 3) == ([], 3)


def test_a_commit_after_the_number_was_read_hides_no_commit_of_another_process() -> None:
    own = OwnChanges()
    own.note_read(ANN, 1, 1)
    logged = [Logged(1, ANN, NOW, "ann", Remembered(count=1, kinds={}))]
    own.add(3, commit_of(a_record(3)), logged)  # 2 is a commit of another process
    assert own.take(ANN, 1, 1) == ([], 1)
    assert own.take(ANN, 1, 3) is None
    own.note_read(ANN, 3, 3)
    own.add(4, commit_of(a_record(4)), logged)
    assert own.take(ANN, 3, 3) == ([a_record(4, seq=1)], 4)
    assert own.take(ANN, 4, 4) == ([], 4)
