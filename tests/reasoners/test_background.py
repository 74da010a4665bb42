"""No failure of a reasoner ends the runner: it is retried, then dead-lettered; the others continue."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from inspect import isawaitable
from pathlib import Path

import pytest
from keys import key_of

from mindstream import Coach, InputError, Mind, SqliteStore, SystemClock, Timeouts
from mindstream.log.events import Failed, Heard, Logged, SetAside, Thought
from mindstream.log.work import LONGEST_LEASE_S
from mindstream.memory.store.store import Commit, Entry, NewWork
from mindstream.reasoners.reasoner import EVERY_TURN, RunContext, RunResult, Writing


async def nothing() -> Writing:
    return (), ()


class Thinks:
    """A reasoner that follows its script."""

    def __init__(self, think: Callable[[RunContext], object], slot: str = "extra", timeout_s: float = 5.0) -> None:
        self.slot, self.timeout_s, self.trigger = slot, timeout_s, EVERY_TURN
        self._think = think
        self.about: list[tuple[str, ...]] = []

    async def think(self, context: RunContext) -> RunResult:
        self.about.append(tuple(utterance.text for utterance in context.utterances))
        came = self._think(context)
        if isinstance(came, BaseException):
            raise came
        if asyncio.iscoroutine(came):
            await came
        return RunResult("thought", "test", write=nothing)


async def until(so: Callable[[], object]) -> None:
    async with asyncio.timeout(100):
        while not ((await found) if isawaitable(found := so()) else found):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


QUICKLY = Timeouts(retry_s=0.01)


async def turn(mind: Mind, text: str) -> list[Logged]:
    return [logged async for logged in mind.hear(text)]


async def rows(mind: Mind, kind: type) -> list[Logged]:
    return [row for row in await mind.memory.store.events(key_of("ann"), limit=10_000) if isinstance(row.event, kind)]


async def about(mind: Mind, kind: type, slot: str = "extra") -> Counter[int]:
    return Counter(seq for row in await rows(mind, kind) if row.event.slot == slot for seq in row.event.about)  # type: ignore[attr-defined]


class Odd(BaseException):
    """An exception that no handler expects."""


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


RAISED = [
    ValueError("boom"),
    StopAsyncIteration(),
    asyncio.CancelledError("from inside"),
    SystemExit(3),
    BaseExceptionGroup("many", [ValueError("one"), Odd()]),
    Odd("odd"),
    UnspeakableError(),
    AssertionError("\ud800 \x1b[31m " + "x" * 10_000),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
async def test_any_error_of_a_reasoner_is_contained(
    folder: Path, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "mindstream")  # pytest's workers cannot send half a surrogate
    bad = Thinks(lambda context: error)
    async with Mind.open(folder, user="ann", reasoners=[bad], timeouts=QUICKLY, responder=Coach.using()) as mind:
        first = (await turn(mind, "I wake at three"))[0].seq
        await mind.settled()
        assert len(bad.about) == 3, "the number of attempts is limited"
        (row,) = await rows(mind, SetAside)
        assert isinstance(row.event, SetAside) and row.event.about == (first,) and row.event.attempts == 3
        assert row.event.reason.startswith("extra: ") and len(row.event.reason) < 600
        assert await about(mind, Thought, "sleep") == Counter([first])
        assert Coach.of(mind).belief.version == 1 and await mind.reasoners.work() == []


async def test_failed_runs_are_logged_with_a_traceback(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    bad = Thinks(lambda _: ValueError("one in three"))
    async with Mind.open(folder, user="ann", reasoners=[bad], timeouts=QUICKLY, responder=None) as mind:
        await turn(mind, "I wake at three")
        await mind.settled()
        told = [record for record in caplog.records if record.name == "mindstream.reasoners"]
        assert [record.getMessage() for record in told] == ["extra: ValueError: one in three"] * 3
        assert all(record.exc_info and record.exc_info[0] is ValueError for record in told)
        assert {record.levelno for record in told} == {logging.WARNING}
        kinds = [row.event.kind async for row in mind.memory.log(kinds=["error", "set_aside"])]
        assert kinds == ["error", "error", "set_aside"]


@pytest.mark.parametrize("lack", ["slot", "trigger", "timeout_s", "think"])
async def test_an_incomplete_reasoner_is_refused_at_open(folder: Path, lack: str) -> None:
    parts = {"slot": "extra", "trigger": EVERY_TURN, "timeout_s": 5.0, "think": lambda *_: None}
    incomplete = type("Incomplete", (), {name: part for name, part in parts.items() if name != lack})
    for reasoner in (incomplete(), Thinks):
        with pytest.raises(InputError, match=f"(Incomplete needs .*{lack}|Thinks needs to be an instance)"):
            async with Mind.open(folder, user="ann", reasoners=[reasoner], responder=None):  # type: ignore[list-item]
                raise AssertionError


async def test_one_failing_utterance_blocks_no_other(folder: Path) -> None:
    reasoner = Thinks(lambda context: ValueError() if any("bad" in u.text for u in context.utterances) else None)
    async with Mind.open(folder, user="ann", reasoners=[reasoner], timeouts=QUICKLY, responder=Coach.using()) as mind:
        turns = await asyncio.gather(*(turn(mind, text) for text in ("one", "two", "a bad one", "four")))
        await mind.settled()
        heard = [events[0].seq for events in turns]
        assert await about(mind, Thought) == Counter([heard[0], heard[1], heard[3]])
        assert await about(mind, SetAside) == Counter([heard[2]])


async def test_attempts_in_other_processes_are_counted(folder: Path) -> None:
    for _ in range(2):
        async with Mind.open(
            folder,
            user="ann",
            reasoners=[Thinks(lambda _: ValueError("always"))],
            timeouts=QUICKLY,
            responder=Coach.using(),
        ) as mind:
            if not await rows(mind, Heard):
                await turn(mind, "hello")
            await until(lambda: rows(mind, Failed))
    again = Thinks(lambda _: ValueError("always"))
    async with Mind.open(folder, user="ann", reasoners=[again], timeouts=QUICKLY, responder=Coach.using()) as mind:
        await mind.settled()
        assert len(await rows(mind, SetAside)) == 1 and len(await rows(mind, Failed)) + len(again.about) <= 4


async def test_a_reasoner_that_ignores_cancellation_is_abandoned(folder: Path) -> None:
    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if done.is_set():
                    raise

    done = asyncio.Event()
    bad = Thinks(lambda _: stubborn(), timeout_s=0.05)
    async with Mind.open(folder, user="ann", reasoners=[bad], timeouts=QUICKLY, responder=Coach.using()) as mind:
        await turn(mind, "hello")
        await mind.settled()
        assert "no result within" in str((await rows(mind, SetAside))[0].event)
        done.set()
        for task in asyncio.all_tasks():
            if "_outcome" in repr(task.get_coro()):
                task.cancel()


async def test_a_lease_too_far_in_the_future_is_ignored(folder: Path) -> None:
    store, clock = SqliteStore(folder), SystemClock()
    heard = Heard(text="hello", session="s", record="r")
    lease = clock.now() + 10 * LONGEST_LEASE_S
    (row,) = await store.commit(
        Commit(
            mind=key_of("ann"), at=clock.now(), entries=(Entry(heard, "ann"),), wake=NewWork(("extra",), "dead", lease)
        )
    )
    await store.claim(key_of("ann"), "extra", "dead", clock.now(), lease)
    await store.close()
    async with Mind.open(
        folder, user="ann", reasoners=[Thinks(lambda _: None)], timeouts=QUICKLY, responder=Coach.using()
    ) as mind:
        await mind.settled()
        assert await about(mind, Thought) == Counter([row.seq])


async def test_steering_skips_utterances_that_are_being_answered(folder: Path) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    found: list[object] = []

    async def look(context: RunContext) -> None:
        if found:
            return
        begun.set()
        await go_on.wait()
        found.append(await context.newer())

    async with Mind.open(
        folder, user="ann", reasoners=[Thinks(lambda context: look(context))], timeouts=QUICKLY, responder=Coach.using()
    ) as mind:
        await turn(mind, "one")
        await begun.wait()
        events = mind.hear("two")
        await anext(events)  # received, and being answered
        go_on.set()
        await until(lambda: found)
        assert found == [()]
        await events.aclose()
        await mind.settled()
        assert sorted((await about(mind, Thought)).values()) == [1, 1]


async def test_settled_returns_when_the_mind_is_closed(folder: Path) -> None:
    wait = asyncio.Event()
    async with Mind.open(
        folder, user="ann", reasoners=[Thinks(lambda _: wait.wait())], timeouts=Timeouts(), responder=Coach.using()
    ) as mind:
        await turn(mind, "hello")
        settling = asyncio.ensure_future(mind.settled())
        await asyncio.sleep(0.05)
    await settling
