"""Erasures of another process take effect here within the bound: columns, caches, open minds, pages."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from both_stores import STORES, opener
from world import Words

from mindstream import ManualClock, Memory, caches
from mindstream.identifiers import StreamName
from mindstream.memory.store import kept_columns, sql_store
from mindstream.memory.store.sql_store import LOOK_S, ErasureWatch, watching
from mindstream.service.operations.hub import Line
from mindstream.service.operations.operation import LOCAL_PRINCIPAL
from mindstream.service.operations.runtime import Runtime
from mindstream.service.privacy.erase import erase_person
from mindstream.settings import Settings

ERASE = """
import asyncio, sys
from mindstream import SqliteStore
from mindstream.clock import SystemClock
from mindstream.service.privacy.erase import erase_person

async def main():
    async with SqliteStore(sys.argv[1]) as store:
        await erase_person(store, "ann", SystemClock())

asyncio.run(main())
"""


class Held:
    """Something that holds words, as columns in a file do, or that has a mind open."""

    def __init__(self) -> None:
        self.forgotten: list[str] = []
        self.ended: list[str] = []
        caches.watch(self)
        caches.watch_end(self)

    def forget(self, stream: str) -> None:
        self.forgotten.append(stream)

    def end(self, stream: str, before: int | None) -> None:
        self.ended.append(stream)


@pytest.mark.parametrize("kind", STORES)
async def test_one_look_drops_streams_that_another_process_erased(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "was_erased_here", lambda *_: False)  # the second store stands for another process
    open_one = opener(kind, folder)
    here, there = open_one(), open_one()
    watch, held = ErasureWatch(here), Held()
    async with Memory(here, "ann", Words(), ManualClock()) as ann, Memory(here, "bob", Words(), ManualClock()) as bob:
        note = await ann.retain("The parrot Zibeth sings.", "note")
        await bob.retain("It rains.", "note")
        assert len(await ann.columns()) == 1
        await watch.look()
        await there.erase(ann.key, [note.id])
        held.forgotten.clear()  # another process would send no notification
        assert await watch.look() == [ann.key]
        assert held.forgotten == [ann.key] and held.ended == []
        await there.erase(ann.key)
        held.ended.clear()
        caches.note(ann.key)
        assert await watch.look() == [ann.key] and held.ended == [ann.key]
        assert await watch.look() == [], "each stream once"
        assert ann.key not in caches.streams() and bob.key in caches.streams()
    for store in (here, there):
        await store.close()


async def test_a_failing_deletion_does_not_stop_the_watch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_one, held, failed = opener("sqlite", folder), Held(), list[str]()
    monkeypatch.setattr(caches, "was_erased_here", lambda *_: False)  # the second store stands for another process
    delete = kept_columns.delete_erased

    def fail(*_: object) -> None:
        failed.append("once")
        monkeypatch.setattr(sql_store, "delete_erased", delete)
        raise PermissionError("not yours")

    here, there = open_one(), open_one()
    async with Memory(here, "ann", Words(), ManualClock()) as ann:
        note = await ann.retain("The parrot Zibeth sings.", "note")
        async with watching(here):
            await asyncio.sleep(LOOK_S / 10)
            monkeypatch.setattr(sql_store, "delete_erased", fail)
            await there.erase(ann.key, [note.id])
            while len(held.forgotten) < 3:  # noqa: ASYNC110 (by the erasure itself, by the look that failed, and by the next)
                await asyncio.sleep(LOOK_S / 10)
    assert failed == ["once"]
    for store in (here, there):
        await store.close()


@pytest.mark.parametrize("kind", STORES)
async def test_streams_erased_before_the_first_look_are_dropped_too(kind: str, folder: Path) -> None:
    open_one = opener(kind, folder)
    here, there = open_one(), open_one()
    looking, held = asyncio.Event(), Held()
    look = here.erased_since

    async def look_late(number: int) -> object:
        await looking.wait()
        return await look(number)

    here.erased_since = look_late  # type: ignore[method-assign, assignment]
    async with watching(here), Memory(here, "ann", Words(), ManualClock()) as ann:
        await ann.retain("The parrot Zibeth sings.", "note")
        await there.erase(ann.key)
        held.ended.clear()
        caches.note(ann.key)  # the other process, simulated here, does not know it any more
        looking.set()
        while not held.ended:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert held.ended == [ann.key]
    for store in (here, there):
        await store.close()


async def test_a_late_report_of_an_old_erasure_does_not_close_a_new_mind(folder: Path) -> None:
    async with Runtime(Settings(data=folder)) as runtime:
        principal, store = LOCAL_PRINCIPAL.of("ann"), runtime.store_of("")
        key, watch = store.key(StreamName("user", "ann")), ErasureWatch(store)
        await watch.begin()
        async with runtime.mind(principal) as opened:
            old = opened
        await erase_person(store, "ann", ManualClock())
        async with runtime.mind(principal) as opened:
            assert opened is not old
            assert await watch.look() == [key]
            await runtime.finish_tasks(10.0)
            assert runtime.minds.of("", key) == [opened] and key in caches.streams()
            await erase_person(store, "ann", ManualClock())
            await runtime.finish_tasks(10.0)
            assert runtime.minds.of("", key) == []


async def test_a_server_closes_the_minds_of_a_person_whom_another_process_erased(folder: Path) -> None:
    async with Runtime(Settings(data=folder)) as runtime:
        principal = LOCAL_PRINCIPAL.of("ann")
        async with runtime.mind(principal) as opened:
            async for _ in opened.mind.hear("The parrot Zibeth sings."):
                pass
            await opened.mind.settled()
        store, key = runtime.store_of(""), runtime.store_of("").key(StreamName("user", "ann"))
        seen = list[Line]()
        async with runtime.tenant(principal).hub.listening(lambda row: row.mind == key, key) as page:
            erasing = await asyncio.create_subprocess_exec(sys.executable, "-c", ERASE, str(folder))
            assert await erasing.wait() == 0
            while not any(line.row.event.kind == "mind_erased" for line in seen):
                seen += await page.next(10 * LOOK_S)
            await runtime.finish_tasks(10.0)
        assert runtime.minds.of("", key) == [] and await store.events(key) == []
        async with runtime.mind(principal) as again:
            async for _ in again.mind.hear("A new beginning."):
                pass
            await again.mind.settled()
        heard = [row.event.text for row in await store.events(key, kinds=["heard"])]  # type: ignore[attr-defined]
        assert heard == ["A new beginning."]
        await store.compact()
    assert b"Zibeth" not in b"".join(path.read_bytes() for path in folder.glob("mindstream.db*"))  # noqa: ASYNC240


async def test_a_worker_closes_the_minds_of_a_person_whom_another_process_erased(folder: Path) -> None:
    store = opener("sqlite", folder)()
    async with Memory(store, "ann", Words(), ManualClock()) as ann:
        await ann.retain("The parrot Zibeth sings.", "note")
    async with Runtime.open_reader(Settings(data=folder), part="thinks") as runtime:
        key = runtime.server_store().key(StreamName("user", "ann"))
        async with runtime.mind(LOCAL_PRINCIPAL.of("ann"), "talk"):
            pass
        assert runtime.minds.of("", key)
        erasing = await asyncio.create_subprocess_exec(sys.executable, "-c", ERASE, str(folder))
        assert await erasing.wait() == 0
        while runtime.minds.of("", key):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S / 10)
    await store.close()


async def test_an_open_memory_recalls_nothing_after_erasure_by_another_process(folder: Path) -> None:
    async with Memory.open(folder, "ann", embed=Words()) as ann:
        await ann.retain("The parrot Zibeth sings.", "note")
        assert len(await ann.recall("Which parrot sings?")) == 1
        erasing = await asyncio.create_subprocess_exec(sys.executable, "-c", ERASE, str(folder))
        assert await erasing.wait() == 0
        while await ann.recall("Which parrot sings?"):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S / 10)


async def test_an_erased_user_can_start_again(folder: Path) -> None:
    store = opener("sqlite", folder)()
    async with Memory(store, "ann", Words(), ManualClock()) as ann:
        await ann.retain("old", "note")
    await erase_person(store, "ann", ManualClock())
    async with Memory(store, "ann", Words(), ManualClock()) as ann:
        await ann.retain("new", "note")
        assert [each.text for each in (await store.changes(ann.key, 0)).records] == ["new"]
    await store.close()
