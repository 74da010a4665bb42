"""I(tip, timeout): who can answer, when, from where, and the handling of late answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest
from lives import FINISH, call, living, results, rows, script

from mindstream.clock import ManualClock, SystemClock
from mindstream.errors import InputError
from mindstream.life import commands
from mindstream.life.life import Life, LifeConfig
from mindstream.life.schedule import ActiveHours, Rhythm
from mindstream.life.state import LifeBudget
from mindstream.memory.memory import Memory
from mindstream.models.model import Part, Request
from mindstream.models.roles import Models
from mindstream.models.rules import FakeModel

NOT_YET = "the user has not replied yet"


async def test_a_timeout_of_zero_does_not_wait(tmp_path: Path) -> None:
    clock = ManualClock()
    before = clock.now()
    async with living(tmp_path, script([[call("I", tip="Well?", timeout=0)], FINISH, "ok"]), clock=clock) as life:
        await life.run(turns=1)
        assert ("I", NOT_YET) in await results(life.memory) and clock.now() == before


async def test_a_late_answer_is_delivered_in_the_next_turn(tmp_path: Path) -> None:
    model = script([[call("I", tip="Which colour?", timeout=60)], "asked", FINISH, "ok"])
    async with living(tmp_path, model) as life:
        await life.run(turns=1)
        assert (await commands.answer(life.memory, "Blue, please.")).tip == "Which colour?"
        with pytest.raises(InputError, match="no open question"):
            await commands.answer(life.memory, "or green")
        await life.run(turns=1)
        opening = (await rows(life.memory, "turn_began"))[-1]
    assert "“Which colour?”: Blue, please." in opening.words and opening.because == "user"


async def test_an_answer_to_a_closed_question_is_labelled_as_late(tmp_path: Path) -> None:
    """An answer in the moment of the timeout is still delivered."""
    model = script([[call("I", tip="Which colour?", timeout=1)], "asked", FINISH, "ok"])
    async with living(tmp_path, model) as life:
        await life.run(turns=1)
        (question,) = await rows(life.memory, "questioned")
        await commands.write_answer(life.memory, question.id, "blue")
        await life.run(turns=1)
        opening = (await rows(life.memory, "turn_began"))[-1]
    assert "answered later what you asked, “Which colour?”: blue" in opening.words


async def test_another_session_can_answer_an_open_question(tmp_path: Path) -> None:
    """Real time: the life waits, and another stream on the same folder answers."""
    model = script([[call("I", tip="Which colour?", timeout=300)], FINISH, "ok"])
    async with (
        Memory.open(tmp_path, "keeper", clock=SystemClock()) as stream,
        Life.open(stream, Models(model), goal="Paint.") as life,
        Memory.open(tmp_path, "keeper") as other,
    ):
        living_on = asyncio.ensure_future(life.run(turns=1))
        while not life.state.questions:  # noqa: ASYNC110 (its state has no event to wait for)
            await asyncio.sleep(0.02)
        asked = await commands.answer(other, "blue", session="elsewhere")
        await asyncio.wait_for(living_on, 60)
        assert asked.tip == "Which colour?" and ("I", "blue") in await results(stream)


async def test_a_resumed_question_waits_the_remaining_time(tmp_path: Path) -> None:
    """It waits the remaining time, not the whole again; an answer given during the interruption is found."""
    clock = ManualClock()

    async def dies(_: str) -> str:
        raise KeyboardInterrupt

    model = script([[call("I", tip="Which colour?", timeout=100)]])
    with pytest.raises(KeyboardInterrupt):
        async with living(tmp_path, model, clock=clock, user=dies) as life:
            await life.run(turns=1)
    clock.advance(50)
    async with Memory.open(tmp_path, "keeper", clock=clock) as stream:
        await commands.answer(stream, "green")
    async with living(tmp_path, script([FINISH, "ok"]), clock=clock) as life:
        await life.run(turns=1)
        assert ("I", "green") in await results(life.memory) and len(await rows(life.memory, "questioned")) == 1


async def test_questions_are_not_sent_outside_the_active_hours(tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000.0)  # 22:13 UTC
    rhythm = Rhythm(ActiveHours("08:00-22:00"))
    model = script([[call("I", tip="Asleep?", timeout=600)], FINISH, "ok"])
    async with living(tmp_path, model, clock=clock, config=LifeConfig(rhythm=rhythm)) as life:
        await commands.say(life.memory, "Are you awake?")
        before = clock.now()
        await life.run(turns=1)
        (question,) = await rows(life.memory, "questioned")
        assert not question.shown and ("I", NOT_YET) in await results(life.memory) and clock.now() == before


async def test_words_to_the_user_have_a_daily_budget(tmp_path: Path) -> None:
    asked: list[str] = []

    async def user(tip: str) -> str:
        asked.append(tip)
        return "yes"

    wished = [call("I", tip="one two three", timeout=9), call("I", tip="four five six", timeout=9)]
    config = LifeConfig(budget=LifeBudget(words_per_day=5))
    async with living(tmp_path, script([wished, FINISH, "ok"]), user=user, config=config) as life:
        await life.run(turns=1)
    assert asked == ["one two three"]


async def test_a_message_during_a_turn_is_part_of_that_turn(tmp_path: Path) -> None:
    told: list[str] = []

    def listens(request: Request) -> str:
        told.append(request.messages[-1].text)
        return "ok"

    asked, noticed = asyncio.Event(), asyncio.Event()

    class Slow(FakeModel):
        async def reply(self, request: Request) -> AsyncGenerator[Part]:
            asked.set()
            await noticed.wait()
            async with aclosing(super().reply(request)) as parts:
                async for part in parts:
                    yield part

    async with living(tmp_path, Slow({"live": [[call("R", query="x")], listens]})) as life:
        turn = asyncio.ensure_future(life.run(turns=1))
        await asked.wait()
        await commands.notice(life.memory, "come home")
        noticed.set()
        await turn
    assert "come home" in told[0]
