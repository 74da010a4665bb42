"""A mind in several processes: one talks, another runs the reasoners; a message sent to two is answered once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import postgres_server
import pytest
from keys import key_of

from mindstream import Coach, Mind, Timeouts
from mindstream.errors import HeardAlready
from mindstream.log.events import Heard, Logged, Said, Thought
from mindstream.log.work import ANSWER, Work
from mindstream.memory.opening import open_store

SOON = Timeouts(lease_s=3.0)
ANN = key_of("ann")


def folder_of(folder: Path) -> str:
    return str(folder)


def database_of(_: Path) -> str:
    return postgres_server.fresh_url()


@pytest.fixture(params=[folder_of, database_of], ids=["sqlite", "postgres"])
def data(request: pytest.FixtureRequest, folder: Path) -> str:
    made: Callable[[Path], str] = request.param
    return made(folder)


async def rows_of(data: str) -> list[Logged]:
    async with open_store(data) as store:
        return await store.events(ANN)


async def test_a_conversation_waits_for_a_reasoner_in_another_process(data: str) -> None:
    async with (
        Mind.open(data, user="ann", session="s", responder=Coach.using(), part="talks", timeouts=SOON) as talks,
        Mind.open(data, user="ann", session="s", responder=Coach.using(), part="thinks", timeouts=SOON) as thinks,
    ):
        await talks.send("I sleep badly because of noise.")
        answer = asyncio.ensure_future(talks.send("Make me a plan."))
        while not answer.done():
            thinks.reasoners.wake()  # like a process that recovers work
            await asyncio.sleep(0.05)
        assert await answer
        await asyncio.wait_for(talks.settled(), 100)
    rows = await rows_of(data)
    heard = [row.seq for row in rows if isinstance(row.event, Heard)]
    about = Counter(seq for row in rows if isinstance(row.event, Thought) for seq in row.event.about)
    answers = Counter(row.event.answers for row in rows if isinstance(row.event, Said))
    assert about == answers == Counter(heard)
    assert sum(row.event.kind == "opened" for row in rows) == 1


async def test_two_processes_answer_in_order(data: str) -> None:
    async with (
        Mind.open(data, user="ann", session="s", responder=Coach.using()) as one,
        Mind.open(data, user="ann", session="s", responder=Coach.using()) as other,
    ):
        await asyncio.gather(one.send("I sleep badly."), other.send("It is the noise."), one.send("And the light."))
        await asyncio.gather(one.settled(), other.settled())
    rows = await rows_of(data)
    heard = [row.seq for row in rows if isinstance(row.event, Heard)]
    answers = [row.event.answers for row in rows if isinstance(row.event, Said)]
    assert answers == heard


async def test_answers_keep_the_order_of_utterances_with_a_slow_store(
    data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Mind.open(data, user="ann", session="s", responder=Coach.using()) as mind:
        turns = mind.reasoners.turns
        look, asked = turns.find, list[int]()

        async def look_late(heard: int) -> tuple[int, list[Work]] | None:
            asked.append(heard)
            await asyncio.sleep(0.5 if asked[0] == heard else 0)
            return await look(heard)

        monkeypatch.setattr(turns, "find", look_late)
        await asyncio.gather(mind.send("I sleep badly."), mind.send("It is the noise."))
        await mind.settled()
    rows = await rows_of(data)
    heard = [row.seq for row in rows if isinstance(row.event, Heard)]
    assert [row.event.answers for row in rows if isinstance(row.event, Said)] == heard == asked


async def test_an_utterance_sent_twice_with_one_key_is_processed_once(data: str) -> None:
    async with (
        Mind.open(data, user="ann", session="s", responder=Coach.using()) as one,
        Mind.open(data, user="ann", session="s", responder=Coach.using()) as other,
    ):

        async def say(mind: Mind) -> int:
            try:
                seqs = [row.seq async for row in mind.hear("I sleep badly.", once="k")]
                return seqs[0]
            except HeardAlready as already:
                return already.seq

        said = await asyncio.gather(*(say(mind) for mind in (one, other, one)))
        assert len(set(said)) == 1
    rows = await rows_of(data)
    assert [row.seq for row in rows if isinstance(row.event, Heard)] == [said[0]]
    assert [row.event.answers for row in rows if isinstance(row.event, Said)] == [said[0]]


async def test_an_abandoned_answer_can_be_claimed_after_the_lease(data: str) -> None:
    async with Mind.open(data, user="ann", session="s", responder=Coach.using(), timeouts=SOON) as mind:
        answering = mind.hear("I sleep badly.")
        heard = await anext(answering)
        async with open_store(data) as store:
            now = mind.memory.clock.now()
            assert await store.open_to_anybody(now, answers=True) == []
            late = await store.open_to_anybody(now + 100, answers=True)
            assert [(each.cause, each.slot) for each in late] == [(heard.seq, f"{ANSWER}s")]
        async for _ in answering:
            pass
        assert all(not each.slot.startswith(ANSWER) for each in await mind.memory.store.open_work(ANN))
