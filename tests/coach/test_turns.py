"""A turn and its listener: alarms pre-empt, no listener blocks, silence is filled, excuses are given once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from keys import key_of
from spoken import Silent, Waits, said, turn

from mindstream import Coach, FakeModel, Mind, Models, Timeouts
from mindstream.coach.coach import UNAVAILABLE
from mindstream.coach.talker import Decision, Situation
from mindstream.errors import ModelRefused, ModelUnavailable
from mindstream.log.events import Failed, Piece, Reading, Said, Waiting
from mindstream.models.model import Model, Part, Request
from mindstream.models.model import Piece as Words
from mindstream.models.rules import Line, Rules
from mindstream.reasoners.reasoner import EVERY_TURN, RunContext, RunResult, build_context, nothing_newer

ALARM = "I want to kill myself"


def talker(model: Model) -> Models:
    return Models(Rules(), {"talker": model})


async def test_an_alarm_does_not_wait_for_reasoners(folder: Path) -> None:
    models = Models(Rules(), {"reasoner": Silent()})
    async with Mind.open(folder, user="ann", model=models, responder=Coach.using(gate=Waits())) as mind:
        waiting = asyncio.ensure_future(turn(mind, "Noise keeps me awake. Can you make me a plan?"))
        queued = asyncio.ensure_future(turn(mind, "hello?"))
        async with asyncio.timeout(100):
            while len(await mind.memory.store.events(key_of("ann"), kinds=["heard", "waiting"])) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        async with asyncio.timeout(100):
            answer = said(await turn(mind, ALARM))
            assert answer.model == "safety" and answer.text
            for other in (waiting, queued):
                assert not any(isinstance(row.event, Said) for row in await other), "no answer follows the alarm"


async def test_an_alarm_interrupts_a_running_answer(folder: Path) -> None:
    model = Silent("Well, ")
    async with Mind.open(folder, user="ann", model=talker(model), responder=Coach.using()) as mind:
        with mind.memory.feed.listening() as events:
            speaking = asyncio.ensure_future(turn(mind, "hello there"))
            async for row in events:
                if isinstance(row.event, Piece):
                    break
        async with asyncio.timeout(100):
            assert said(await turn(mind, ALARM)).model == "safety"
            broken_off = said(await speaking) if any(isinstance(r.event, Said) for r in await speaking) else None
        texts = [record.text for record in await mind.memory.latest("chat", 10)]
        assert "Well," in texts and broken_off is None, "the shown part is stored"


async def test_an_unread_generator_blocks_no_one(folder: Path) -> None:
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        kept = mind.hear("I wake at three")
        async for logged in kept:
            if isinstance(logged.event, Piece):
                break
        untouched = mind.hear("and at four")
        await anext(untouched)
        async with asyncio.timeout(100):
            assert said(await turn(mind, "and now?"))
            await mind.settled()
        answers = [
            row.event.answers for row in await mind.memory.store.events(key_of("ann")) if isinstance(row.event, Said)
        ]
        assert len(answers) == 3, "the others were answered without a listener"
        await kept.aclose()
        await untouched.aclose()


async def test_an_interrupted_answer_is_stored_as_far_as_shown(folder: Path) -> None:
    async with Mind.open(
        folder, user="ann", model=talker(Silent("one ", "two ", "three ")), responder=Coach.using()
    ) as mind:
        events, pieces = mind.hear("hello there"), 0
        async for logged in events:
            pieces += isinstance(logged.event, Piece)
            if pieces == 2:
                break
        await events.aclose()
        assert (await mind.memory.latest("chat", 1))[0].text == "one two"


async def test_a_silence_is_filled_with_a_neutral_filler(folder: Path) -> None:
    models = Models(Rules(), {"reasoner": Silent()})
    timeouts = Timeouts(deadline_s=0.5, filler_s=0.1)
    async with Mind.open(
        folder, user="ann", model=models, responder=Coach.using(gate=Waits()), timeouts=timeouts
    ) as mind:
        events = await turn(mind, "Noise keeps me awake. Can you make me a plan?")
        fillers = [row.event.text for row in events if isinstance(row.event, Waiting)]
        assert len(fillers) >= 3 and len(set(fillers)) == len(fillers)
        assert said(events).late
    model = Silent()
    async with Mind.open(
        folder, user="bob", model=talker(model), timeouts=Timeouts(filler_s=0.1), responder=Coach.using()
    ) as mind:
        events = []
        async for logged in mind.hear("hello there"):
            events.append(logged)
            if sum(isinstance(row.event, Reading) for row in events) == 3:
                model.let.set()
        (filler,) = [row.event.text for row in events if isinstance(row.event, Waiting)]
        assert "think" not in filler and said(events).text == "the rest", "a slow model is not a reasoning state"
        assert {row.event.model for row in events if isinstance(row.event, Reading)} == {"silent"}
        assert not await mind.memory.store.events(key_of("bob"), kinds=["reading"]), "it is shown, but not stored"


FAILED = "I can't think just now: I don't reach the language model that I think with. What you said is kept"


async def test_an_unavailable_model_is_explained_once_and_not_stored(folder: Path) -> None:
    down = ModelUnavailable("it is down")
    lines: list[Line] = [down, down, "I am back.", down, ModelRefused("not this")]
    async with Mind.open(folder, user="ann", model=talker(FakeModel({"talk": lines})), responder=Coach.using()) as mind:
        answers = [
            said(await turn(mind, f"I drink tea at {hour}")) for hour in ("six", "seven", "eight", "nine", "ten")
        ]
        assert [FAILED in answer.text for answer in answers] == [True, False, False, True, False]
        assert "kept" in answers[1].text and len(answers[1].text) < len(FAILED) and answers[2].text == "I am back."
        assert "did not take that" in answers[4].text
        assert [answer.model for answer in answers] == [UNAVAILABLE] * 2 + ["scripted"] + [UNAVAILABLE] * 2
        kept = [record.text for record in await mind.memory.latest("chat", 20) if not record.data.get("by_user")]
        assert kept == ["I am back."], "no rule answers, and no excuse is stored"
        assert all(not answer.record for answer in answers if answer.model == UNAVAILABLE)


async def test_messages_of_an_outage_are_processed_afterwards(folder: Path) -> None:
    down = ModelUnavailable("it is down")
    plan = '{"thought": "t", "plan": [{"title": "Dim it", "state": "now"}], "follow_up": "Dim the lights at nine."}'
    reasoner = FakeModel({"think": [down, plan], "extract_facts": [down]})
    models = Models(
        Rules(), {"talker": FakeModel({"talk": [down]}), "reasoner": reasoner, "facts": Rules(), "safety": Rules()}
    )
    async with Mind.open(
        folder, user="ann", model=models, timeouts=Timeouts(retry_s=0.01), responder=Coach.using()
    ) as mind:
        assert said(await turn(mind, "Make me a plan")).model == UNAVAILABLE
        async with asyncio.timeout(100):
            while not (follow_ups := await mind.memory.store.events(key_of("ann"), kinds=["follow_up"])):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert "Dim the lights at nine." in follow_ups[0].event.model_dump_json()


async def test_an_internal_error_is_answered_with_an_apology(folder: Path) -> None:
    class Faulty:
        name = "faulty"

        async def reply(self, request: Request) -> AsyncGenerator[Part]:
            raise KeyError("talk")
            yield Words("")

    async with Mind.open(folder, user="ann", model=talker(Faulty()), responder=Coach.using()) as mind:
        answer = said(await turn(mind, "The noise keeps me awake"))
        assert answer.model == UNAVAILABLE and answer.text.startswith("Something went wrong on my side")
        failed = [row.event for row in await mind.memory.store.events(key_of("ann")) if isinstance(row.event, Failed)]
        assert [(event.where, event.text) for event in failed] == [("talker", "KeyError: 'talk'")]


async def test_a_failing_gate_falls_back_to_the_rule_of_the_paper(folder: Path) -> None:
    class Faulty(Waits):
        def decide(self, situation: Situation) -> Decision:
            raise ValueError("no idea")

    async with Mind.open(folder, user="ann", responder=Coach.using(gate=Faulty())) as mind:
        assert not said(await turn(mind, "The noise keeps me awake")).waited
        (decided,) = await mind.memory.store.events(key_of("ann"), kinds=["decided"])
        assert "the gate failed: ValueError: no idea" in decided.event.model_dump_json()


async def test_an_utterance_after_close_is_refused(folder: Path) -> None:
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        pass
    with pytest.raises(Exception, match="closed"):
        await turn(mind, "hello")


async def test_a_silent_talker_times_out_and_releases_the_lock(folder: Path) -> None:
    timeouts = Timeouts(silence_s=0.2)
    async with Mind.open(
        folder, user="ann", model=talker(Silent("Well, ")), timeouts=timeouts, responder=Coach.using()
    ) as mind:
        answer = said(await turn(mind, "The noise keeps me awake"))
        assert answer.text == f"Well,\n{FAILED}, and I come back to it as soon as I can."
        assert answer.model == UNAVAILABLE and (await mind.memory.latest("chat", 1))[0].text == "Well,"
        failed = [
            row.event.text for row in await mind.memory.store.events(key_of("ann")) if isinstance(row.event, Failed)
        ]
        assert failed == ["silent sent no output for 0.2 seconds"]
        await mind.settled()


class Aware:
    """A reasoner that notes whether the talker waits for it."""

    def __init__(self, slot: str) -> None:
        self.slot, self.waits, self.trigger, self.timeout_s = slot, list[bool](), EVERY_TURN, 10.0

    async def think(self, context: RunContext) -> RunResult:
        self.waits.append(context.waits)
        return RunResult("", "rules")


async def test_no_reasoner_is_awaited_if_only_the_model_is_slow_or_the_answer_is_an_excuse(folder: Path) -> None:
    model, aware = Silent(), Aware("aware")
    timeouts = Timeouts(filler_s=0.01, silence_s=0.2)
    async with Mind.open(
        folder, user="ann", model=talker(model), timeouts=timeouts, reasoners=[aware], responder=Coach.using()
    ) as mind:
        events = await turn(mind, "hello there")
        assert said(events).model == UNAVAILABLE
        (slow, *_) = [row.event for row in events if isinstance(row.event, Waiting)]
        assert slow.slots == ()
        await mind.settled()
        assert aware.waits == [False]
        heard, *_ = await mind.memory.store.events(key_of("ann"), kinds=["heard"])
        assert not (await build_context(mind.memory, "sleep", [heard], nothing_newer)).waits


async def test_the_reasoner_that_the_talker_waits_for_is_told_so(folder: Path) -> None:
    models = Models(Rules(), {"reasoner": Silent()})
    async with Mind.open(folder, user="ann", model=models, responder=Coach.using(gate=Waits())) as mind:
        with mind.memory.feed.listening() as events:
            waiting = asyncio.ensure_future(turn(mind, "Can you make me a plan?"))
            async for row in events:
                if isinstance(row.event, Waiting) and row.event.slots:
                    break
        (heard,) = await mind.memory.store.events(key_of("ann"), kinds=["heard"])
        assert (await build_context(mind.memory, "sleep", [heard], nothing_newer)).waits
        assert not (await build_context(mind.memory, "facts", [heard], nothing_newer)).waits
        waiting.cancel()
