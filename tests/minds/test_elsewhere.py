"""Work started by one process and ended by another: idle triggers, cancelled runs, answers left open by dead
processes.
"""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from elsewhere import SOON, Idle, never
from keys import key_of
from test_parts import data, rows_of

import mindstream.minds.mind as minds
from mindstream import Memory, Mind, answer_with
from mindstream.errors import StorageError
from mindstream.log.events import Heard, Said, Thought
from mindstream.log.work import Work
from mindstream.memory.opening import open_store
from mindstream.minds.responder import Host
from mindstream.reasoners.background import stop_elsewhere
from mindstream.reasoners.reasoner import RunContext, RunResult, Trigger

__all__ = ["data"]
ANN = key_of("ann")
ELSEWHERE = Path(__file__).with_name("elsewhere.py")


def killed_after(data: str, *words: str, line: str, times: int = 1) -> list[str]:
    """Run a process until it has printed a number of matching lines; kill it, and return its output."""
    said = list[str]()
    with subprocess.Popen([sys.executable, str(ELSEWHERE), data, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        while sum(each.startswith(line) for each in said) < times:
            said.append(process.stdout.readline().strip())
            assert said[-1], "it ended before the kill"
        process.kill()
    return said


async def until(holds: Callable[[], bool | Awaitable[bool]]) -> None:
    async with asyncio.timeout(100):
        for _ in itertools.count():
            held = holds()
            if held if isinstance(held, bool) else await held:
                return
            await asyncio.sleep(0.02)


async def nothing_is_open(mind: Mind) -> bool:
    return not await mind.memory.store.open_work(ANN)


async def thoughts_of(data: str, slot: str) -> list[Thought]:
    found = [row.event for row in await rows_of(data) if isinstance(row.event, Thought)]
    return [each for each in found if each.slot == slot]


async def listen(mind: Mind, text: str) -> None:
    async for _ in mind.hear(text):
        pass


async def test_idle_triggers_run_in_one_process(data: str) -> None:
    one, other = Idle(0.2), Idle(0.2)
    async with (
        Mind.open(data, user="ann", reasoners=[one]) as first,
        Mind.open(data, user="ann", reasoners=[other]) as second,
    ):
        for number in (1, 2):  # after each answer a new idle period begins
            one.trigger = other.trigger = Trigger(every=0)
            await asyncio.gather(listen(first, "Good night."), listen(second, "Sleep well."))
            one.trigger = other.trigger = Idle.trigger  # from here on: an idle period may lie between the two
            for mind in (first, second):
                mind.reasoners.wake()
            await until(lambda: one.ended + other.ended == number)  # noqa: B023
            await asyncio.sleep(1.5)
            assert one.begun + other.begun == number
    assert [each.about for each in await thoughts_of(data, "night")] == [(), ()]


async def test_idle_triggers_run_only_in_processes_with_reasoners(data: str) -> None:
    talks, thinks = Idle(), Idle()
    async with (
        Mind.open(data, user="ann", reasoners=[talks], part="talks", timeouts=SOON) as mind,
        Mind.open(data, user="ann", reasoners=[thinks], part="thinks", timeouts=SOON),
    ):
        await listen(mind, "Good night.")
        await until(lambda: thinks.ended == 1)
        assert talks.begun == 0
        await mind.settled()
        for _ in range(100):  # the other mind's thought is written after its run ended
            if await thoughts_of(data, "night"):
                break
            await asyncio.sleep(0.05)
    assert len(await thoughts_of(data, "night")) == 1


async def test_an_idle_run_of_a_killed_process_is_repeated_once(data: str) -> None:
    killed_after(data, "thinks", "60", line="thinks")
    assert await thoughts_of(data, "night") == []
    for begun in (1, 0):
        idle = Idle()
        async with Mind.open(data, user="ann", reasoners=[idle], timeouts=SOON) as mind:
            if begun:
                await until(lambda: idle.ended == 1)  # noqa: B023
            mind.reasoners.wake()
            await asyncio.sleep(1)
        assert idle.begun == begun
    assert len(await thoughts_of(data, "night")) == 1


class Hour:
    """Run at a given time."""

    slot, timeout_s = "hour", 60.0

    def __init__(self, at: float, thought: str) -> None:
        self.trigger, self._thought = Trigger(every=0, at=at), thought
        self.begun = 0

    async def think(self, context: RunContext) -> RunResult:
        self.begun += 1
        return RunResult(self._thought)


@pytest.mark.parametrize("thought", ["it is late", ""])
async def test_a_timed_trigger_runs_once_even_without_a_result(data: str, thought: str) -> None:
    async with open_store(data) as store, Mind.open(store, user="ann", timeouts=SOON) as mind:
        hours = [Hour(mind.memory.clock.now() + 0.5, thought) for _ in range(3)]
        hours = [Hour(hours[0].trigger.at or 0.0, thought) for _ in hours]
        async with (
            Mind.open(data, user="ann", reasoners=[hours[0]], timeouts=SOON),
            Mind.open(data, user="ann", reasoners=[hours[1]], part="talks", timeouts=SOON),
        ):
            await until(lambda: hours[0].begun == 1)
        async with Mind.open(data, user="ann", reasoners=[hours[2]], timeouts=SOON):
            await asyncio.sleep(1)
        assert [each.begun for each in hours] == [1, 0, 0]
        assert await store.open_work(ANN) == []
    assert [each.text for each in await thoughts_of(data, "hour")] == [thought] * bool(thought)


class Slow:
    """Reason about a message forever."""

    slot, trigger, timeout_s = "slow", Trigger(), 60.0

    def __init__(self) -> None:
        self.begun, self.stopped = asyncio.Event(), asyncio.Event()

    async def think(self, context: RunContext) -> RunResult:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        raise AssertionError("unreachable")


async def test_a_run_can_be_cancelled_from_another_process(data: str) -> None:
    slow = Slow()
    async with (
        Mind.open(data, user="ann", session="s", reasoners=[Slow()], part="talks") as talks,
        Mind.open(data, user="ann", session="s", reasoners=[slow], part="thinks") as thinks,
    ):
        await listen(talks, "Think about that.")
        thinks.reasoners.wake()
        await asyncio.wait_for(slow.begun.wait(), 100)
        assert await talks.cancel("another") == 0
        assert await talks.cancel() == 1
        await asyncio.wait_for(slow.stopped.wait(), 100)
        await asyncio.wait_for(thinks.settled(), 100)
        assert await talks.cancel() == 0
    heard = [row.seq for row in await rows_of(data) if isinstance(row.event, Heard)]
    assert [(each.text, each.about) for each in await thoughts_of(data, "slow")] == [("cancelled", tuple(heard))]


async def test_an_answer_interrupted_from_another_process_is_stored_as_far_as_shown(data: str) -> None:
    async def long(_: str, __: Host) -> AsyncIterator[str]:
        while True:
            yield "and so on "
            await asyncio.sleep(0.05)

    async with Mind.open(data, user="ann", session="s", responder=answer_with(long)) as mind:
        answering = asyncio.ensure_future(mind.send("Tell me a tale."))
        async with open_store(data) as store:
            clock = mind.memory.clock

            async def is_stopped() -> bool:
                return await stop_elsewhere(store, ANN, clock, (), session="s") == 1

            await until(is_stopped)
            assert await stop_elsewhere(store, ANN, clock, (), session="another") == 0
            told = await asyncio.wait_for(answering, 100)
            assert await store.open_work(ANN) == []
    said = [row.event for row in await rows_of(data) if isinstance(row.event, Said)]
    assert [each.text for each in said] == [told] and "and so on" in told


@pytest.mark.parametrize("session", ["s", None], ids=["the same talk", "another"])
async def test_messages_of_a_dead_process_are_answered_once_at_open(data: str, session: str | None) -> None:
    async def answer(text: str, _: Host) -> AsyncIterator[str]:
        yield f"You said: {text}"

    said = killed_after(data, "answers", "one", "two", line="ack", times=2)
    acknowledged = [int(line.split()[1]) for line in said]
    for _ in range(2):
        async with Mind.open(data, user="ann", session=session, responder=answer_with(answer), timeouts=SOON) as mind:
            await until(lambda: nothing_is_open(mind))
    answers = [row.event for row in await rows_of(data) if isinstance(row.event, Said)]
    assert [each.answers for each in answers] == acknowledged
    assert [each.text for each in answers] == ["You said: one", "You said: two"]


async def test_a_failed_check_for_unanswered_messages_is_repeated(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is unavailable at the moment the mind is opened."""

    async def answer(text: str, _: Host) -> AsyncIterator[str]:
        yield f"You said: {text}"

    (said,) = killed_after(data, "answers", "one", line="ack")
    look, failed = minds._answers, list[str]()

    async def away(memory: Memory) -> list[Work]:
        if not failed:
            failed.append("once")
            raise StorageError("it is away")
        return await look(memory)

    monkeypatch.setattr(minds, "_answers", away)
    async with Mind.open(data, user="ann", responder=answer_with(answer), timeouts=SOON) as mind:
        await until(lambda: nothing_is_open(mind))
    answers = [row.event.answers for row in await rows_of(data) if isinstance(row.event, Said)]
    assert answers == [int(said.split()[1])] and failed


async def test_an_interrupted_message_of_a_dead_process_is_not_answered(data: str) -> None:
    async with Mind.open(data, user="ann", session="s", timeouts=SOON) as mind:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(ELSEWHERE), data, "answers", "one", stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout
        await process.stdout.readline()
        process.send_signal(19)  # SIGSTOP: it no longer reacts
        stopped = 0
        while not stopped:
            stopped = await stop_elsewhere(mind.memory.store, ANN, mind.memory.clock, ())
        process.kill()
        await process.wait()
    async with Mind.open(data, user="ann", session="s", responder=answer_with(never), timeouts=SOON) as mind:
        await until(lambda: nothing_is_open(mind))
    assert not any(isinstance(row.event, Said) for row in await rows_of(data))
