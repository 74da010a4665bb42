"""Recall changes strength by the rules, in batches, and loses nothing between processes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path

import pytest
from keys import key_of
from world import LAWS, World

from mindstream import SystemClock
from mindstream.clock import DAY_S
from mindstream.log.events import Logged, RecallMade, Remembered
from mindstream.memory.memory import Memory
from mindstream.memory.recall.recall import LATER_S
from mindstream.memory.store.record import KINDS, Kind, RecordDraft
from mindstream.memory.store.store import Commit


async def test_records_found_but_not_returned_decay_to_the_archive(world: World) -> None:
    old = await world.stream.retain("Ann saw tomatoes once.")
    await world.stream.recall("tomatoes")
    world.clock.advance(LAWS.passed_over_s + 1)
    await world.stream.retain("tomatoes tomatoes")
    levels = []
    for _ in range(2):
        returned = await world.stream.recall("tomatoes", k=1)
        assert returned[0].record.text == "tomatoes tomatoes"
        levels.append((await world.now(old)).level)
    assert levels == [0, -1]
    assert (await world.now(old)).forgotten == world.clock.now()
    assert (await world.now(old)).accessed < world.clock.now() - LAWS.passed_over_s
    assert old.id not in {each.record.id for each in await world.stream.recall("tomatoes")}
    assert [record.id for record in await world.stream.archive()] == [old.id]


async def test_recall_finds_at_most_4k_records(world: World) -> None:
    records = await world.stream.retain_all([RecordDraft(text=f"tomatoes, {n}") for n in range(20)])
    world.clock.advance(LAWS.passed_over_s + 1)
    await world.stream.recall("tomatoes", k=2)
    now = [await world.now(record) for record in records]
    assert sorted(record.level for record in now) == [-1] * 6 + [0] * 12 + [1] * 2


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"note", "observation", "thought", "dream"}))
async def test_protected_kinds_never_fade(world: World, kind: Kind) -> None:
    record = (await world.stream.retain_all([RecordDraft(text="Ann saw tomatoes once.", kind=kind)]))[0]
    world.clock.advance(1000 * DAY_S)
    await world.stream.retain("tomatoes tomatoes")
    for _ in range(3):
        await world.stream.recall("tomatoes", k=1)
        await world.stream.sleep(n=100)
    now = await world.now(record)
    assert (now.level, now.forgotten, now.accessed) == (0, None, record.accessed)
    await world.stream.recall("tomatoes", k=2)
    now = await world.now(record)
    assert (now.level, now.accessed) == (0, world.clock.now())


@pytest.mark.parametrize("how", ["whoever waits is broken off", "the stream is closed"])
async def test_touches_in_progress_are_written_once_at_cancel_or_close(
    how: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await world.stream.retain("Ann saw tomatoes once.")
    await world.stream.recall("tomatoes")
    commit, begun, on = world.store.commit, asyncio.Event(), asyncio.Event()

    async def late(*commits: Commit) -> list[Logged]:
        begun.set()
        await on.wait()
        return await commit(*commits)

    monkeypatch.setattr(world.store, "commit", late)
    if how == "the stream is closed":
        await asyncio.sleep(0)
        world.clock.advance(LATER_S)  # it writes in the background
        ending = asyncio.ensure_future(_after(begun, world.stream.close()))
    else:
        ending = asyncio.ensure_future(world.stream.settle())
        await begun.wait()
        ending.cancel()
    await begun.wait()
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0.05, on.set)
    await asyncio.gather(ending, return_exceptions=True)
    await world.stream.settle()
    made = [row.event async for row in world.stream.log(kinds=[RecallMade.kind])]
    assert [each.returned for each in made if isinstance(each, RecallMade)] == [(old.id,)]


async def _after(event: asyncio.Event, doing: Awaitable[None]) -> None:
    await event.wait()
    await doing


async def test_a_stream_without_strength_only_updates_access_times(folder: Path) -> None:
    world = World(folder, strength=None)
    records = await world.stream.retain_all([RecordDraft(text="tomatoes"), RecordDraft(text="tomatoes, again")])
    world.clock.advance(1000 * DAY_S)
    for _ in range(5):
        await world.stream.recall("tomatoes", k=1)
    assert await world.stream.sleep(n=100) == ""
    now = [await world.now(record) for record in records]
    assert [record.level for record in now] == [0, 0]
    assert sorted(record.accessed for record in now) == [records[0].accessed, world.clock.now()]
    await world.close()


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".db-shm"}


async def test_recall_without_touch_changes_no_byte(folder: Path) -> None:
    world = World(folder)
    await world.stream.retain_all([RecordDraft(text=f"tomatoes, {n}") for n in range(9)])
    world.clock.advance(1000 * DAY_S)
    before = bytes_in(folder)
    for _ in range(3):
        assert len(await world.stream.recall("tomatoes", k=2, touch=False)) == 2
        await world.stream.recall("tomatoes", k=2, as_of=world.clock.now())
        world.clock.advance(2 * LATER_S)
        await asyncio.sleep(0)
    await world.stream.settle()
    assert bytes_in(folder) == before
    await world.close()


async def test_touches_are_written_within_a_second(folder: Path) -> None:
    world = World(folder)
    stream = Memory(world.store, "ann", world.stream.embedder, SystemClock())
    record = await stream.retain("tomatoes")
    changes = await world.store.version()
    await stream.recall("tomatoes")
    assert await world.store.version() == changes
    for _ in range(400):
        if (await world.store.records(key_of("ann"), [record.id]))[0].level:
            break
        await asyncio.sleep(LATER_S / 20)
    assert (await world.store.records(key_of("ann"), [record.id]))[0].level == 1
    await world.close()


async def test_touches_are_written_at_close_and_before_sleep(world: World) -> None:
    record = await world.stream.retain("tomatoes")
    await world.stream.recall("tomatoes")
    await world.stream.sleep(n=0)
    assert (await world.store.records(key_of("ann"), [record.id]))[0].level == 1
    world.clock.advance(DAY_S)
    await world.stream.recall("tomatoes")
    await world.stream.close()
    assert (await world.store.records(key_of("ann"), [record.id]))[0].level == 2


async def test_touches_of_several_processes_are_all_counted(world: World) -> None:
    others = [world.another() for _ in range(4)]
    records = await world.stream.retain_all([RecordDraft(text=f"tomatoes, {n}") for n in range(5)])
    for step in range(1, 4):
        world.clock.advance(LAWS.interval_s(step) + 1)
        await asyncio.gather(*(other.recall("tomatoes", k=5) for other in others))
        await asyncio.gather(*(other.settle() for other in others))
        assert {(await world.now(record)).level for record in records} == {step}
    world.clock.advance(LAWS.passed_over_s + 1)
    await world.stream.retain("tomatoes tomatoes tomatoes")
    await asyncio.gather(*(other.recall("tomatoes", k=1) for other in others))
    await asyncio.gather(*(other.settle() for other in others))
    levels = [(await world.now(record)).level for record in records]
    assert sorted(levels) == [-1] * 3 + [3] * 2  # four levels lost to four processes; two lay beyond 4k
    for other in others:
        await other.store.close()


async def test_a_touch_is_committed_once_with_the_callers_entry(world: World) -> None:
    record = await world.stream.retain("tomatoes")
    found = await world.stream.recall("tomatoes", touch=False)
    await world.stream.recall("tomatoes")  # the pending touch is written first
    world.clock.advance(DAY_S)
    assert found.touch is not None and found.touch.returned == [record.id]
    before = await world.store.version()
    [row] = await world.stream.commit(Remembered(count=0, kinds={}), touch=found.touch._replace(at=world.clock.now()))
    assert [each.seq for each in await world.store.events(key_of("ann"), row.seq - 1)] == [row.seq]
    assert await world.store.version() != before
    [now] = await world.store.records(key_of("ann"), [record.id])
    assert (now.level, now.accessed) == (2, world.clock.now())
    assert (await world.stream.recall("tomatoes", as_of=world.clock.now())).touch is None


async def test_a_recall_is_written_with_the_next_commit(world: World) -> None:
    record = await world.stream.retain("Ann saw tomatoes once.")
    await world.stream.recall("tomatoes")
    event = Remembered(count=0, kinds={})
    (row,) = await world.stream.commit(event)
    assert row.event == event
    made = [each.event for each in await world.stream.store.events(world.stream.key) if each.seq > row.seq]
    assert [each.returned for each in made if isinstance(each, RecallMade)] == [(record.id,)]
    await world.stream.settle()
    assert await world.stream.store.count(world.stream.key, RecallMade.kind) == 1
