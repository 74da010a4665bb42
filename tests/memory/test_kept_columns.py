"""Columns of a long stream are saved in a file next to the store; without one, recall ranks candidates."""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from keys import key_of
from world import Words

from mindstream import ManualClock, Memory, RecordDraft, SqliteStore, caches
from mindstream.log.events import Remembered
from mindstream.memory.recall.recall import Recaller
from mindstream.memory.store import columns as columns_module
from mindstream.memory.store import index_cache, vectors
from mindstream.memory.store.columns import Columns
from mindstream.memory.store.index_cache import IndexCache
from mindstream.memory.store.kept_columns import PAGE, ROOM, summed
from mindstream.memory.store.record import Record
from mindstream.memory.store.sql_store import ErasureWatch
from mindstream.memory.store.store import Commit, Entry
from mindstream.service.privacy.erase import erase_person
from mindstream.text.lexical import GrowingArray

ANN = key_of("ann")
FEW = 40
MANY = 600


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_cache, "KEPT_FROM", 200)
    monkeypatch.setattr(index_cache, "SOON", 2 * FEW)


@pytest.fixture
async def filled(folder: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(folder)
    await write(store, MANY)
    yield store
    await store.close()


async def write(store: SqliteStore, count: int, first: int = 0) -> None:
    drafts = [
        RecordDraft(
            text=f"thing{n % 37} stood near place{n % 11}, said {n}{'?' * (n % 5 == 0)}",
            kind="note" if n % 9 == 0 else "chat", by=("ann", "coach")[n % 2], episode=f"talk {n // 20}",
            keywords=(f"Key{n % 7}",), data={"by_user": n % 2 == 0, "n": n % 13, "long": [n]} if n % 3 else {},
        )
        for n in range(first, first + count)
    ]  # fmt: skip
    async with Memory(store, "ann", Words(), ManualClock(), seed=first) as memory:
        await memory.retain_all(drafts)


async def kept(folder: Path) -> Path:
    """Let a process store the columns, and return their file."""
    store = SqliteStore(folder)
    shelf = IndexCache(store, "words", 96)
    await shelf.columns(ANN)
    await shelf.settled()
    await store.close()
    (path,) = (folder / "columns").iterdir()
    return path


def put(path: Path, content: bytes | bytearray) -> None:
    """Replace a file that may be mapped by another."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def files_with(folder: Path, words: bytes) -> list[Path]:
    """Return the files that contain some words."""
    return [path for path in folder.rglob("*") if path.is_file() and words in path.read_bytes()]


def assert_equal_columns(one: Columns, other: Columns) -> None:
    """Compare mapped columns with filled ones."""
    assert list(one.ids) == list(other.ids)
    for each in (one, other):
        each.vectors.cosines(np.zeros(96, np.float32), np.arange(1))
    for holder, same in ((one, other), (one.lexical, other.lexical), (one.vectors, other.vectors)):
        for name, column in vars(holder).items():
            if isinstance(column, GrowingArray):
                assert np.array_equal(column.values, vars(same)[name].values, equal_nan=column.values.dtype.kind == "f")
    assert all(one.position[id_] == other.position[id_] for id_ in other.ids)
    assert (one.names, one.episodes, one.named) == (other.names, other.episodes, other.named)
    assert one.speakers.state() == other.speakers.state()
    for word in ("thing3", "place2", "said", "599", "none"):
        assert np.array_equal(one.lexical.scores([word]), other.lexical.scores([word]))
        assert one.lexical.counts([word]) == other.lexical.counts([word])
    assert [one.keywords.of(f"key{n}").tolist() for n in range(8)] == [
        other.keywords.of(f"key{n}").tolist() for n in range(8)
    ]
    for value in (None, 3, 3.0, "3", True):
        assert np.array_equal(one.fields.having("n", value, len(one)), other.fields.having("n", value, len(one)))
    assert one.fields.large("long") == other.fields.large("long")
    query, everything = np.full(96, 96**-0.5, np.float32), np.ones(len(one), np.bool_)
    mine, its = (each.vectors.near(query, everything, lambda: np.arange(9)) for each in (one, other))
    assert np.array_equal(mine[0], its[0])
    assert np.array_equal(mine[1], its[1])


async def test_stored_columns_equal_columns_built_from_the_store(filled: SqliteStore, folder: Path) -> None:
    path = await kept(folder)
    assert path.stat().st_mode & 0o777 == 0o600
    shelf = IndexCache(filled, "words", 96)
    columns = await shelf.columns(ANN)
    assert columns.kept == MANY
    fresh = Columns(ANN, "words", 96)
    async for _ in fresh.reading(filled):
        pass
    assert_equal_columns(columns, fresh)


async def test_columns_of_a_file_hold_no_more_texts_and_the_freed_memory_is_returned(
    filled: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns_module, "WHOLE_OF_STREAM", FEW)
    shelf, released = IndexCache(filled, "words", 96), list[int]()
    monkeypatch.setattr(index_cache, "release_heap", lambda: released.append(len(shelf._held[ANN])))
    await shelf.columns(ANN)
    await shelf.settled()
    await write(filled, FEW // 2, MANY)
    columns = await shelf.columns(ANN)
    await shelf.settled()
    assert released == [MANY]
    assert columns.kept == MANY
    assert set(columns.whole) == set(columns.ids[-FEW:])


async def test_later_writes_are_added_and_columns_are_stored_again(filled: SqliteStore, folder: Path) -> None:
    path = await kept(folder)
    before = path.read_bytes()
    await write(filled, 2 * FEW, MANY)
    shelf = IndexCache(filled, "words", 96)
    assert (await shelf.columns(ANN)).kept == MANY
    async with Memory(filled, "ann", Words(), ManualClock()) as memory:
        await memory.recall("thing3 near place4", 5)
    await memory._recaller.shelf.settled()  # only one process writes the file at a time
    await shelf.settled()
    await shelf.columns(ANN)
    await shelf.settled()
    assert path.read_bytes() != before
    mapped = await shelf.columns(ANN)
    assert mapped.kept == MANY + 2 * FEW
    await write(filled, 3, 2 * MANY)
    fresh = Columns(ANN, "words", 96)
    async for _ in fresh.reading(filled):
        pass
    assert_equal_columns(await shelf.columns(ANN), fresh)


async def test_records_written_during_saving_are_counted_once(filled: SqliteStore, folder: Path) -> None:
    shelf = IndexCache(filled, "words", 96)
    await shelf.columns(ANN)
    first = MANY
    while shelf._keeping:
        if first < MANY + 50:  # the mean of the vectors is measured again when a stream has grown by an eighth
            await write(filled, 1, first)
            first += 1
        await shelf.columns(ANN)
        await asyncio.sleep(0.001)
    fresh, mapped = Columns(ANN, "words", 96), await IndexCache(filled, "words", 96).columns(ANN)
    assert mapped.kept >= MANY
    assert len(mapped) == first
    async for _ in fresh.reading(filled):
        pass
    assert_equal_columns(mapped, fresh)


@pytest.mark.parametrize("place", [4, 40, ROOM + 7, -5])
async def test_a_damaged_columns_file_is_rebuilt(filled: SqliteStore, folder: Path, place: int) -> None:
    path = await kept(folder)
    content = bytearray(path.read_bytes())
    content[place] ^= 255
    put(path, content if place >= 0 else content[:place])
    shelf = IndexCache(filled, "words", 96)
    columns = await shelf.columns(ANN)
    assert columns.kept == 0
    assert len(columns) == MANY
    await shelf.settled()
    assert (await IndexCache(filled, "words", 96).columns(ANN)).kept == MANY


def test_the_checksum_differs_after_any_change_of_a_byte_and_for_moved_pages() -> None:
    content = np.random.default_rng(5).integers(0, 256, 4 * PAGE + 100, np.uint8)

    def sum_of(some: np.ndarray) -> int:
        return summed(memoryview(some.tobytes()), PAGE, len(content) - PAGE)

    moved = np.concatenate(
        (content[:PAGE], content[2 * PAGE : 3 * PAGE], content[PAGE : 2 * PAGE], content[3 * PAGE :])
    )
    assert sum_of(moved) != sum_of(content)
    blank = content.copy()
    blank[2 * PAGE : 3 * PAGE] = 0
    assert sum_of(blank) != sum_of(content)
    for place in range(PAGE, len(content), 37):
        changed = content.copy()
        changed[place] ^= 1 << place % 8
        assert sum_of(changed) != sum_of(content)


async def test_damage_in_a_columns_file_is_detected_in_the_background(filled: SqliteStore, folder: Path) -> None:
    path = await kept(folder)
    content = bytearray(path.read_bytes())
    place = content.index((await IndexCache(filled, "words", 96).columns(ANN)).vectors.sums.values[7].tobytes())
    content[place] ^= 255
    put(path, content)
    shelf = IndexCache(filled, "words", 96)
    assert (await shelf.columns(ANN)).kept == MANY
    await shelf.settled()
    fresh = Columns(ANN, "words", 96)
    async for _ in fresh.reading(filled):
        pass
    assert_equal_columns(await shelf.columns(ANN), fresh)


async def test_a_columns_file_of_another_store_is_ignored(filled: SqliteStore, folder: Path, tmp_path: Path) -> None:
    path = await kept(folder)
    async with SqliteStore(tmp_path / "other") as other:
        await write(other, MANY, 10_000)
        (tmp_path / "other" / "columns").mkdir()
        path.rename(tmp_path / "other" / "columns" / path.name)
        columns = await IndexCache(other, "words", 96).columns(ANN)
        assert columns.kept == 0
        assert len(columns) == MANY
    assert (await IndexCache(filled, "another", 96).columns(ANN)).kept == 0


async def test_erased_records_are_in_no_columns_file(filled: SqliteStore, folder: Path) -> None:
    await kept(folder)
    async with Memory(filled, "ann", Words(), ManualClock()) as memory:
        gone = (await memory.recall("thing3", 1, touch=False))[0].record
        await memory.forget(gone.id)
        assert not list((folder / "columns").iterdir())
        assert gone.id not in [each.record.id for each in await memory.recall("thing3", 9, touch=False)]
        await memory._recaller.shelf.settled()
    await kept(folder)
    assert len(files_with(folder, b"talk 29")) == 2
    async with SqliteStore(folder) as other:  # a process that dies before it has deleted the file
        secret = (folder / "columns").iterdir().__next__()
        content = secret.read_bytes()
        await other.erase(ANN)
        put(secret, content)
        await other.compact()
    assert not files_with(folder, b"talk 29")


async def test_records_erased_on_another_machine_are_not_found(filled: SqliteStore, folder: Path) -> None:
    path = await kept(folder)
    content = path.read_bytes()
    (gone,) = (await filled.candidates(ANN, None, [], 1))[-1:]
    await filled.erase(ANN, [gone.id])
    put(path, content)
    columns = await IndexCache(filled, "words", 96).columns(ANN)
    assert gone.id not in columns.position
    assert not columns.traces


async def test_one_process_writes_a_columns_file_and_leftovers_are_overwritten(
    filled: SqliteStore, folder: Path
) -> None:
    path = await kept(folder)
    half = path.with_name(f".{path.name}.new")
    path.rename(half)
    before = half.stat().st_ino
    with half.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        shelf = IndexCache(filled, "words", 96)
        await shelf.columns(ANN)
        await shelf.settled()
        assert [each.name for each in (folder / "columns").iterdir()] == [half.name]
    await shelf.columns(ANN)
    await shelf.settled()
    assert [each.name for each in (folder / "columns").iterdir()] == [path.name]
    assert path.stat().st_ino == before
    assert (await IndexCache(filled, "words", 96).columns(ANN)).kept == MANY


async def test_a_cancelled_write_leaves_no_columns_file(filled: SqliteStore, folder: Path) -> None:
    shelf = IndexCache(filled, "words", 96)
    await shelf.columns(ANN)
    (writing,) = shelf._keeping.values()
    for _ in range(100_000):
        await asyncio.sleep(0)
        if files_with(folder / "columns", b""):
            break
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    assert not list((folder / "columns").iterdir())


async def test_mapped_columns_use_little_of_the_cache_and_the_oldest_are_evicted(
    filled: SqliteStore, folder: Path
) -> None:
    await kept(folder)
    shelf = IndexCache(filled, "words", 96, records=MANY // 8)
    await shelf.columns(ANN)
    for name in ("bob", "eve"):
        async with Memory(filled, name, Words(), ManualClock()) as memory:
            await memory.retain_all([RecordDraft(text=f"{name} {n}") for n in range(MANY // 20)])
        await shelf.columns(key_of(name))
    assert list(shelf._held) == [key_of("bob"), key_of("eve")]
    await shelf.columns(ANN)
    assert list(shelf._held) == [key_of("eve"), ANN]


async def test_recall_uses_candidates_until_columns_are_loaded_and_reports_it(filled: SqliteStore) -> None:
    async with Memory(filled, "ann", Words(), ManualClock()) as memory:
        found = await memory.recall(f"said {MANY - 1} near thing3", 3)
        assert found.by_candidates
        assert found[0].record.text.startswith("thing7 stood near place5, said 599")
        shelf = memory._recaller.shelf
        assert shelf._behind
        await memory.settle()  # touches do not wait for the whole
        await shelf.settled()
        again = await memory.recall("said 3 near thing3", 3, touch=False)
        assert not again.by_candidates
        assert "said 3" in again[0].record.text
        assert memory.columns_held() is not None


async def test_with_a_columns_file_the_first_recall_needs_no_candidates(filled: SqliteStore, folder: Path) -> None:
    await kept(folder)
    async with Memory(filled, "ann", Words(), ManualClock()) as memory:
        found = await memory.recall("said 3 near thing3", 3, touch=False)
        assert not found.by_candidates
        assert "said 3" in found[0].record.text


async def test_columns_are_filled_in_the_background_after_the_answer(
    filled: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_cache, "REST_S", 0.001)
    monkeypatch.setattr(index_cache, "RESTS", 10**9)
    shelf = IndexCache(filled, "words", 96)
    with shelf.answering():
        assert await shelf.at_hand(ANN) is None
        begun = len(shelf._held[ANN])
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert len(shelf._held[ANN]) == begun < MANY
    await shelf.settled()
    assert len(shelf._held[ANN]) == MANY


async def test_older_vectors_are_found_while_columns_are_filled_in_the_background(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "EXACT_UP_TO", FEW)
    monkeypatch.setattr(columns_module, "PORTION", FEW // 2)
    monkeypatch.setattr(index_cache, "REST_S", 3_600)
    units = np.random.default_rng(1).normal(size=(5 * FEW, 64))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    same = Record(id="", stream=ANN, kind="note", text="tea", created=1.0, accessed=1.0, embedder="plain")
    records = [replace(same, id=f"record{n}", vector=unit) for n, unit in enumerate(units.astype(np.float16))]
    store, other, shelf = SqliteStore(folder), SqliteStore(folder), None
    for by, some in ((store, records[: FEW // 2]), (other, records[FEW // 2 :])):
        entry = Entry(Remembered(count=len(some), kinds={}), "ann", tuple(some))
        await by.commit(Commit(mind=ANN, at=1.0, entries=(entry,)))
        shelf = shelf or IndexCache(store, "plain", 64)
        columns = await shelf.at_hand(ANN)
    assert shelf is not None and columns is not None and columns.behind
    while len(columns) < 4 * FEW:
        await columns.take_portion(store)
    among = np.ones(len(columns), np.bool_)
    found = [at for at in range(FEW // 2) if at in columns.vectors.nearest(units[at].astype(np.float32), among)[0]]
    assert found == list(range(FEW // 2))
    every = np.arange(len(columns))
    assert np.abs(columns.vectors.cosines(units[0].astype(np.float32), every)).max() < 1.01
    assert np.linalg.norm(columns.vectors.units(every), axis=1).max() < 1.01
    await shelf.close()
    await store.close()
    await other.close()


async def test_recall_on_a_long_stream_agrees_with_scoring_all_records(filled: SqliteStore) -> None:
    recaller, clock = Recaller(filled, Words()), ManualClock()
    await recaller.shelf.columns(ANN)
    await recaller.shelf.settled()  # this compares two ways of scoring, not columns that are still being filled
    same = total = 0
    for n in range(60):
        question = (f"what thing{n % 37} stood near place{n % 11}?", f"who said {n * 7}?", f"ann about place{n % 11}")[
            n % 3
        ]
        recaller.scanned = 10**9
        whole = await recaller.recall(ANN, question, 10, now=clock.now())
        recaller.scanned = 0
        some = await recaller.recall(ANN, question, 10, now=clock.now())
        assert abs(some.certainty - whole.certainty) < 1e-3
        scores = {each.record.id: each.score for each in whole.returned}
        for each in some.returned:
            assert abs(scores.get(each.record.id, each.score) - each.score) < 1e-3
        same += sum(each.record.id in scores for each in some.returned)
        total += len(scores)
    assert same / total >= 0.98


async def test_columns_of_a_user_erased_on_another_machine_are_deleted(folder: Path) -> None:
    store = SqliteStore(folder)
    await write(store, MANY)
    path = await kept(folder)
    content = path.read_bytes()
    await erase_person(store, "ann", ManualClock())
    path.write_bytes(content)  # as on a machine that got no notification
    shelf = IndexCache(store, "words", 96)
    assert len(await shelf.columns(ANN)) == 0 and not path.exists()
    await write(store, MANY, MANY)
    path.write_bytes(content)
    assert await ErasureWatch(store).look() == [] and not path.exists(), "the first check deletes it, open or not"
    fresh = await kept(folder)
    assert await ErasureWatch(store).look() == [] and fresh.exists(), "files stored after an erasure stay"
    await store.close()


async def test_an_erasure_elsewhere_deletes_the_file_of_open_columns(folder: Path) -> None:
    here, there = SqliteStore(folder), SqliteStore(folder)
    await write(there, MANY)
    path = await kept(folder)
    content = path.read_bytes()
    shelf, watch = IndexCache(here, "words", 96), ErasureWatch(here)
    assert len(await shelf.columns(ANN)) == MANY
    await watch.look()
    await there.erase(ANN)
    caches.note(ANN)  # the other process is this one, and forgets the notification
    path.write_bytes(content)
    assert await watch.look() == [ANN] and not path.exists() and shelf.whole(ANN) is None
    await shelf.settled()
    for store in (here, there):
        await store.close()


async def test_closing_stops_background_filling_and_the_next_process_continues(folder: Path) -> None:
    store = SqliteStore(folder)
    await write(store, MANY)
    first, second = (Memory(store, "ann", Words(), ManualClock()) for _ in range(2))
    shelf = first._recaller.shelf
    await first.recall("thing3", 3, touch=False)
    (filling,) = shelf._behind.values()
    await second.close()
    assert not filling.done(), "another memory still uses it"
    await first.close()
    assert filling.cancelled() and not shelf._behind
    begun = len(shelf._held[ANN])
    assert 0 < begun < MANY
    async with Memory(store, "ann", Words(), ManualClock()) as again:
        assert len(await again.columns()) == MANY
        (writing,) = again._recaller.shelf._keeping.values()
        for _ in range(100_000):
            await asyncio.sleep(0)
            if files_with(folder / "columns", b""):
                break
        await store.close()  # before the memory
        assert writing.cancelled()
        assert not list((folder / "columns").iterdir())
    assert (await kept(folder)).is_file()
