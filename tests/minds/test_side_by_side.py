"""Concurrency on one mind, store or folder: no endless wait, nothing lost, answered or processed twice."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from keys import key_of

from mindstream import Coach, Mind, SqliteStore, Timeouts
from mindstream.clock import SystemClock
from mindstream.errors import ErasedMeanwhile, StorageError
from mindstream.log.events import BeliefChanged, Heard, Logged, Said, Thought
from mindstream.memory.memory import Memory
from mindstream.models.embedders.embedder import WordLlama
from mindstream.service import transfer
from mindstream.service.transfer import Header, read_export

TIMEOUTS = Timeouts(lease_s=1.0, deadline_s=5.0)
GENEROUS_S = 100


@pytest.fixture
async def mind(folder: Path) -> AsyncIterator[Mind]:
    async with Mind.open(folder, user="ann", timeouts=TIMEOUTS, responder=Coach.using(gate="belief")) as mind:
        yield mind


async def said(mind: Mind, text: str) -> str:
    return "".join([logged.event.text async for logged in mind.hear(text) if isinstance(logged.event, Said)])


async def talk(mind: Mind, count: int = 4) -> None:
    for n in range(count):
        assert await said(mind, f"Noise number {n} keeps me awake. Make me a plan.")


async def rows(mind: Mind) -> list[Logged]:
    return await mind.memory.store.events(mind.memory.key, limit=100_000)


async def check(mind: Mind, slots: tuple[str, ...] = ("sleep",)) -> None:
    """Wait until everything is processed, and check the guarantees."""
    async with asyncio.timeout(GENEROUS_S):
        await mind.settled()
    log = await rows(mind)
    heard = Counter(row.seq for row in log if isinstance(row.event, Heard))
    answered = Counter(row.event.answers for row in log if isinstance(row.event, Said))
    assert answered <= heard
    for slot in slots:
        thoughts = [row.event for row in log if isinstance(row.event, Thought) and row.event.slot == slot]
        assert Counter(seq for thought in thoughts for seq in thought.about) == heard
    versions = [row.event.version for row in log if isinstance(row.event, BeliefChanged) and row.event.slot == "sleep"]
    assert versions == list(range(1, len(versions) + 1))
    assert await mind.memory.store.open_work(key_of("ann")) == []


async def take_in(mind: Mind) -> None:
    memory = Memory(mind.memory.store, "ann", WordLlama(), SystemClock())
    lines = [line async for line in transfer.export(memory)]
    with read_export([line.encode() for line in lines], "x", Header) as found:
        await transfer.import_records(memory, found, lambda _: None)


BESIDES: dict[str, Callable[[Mind], Awaitable[object]]] = {
    "sleeping": lambda mind: mind.memory.sleep(n=50),
    "embedding anew": lambda mind: mind.memory.reembed(batch=1),
    "purging": lambda mind: mind.memory.purge(),
    "compacting": lambda mind: mind.memory.store.compact(),
    "importing": take_in,
    "waiting": lambda mind: asyncio.gather(*(mind.settled() for _ in range(30))),
    "hearing": lambda mind: asyncio.gather(*(said(mind, f"And tram {n}?") for n in range(5))),
}


@pytest.mark.parametrize("name", BESIDES)
async def test_a_conversation_runs_concurrently_with_other_operations(name: str, mind: Mind) -> None:
    await said(mind, "I wake at three.")

    async def beside() -> None:
        for _ in range(2):
            await BESIDES[name](mind)
            await asyncio.sleep(0)

    async with asyncio.timeout(GENEROUS_S):
        await asyncio.gather(talk(mind), beside())
    await check(mind)


async def test_a_second_message_before_the_end_of_the_answer_is_answered(mind: Mind) -> None:
    async with asyncio.timeout(GENEROUS_S):
        async for logged in mind.hear("Noise keeps me awake."):
            if isinstance(logged.event, Heard):
                assert await said(mind, "And light, too.")
                await mind.settled()
    await check(mind)


async def test_abandoned_generators_block_no_one(mind: Mind) -> None:
    for n in range(6):
        generator = mind.hear(f"Noise {n}.")
        await anext(generator)
        del generator
        if n % 2 == 0:
            gc.collect()
    assert await said(mind, "Are you there?")
    await check(mind)


async def test_a_mind_closed_by_its_own_listener_keeps_the_message(folder: Path) -> None:
    opened = Mind.open(folder, user="ann", timeouts=TIMEOUTS, responder=Coach.using(gate="belief"))
    mind = await opened.__aenter__()
    with suppress(StorageError):
        async with asyncio.timeout(GENEROUS_S):
            async for logged in mind.hear("Noise keeps me awake."):
                if isinstance(logged.event, Heard):
                    await opened.__aexit__(None, None, None)
    async with Mind.open(folder, user="ann", timeouts=TIMEOUTS, responder=Coach.using(gate="belief")) as again:
        await check(again)
        assert any(isinstance(row.event, Heard) for row in await rows(again))


@pytest.mark.parametrize("turns", [1, 200])
async def test_a_cancelled_open_leaves_no_threads_or_leases(turns: int, folder: Path) -> None:
    threads = threading.active_count()

    async def live() -> None:
        async with Mind.open(folder, user="ann", timeouts=TIMEOUTS, responder=Coach.using(gate="belief")) as mind:
            await talk(mind)

    living = asyncio.ensure_future(live())
    for _ in range(turns):
        await asyncio.sleep(0.0005)
    living.cancel()
    with suppress(asyncio.CancelledError):
        await living
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
    assert not any(each.name.startswith(f"writer of {folder}") for each in threading.enumerate())
    assert threading.active_count() <= threads + 8
    async with Mind.open(folder, user="ann", timeouts=TIMEOUTS, responder=Coach.using(gate="belief")) as mind:
        assert await said(mind, "Are you there?")
        await check(mind)


async def test_erasing_a_user_during_a_conversation_ends_it_cleanly(folder: Path) -> None:
    store = SqliteStore(folder)
    async with Mind.open(store, user="ann", timeouts=TIMEOUTS, responder=Coach.using(gate="belief")) as mind:
        talking = asyncio.ensure_future(talk(mind))
        for _ in range(5):
            await asyncio.sleep(0.01)
            await store.erase(key_of("ann"))
        async with asyncio.timeout(GENEROUS_S):
            await asyncio.gather(talking, return_exceptions=True)
            await mind.settled()
        with pytest.raises(ErasedMeanwhile):
            await said(mind, "Are you there?")
    async with Mind.open(store, user="ann", timeouts=TIMEOUTS, responder=Coach.using(gate="belief")) as mind:
        assert await said(mind, "Are you there?")
        async with asyncio.timeout(GENEROUS_S):
            await mind.settled()
        assert await store.open_work(key_of("ann")) == []
    await store.close()
