"""A turn and whoever listens to it: alarms pre-empt, nobody is held up, silence is filled, excuses are made once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from mindstream import Mind, Models, Patience, Scripted
from mindstream.coach.gates.gate import Decision, Situation
from mindstream.coach.packs.load import load
from mindstream.errors import ModelRefused, ModelUnavailable
from mindstream.log.events import Failed, Heard, Logged, Piece, Said, Waiting
from mindstream.models.model import Model, Part, Request
from mindstream.models.model import Piece as Words
from mindstream.models.rules import Rules
from mindstream.models.scripted import Line

ALARM = "I want to kill myself"


class Waits:
    """A gate that always waits."""

    name = "waits"

    def decide(self, situation: Situation) -> Decision:
        return Decision(True, why=situation.phase.name)

    async def weigh(self, situation: Situation) -> Decision:
        return self.decide(situation)


class Silent:
    """A model that says the first of its words, and then no more until it is let."""

    name = "silent"

    def __init__(self, *first: str) -> None:
        self._first, self.let, self.asked = first, asyncio.Event(), asyncio.Event()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.asked.set()
        for words in self._first:
            yield Words(words)
        await self.let.wait()
        yield Words("the rest")


def talker(model: Model) -> Models:
    return Models(Rules(), {"talker": model})


async def turn(mind: Mind, text: str) -> list[Logged]:
    return [logged async for logged in mind.hear(text)]


def said(events: Sequence[Logged]) -> Said:
    (found,) = (row.event for row in events if isinstance(row.event, Said))
    return found


async def test_an_alarm_waits_neither_for_a_reasoner_nor_for_whoever_waits_for_it(folder: Path) -> None:
    models = Models(Rules(), {"reasoner": Silent()})
    async with Mind.open(folder, user="ann", models=models, gate=Waits()) as mind:
        waiting = asyncio.ensure_future(turn(mind, "Noise keeps me awake. Can you make me a plan?"))
        queued = asyncio.ensure_future(turn(mind, "hello?"))
        async with asyncio.timeout(25):
            while len(await mind.stream.store.events("ann", kinds=["heard", "waiting"])) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        async with asyncio.timeout(25):
            answer = said(await turn(mind, ALARM))
            assert answer.model == "safety" and answer.text
            for other in (waiting, queued):
                assert not any(isinstance(row.event, Said) for row in await other), "nothing comes after it"


async def test_an_alarm_breaks_off_an_answer_that_is_being_spoken(folder: Path) -> None:
    model = Silent("Well, ")
    async with Mind.open(folder, user="ann", models=talker(model)) as mind:
        speaking = asyncio.ensure_future(turn(mind, "hello there"))
        await model.asked.wait()
        await asyncio.sleep(0.05)
        async with asyncio.timeout(25):
            assert said(await turn(mind, ALARM)).model == "safety"
            broken_off = said(await speaking) if any(isinstance(r.event, Said) for r in await speaking) else None
        texts = [record.text for record in await mind.stream.latest("chat", 10)]
        assert "Well," in texts and broken_off is None, "what was shown is remembered"


async def test_a_listener_that_keeps_its_generator_holds_up_nobody(folder: Path) -> None:
    async with Mind.open(folder, user="ann") as mind:
        kept = mind.hear("I wake at three")
        async for logged in kept:
            if isinstance(logged.event, Piece):
                break
        untouched = mind.hear("and at four")
        await anext(untouched)
        async with asyncio.timeout(10):
            assert said(await turn(mind, "and now?"))
            await mind.settled()
        answers = [row.event.answers for row in await mind.stream.store.events("ann") if isinstance(row.event, Said)]
        assert len(answers) == 3, "the others were answered too, though nobody listened"
        await kept.aclose()
        await untouched.aclose()


async def test_a_broken_off_answer_is_remembered_as_far_as_it_was_shown(folder: Path) -> None:
    async with Mind.open(folder, user="ann", models=talker(Silent("one ", "two ", "three "))) as mind:
        events, pieces = mind.hear("hello there"), 0
        async for logged in events:
            pieces += isinstance(logged.event, Piece)
            if pieces == 2:
                break
        await events.aclose()
        assert (await mind.stream.latest("chat", 1))[0].text == "one two"


async def test_silence_is_filled_with_words_that_state_nothing(folder: Path) -> None:
    models = Models(Rules(), {"reasoner": Silent()})
    patience = Patience(deadline_s=0.5, word_s=0.1)
    async with Mind.open(folder, user="ann", models=models, gate=Waits(), patience=patience) as mind:
        events = await turn(mind, "Noise keeps me awake. Can you make me a plan?")
        fillers = [row.event.text for row in events if isinstance(row.event, Waiting)]
        assert len(fillers) >= 3 and len(set(fillers)) == len(fillers)
        assert said(events).late
    model = Silent()
    async with Mind.open(folder, user="bob", models=talker(model), patience=Patience(word_s=0.1)) as mind:
        events = []
        async for logged in mind.hear("hello there"):
            events.append(logged)
            if sum(isinstance(row.event, Waiting) for row in events) == 2:
                model.let.set()
        fillers = [row.event.text for row in events if isinstance(row.event, Waiting)]
        assert len(fillers) >= 2 and said(events).text == "the rest"
        assert not any("think" in filler for filler in fillers), "a slow model is no thought"


async def test_what_is_queued_behind_a_thought_gets_no_filler_of_its_own(folder: Path) -> None:
    silent = Silent()
    patience = Patience(word_s=0.05, deadline_s=60)
    models = Models(Rules(), {"reasoner": silent})
    async with Mind.open(folder, user="ann", models=models, patience=patience) as mind:
        waiting = asyncio.ensure_future(turn(mind, "Noise keeps me awake. Can you make me a plan?"))
        await silent.asked.wait()
        queued = [asyncio.ensure_future(turn(mind, text)) for text in ("thanks", "hm", "are you a real person?")]
        async with asyncio.timeout(25):
            while len(fillers := await mind.stream.store.events("ann", kinds=["waiting"])) < 6:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        silent.let.set()
        answered = said(await waiting)
        assert {row.event.answers for row in fillers} == {answered.answers}  # type: ignore[attr-defined]
        assert answered.waited and not any([said(await each).waited for each in queued])


async def test_the_excuse_is_made_once_and_is_no_memory(folder: Path) -> None:
    down = ModelUnavailable("it is down")
    lines: list[Line] = [down, down, "I am back.", down, ModelRefused("not this")]
    async with Mind.open(folder, user="ann", models=talker(Scripted({"talk": lines}))) as mind:
        answers = [
            said(await turn(mind, f"I drink tea at {hour}")) for hour in ("six", "seven", "eight", "nine", "ten")
        ]
        assert [("language model" in answer.text) for answer in answers] == [True, False, False, True, True]
        assert "did not take that" in answers[-1].text and answers[2].text == "I am back."
        assert [answer.model for answer in answers] == ["rules", "rules", "scripted", "rules", "rules"]
        kept = [record.text for record in await mind.stream.latest("chat", 20)]
        assert not any("language model" in text for text in kept), kept
        assert all(answer.text.endswith(kept[2 * n + 1]) for n, answer in enumerate(answers))


async def test_a_fault_of_our_own_is_answered_too(folder: Path) -> None:
    class Faulty:
        name = "faulty"

        async def reply(self, request: Request) -> AsyncGenerator[Part]:
            raise KeyError("talk")
            yield Words("")

    async with Mind.open(folder, user="ann", models=talker(Faulty())) as mind:
        answer = said(await turn(mind, "The noise keeps me awake"))
        assert answer.model == "rules" and answer.text.startswith("(Something went wrong on my side")
        failed = [row.event for row in await mind.stream.store.events("ann") if isinstance(row.event, Failed)]
        assert [(event.where, event.text) for event in failed] == [("talker", "KeyError: 'talk'")]


@pytest.mark.parametrize("where", ["decide", "weigh"])
async def test_a_gate_that_fails_leaves_the_papers_rule(folder: Path, where: str) -> None:
    class Faulty(Waits):
        def decide(self, situation: Situation) -> Decision:
            return self.fail() if where == "decide" else super().decide(situation)

        async def weigh(self, situation: Situation) -> Decision:
            return self.fail()

        def fail(self) -> Decision:
            raise ValueError("no idea")

    async with Mind.open(folder, user="ann", gate=Faulty()) as mind:
        assert not said(await turn(mind, "The noise keeps me awake")).waited
        (decided,) = await mind.stream.store.events("ann", kinds=["decided"])
        assert "the gate failed: ValueError: no idea" in decided.event.model_dump_json()


async def test_fillers_state_nothing_in_every_language() -> None:
    from mindstream.coach.packs.filler import states
    from mindstream.coach.packs.saying import phrases

    for language in ("en", "zh"):
        for move, fewest in (("wait_longer", 5), ("a_moment", 3)):
            fillers = phrases(load("sleep"), move, language)
            assert len(fillers) >= fewest and not any(states(each, ()) for each in fillers)


async def test_what_is_heard_after_the_end_is_refused(folder: Path) -> None:
    async with Mind.open(folder, user="ann") as mind:
        pass
    with pytest.raises(Exception, match="closed"):
        await turn(mind, "hello")


async def test_a_mind_that_is_closed_midway_keeps_what_was_shown(folder: Path) -> None:
    model = Silent("Well, ")
    async with Mind.open(folder, user="ann", models=talker(model)) as mind:
        events = mind.hear("hello there")
        while not isinstance((await anext(events)).event, Piece):
            pass
    async with Mind.open(folder, user="ann") as mind:
        await mind.settled()
        kinds = [type(row.event) for row in await mind.stream.store.events("ann", kinds=["heard", "said"])]
        assert kinds == [Heard, Said]
    await events.aclose()


async def test_a_talker_that_falls_silent_gives_the_floor_back(folder: Path) -> None:
    patience = Patience(speaking_s=0.2)
    async with Mind.open(folder, user="ann", models=talker(Silent("Well, ")), patience=patience) as mind:
        answer = said(await turn(mind, "The noise keeps me awake"))
        assert answer.text.startswith("Well, \n(I can't reach my language model") and answer.model == "rules"
        failed = [row.event.text for row in await mind.stream.store.events("ann") if isinstance(row.event, Failed)]
        assert failed == ["silent said nothing for 0.2 s"]
        await mind.settled()
