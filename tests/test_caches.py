"""Cached texts of users: keyed by content, isolated, and dropped after erasure."""

from __future__ import annotations

import gc
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from keys import key_of

from mindstream import Coach, ManualClock, Mind, SqliteStore, caches
from mindstream.coach.belief.belief import plan_of
from mindstream.coach.belief.plan import CoachingPlan, PlanStep
from mindstream.coach.packs.load import load
from mindstream.coach.packs.pack import topics_in
from mindstream.coach.packs.safety import find_alarm
from mindstream.log.events import Remembered
from mindstream.memory.memory import Memory
from mindstream.memory.store import erasure as carriers
from mindstream.memory.store import queries
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Entry, Erasure
from mindstream.models.embedders.embedder import WordLlama

PACK = load("sleep")
NOW = 4e9
SECRET = "zanzibarquilt"


@pytest.fixture
async def store(folder: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(folder)
    yield store
    await store.close()


async def a_plan(store: SqliteStore, user: str, title: str, id_: str) -> Memory:
    """Write a plan with a chosen id, as an import does."""
    async with Mind.open(store, user=user, responder=Coach.using()) as mind:
        plan = CoachingPlan(steps=[PlanStep(title=title, state="now")])
        new = RecordDraft(
            text=title, kind="plan", slot="sleep.plan", version=1, data={"plan": plan.model_dump(mode="json")}
        )
        (record,) = await mind.memory.build_records([new])
        event = Remembered(count=1, kinds={"plan": 1})
        await mind.memory.commit(Entry(event, "test", (replace(record, id=id_),)))
        return mind.memory


async def test_cached_plans_are_separate_for_each_data_folder(store: SqliteStore, tmp_path: Path) -> None:
    other = SqliteStore(tmp_path / "other")
    ann = await a_plan(store, "ann", "Ann's own step", "0000000001abcdefgh")
    bob = await a_plan(other, "bob", "Bob's own step", "0000000001abcdefgh")
    assert [step.title for step in (await plan_of(ann, PACK)).steps] == ["Ann's own step"]
    assert [step.title for step in (await plan_of(bob, PACK)).steps] == ["Bob's own step"]
    await other.close()


async def test_changes_by_a_caller_do_not_affect_a_cached_plan(store: SqliteStore) -> None:
    ann = await a_plan(store, "ann", "Ann's own step", "0000000001abcdefgh")
    (await plan_of(ann, PACK)).steps.clear()
    assert len((await plan_of(ann, PACK)).steps) == 1


async def test_records_with_equal_data_do_not_share_it(store: SqliteStore) -> None:
    for user in ("ann", "bob"):
        async with Mind.open(store, user=user, responder=Coach.using()) as mind:
            await mind.memory.retain_all(
                [RecordDraft(text="hello", kind="chat", data={"by_user": True, "tags": ["a"]})]
            )
    [of_ann] = await store.latest(key_of("ann"), ["chat"], now=NOW)
    of_ann.data["leak"] = "of ann"  # type: ignore[index]
    of_ann.data["tags"].append("of ann")  # type: ignore[union-attr]
    for user in ("ann", "bob"):
        assert (await store.latest(key_of(user), ["chat"], now=NOW))[0].data == {"by_user": True, "tags": ["a"]}


def words_in_caches() -> bool:
    """Return whether a cached argument or result of any function contains the secret."""
    gc.collect()
    kept = [held for function in list(caches._functions) for held in gc.get_referents(function)]
    seen: set[int] = set()
    while kept:
        each = kept.pop()
        if id(each) in seen or isinstance(each, type) or (callable(each) and not isinstance(each, tuple)):
            continue
        seen.add(id(each))
        if isinstance(each, str) and SECRET in each:
            return True
        if isinstance(each, dict | list | tuple | set | frozenset) or type(each).__module__.startswith("mindstream"):
            kept.extend(gc.get_referents(each))
    return False


async def test_erased_text_is_in_no_cache_of_this_process(store: SqliteStore) -> None:
    async with Mind.open(store, user="ann", responder=Coach.using()) as mind:
        async for _ in mind.hear(f"My {SECRET} keeps me awake, what can I do?"):
            pass
        await mind.settled()
        await mind.memory.recall(SECRET)
        topics_in(PACK, f"the {SECRET}")
        find_alarm(PACK, f"the {SECRET}")
        assert words_in_caches()
        assert len(mind.memory._lately)
        columns = await mind.memory.columns()
        assert columns.lexical.counts([SECRET]) > columns.lexical.counts(["nothing like it"])
        await store.erase(key_of("ann"))
        assert not words_in_caches()
        assert not len(mind.memory._lately)
        assert mind.memory._recaller.shelf._held == {}
        assert not columns.whole


def erased(connection: sqlite3.Connection, id_: str) -> int:
    found = carriers.find(connection, key_of("ann"), Erasure(ids=(id_,)))
    return carriers.erase(connection, key_of("ann"), found, queries.next_change(connection))


async def test_erasure_by_another_process_clears_caches_here(store: SqliteStore, folder: Path) -> None:
    stream, other = Memory(store, "ann", WordLlama(), ManualClock()), SqliteStore(folder)
    record = await stream.retain(f"The {SECRET} is red.")
    await stream.recall(SECRET, touch=False)
    await other._database.write(lambda each: erased(each, record.id))  # as if in another process
    find_alarm(PACK, f"the {SECRET}")
    assert await stream.recall("red", touch=False) == []
    assert not len(stream._lately)
    assert not (await stream.columns()).whole
    assert not words_in_caches()
    await other.close()


async def test_erasing_one_user_keeps_the_caches_of_others(store: SqliteStore) -> None:
    ann, bob = (Memory(store, user, WordLlama(), ManualClock()) for user in ("ann", "bob"))
    for stream in (ann, bob):
        await stream.retain("tea in the garden")
        await stream.recall("tea", touch=False)
    await store.erase(key_of("ann"))
    assert not len(ann._lately)
    assert len(bob._lately)
    assert "bob" in bob._recaller.shelf._held


def test_caches_can_be_added_and_emptied_concurrently() -> None:
    class Opened:
        def forget(self, stream: str) -> None: ...

    held, over, before = [Opened() for _ in range(2_000)], threading.Event(), sys.getswitchinterval()
    for each in held:
        caches.watch(each)

    def open_more() -> None:
        while not over.is_set():
            caches.watch(Opened())

    opening = threading.Thread(target=open_more)
    sys.setswitchinterval(1e-6)
    opening.start()
    try:
        for _ in range(100):
            caches.empty("ann")
    finally:
        sys.setswitchinterval(before)
        over.set()
        opening.join()
