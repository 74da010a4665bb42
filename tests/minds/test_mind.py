"""The guarantees of a mind, with scripted models and a small pack: order, sources and storage of answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from keys import key_of

from mindstream import Coach, FakeModel, Mind, Models, Timeouts
from mindstream.coach.packs.pack import Alarm, Field_, Pack, Phase
from mindstream.coach.talker import Decision, Gate, Situation
from mindstream.errors import InputError, StorageError
from mindstream.log.events import BeliefChanged, Failed, FollowUp, Heard, Logged, Piece, Said, Thought, Waiting
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Commit
from mindstream.models.model import Call, Model, Part, Request
from mindstream.models.rules import Line, Rules
from mindstream.reasoners.reasoner import RunContext, RunResult, Trigger, Writing

PACK = Pack(
    name="tea",
    title="Tea coach",
    constitution="Talk about tea.",
    phases=(
        Phase(name="asking", goal="know", instructions="ask", thinking="think", fields=("wishes",), needs=("wishes",)),
        Phase(
            name="planning",
            goal="plan",
            instructions="plan",
            thinking="plan",
            fields=("wishes",),
            plans=True,
            waits=True,
        ),
    ),
    fields={"wishes": Field_(about="what they wish", type="list", ask=["What would you like?"])},
    alarms=(
        Alarm(id="burn", patterns={"en": [r"burnt myself"]}, say="Hold it under cool water.", stops=True),
        Alarm(id="heart", patterns={"en": [r"heart races"]}, say="Tea can do that.", stops=False),
    ),
)


class Slow:
    """A model that answers only when it is released."""

    def __init__(self, model: Model) -> None:
        self.name, self._model, self.let, self.asked = "slow", model, asyncio.Event(), asyncio.Event()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        if request.prompt.label() == "think":
            self.asked.set()
        await self.let.wait()
        async for part in self._model.reply(request):
            yield part


def phase(name: str, thought: str = '{"thought": "nothing"}') -> str:
    """A reasoner result that sets the phase of the conversation."""
    return thought[:-1] + f', "phase": "{name}"}}'


def thinks(*thoughts: str, phases: Sequence[str] = (), facts: int = 20) -> FakeModel:
    """A reasoner model with one result per turn."""
    names = phases or ["planning"] * len(thoughts)
    lines = [phase(name, thought) for thought, name in zip(thoughts, names, strict=True)]
    return FakeModel({"think": lines, "extract_facts": ['{"facts": []}'] * facts}, name="thinker")


def says(*lines: Line) -> FakeModel:
    return FakeModel({"talk": list(lines)}, name="talker")


def opened(folder: Path, talker: Model, reasoner: Model, gate: str | Gate = "belief", **more: Any):  # type: ignore[no-untyped-def]
    models = Models(Rules(), {"talker": talker, "reasoner": reasoner})
    return Mind.open(folder, responder=Coach.using(PACK, gate), user="ann", model=models, **more)


async def turn(mind: Mind, text: str) -> list[Logged]:
    return [logged async for logged in mind.hear(text)]


async def stored_rows(mind: Mind, *kinds: type) -> list[Logged]:
    return [row for row in await mind.memory.store.events(key_of("ann"), limit=10_000) if isinstance(row.event, kinds)]


NOTHING = '{"thought": "nothing"}'
WISH = '{"thought": "a wish", "patch": {"wishes": ["green tea"]}}'
STEP = (
    '{"thought": "one step", "plan": [{"title": "Warm the pot", "state": "now"}], "offer": "First warm the pot.",'
    ' "changed": "new"}'
)


async def test_the_talker_uses_the_last_finished_belief(folder: Path) -> None:
    async with opened(folder, says("Tell me more.", "I see."), thinks(WISH, NOTHING, phases=["asking"] * 2)) as mind:
        events = await turn(mind, "I wish for green tea")
        await mind.settled()
        assert [type(row.event) for row in events] == [Heard, Piece, Piece, Piece, Said]
        order = [row.event for row in await stored_rows(mind, Said, BeliefChanged)]
        assert isinstance(order[0], Said) and order[0].belief_version == 0
        assert isinstance(order[1], BeliefChanged) and order[1].version == 1
        second = (await turn(mind, "yes"))[-1].event
        assert isinstance(second, Said) and second.belief_version == 1


async def test_in_a_waiting_phase_the_talker_uses_the_reasoners_result(folder: Path) -> None:
    talker = says("Tell me more.", "First warm the pot.")
    async with opened(folder, talker, thinks(NOTHING, STEP)) as mind:
        await turn(mind, "hello")
        await mind.settled()
        events = [row.event for row in await turn(mind, "make me a plan")]
        waiting, said = events[1], events[-1]
        assert isinstance(waiting, Waiting) and waiting.text
        assert isinstance(said, Said) and said.waited and said.text == "First warm the pot."
        assert "offer: First warm the pot." in talker.asked[-1].messages[-1].text
        step = Coach.of(mind).plan.now
        assert step is not None and step.title == "Warm the pot"


async def test_after_the_deadline_the_talker_answers_and_one_follow_up_is_sent(folder: Path) -> None:
    slow = Slow(thinks(NOTHING, STEP))
    slow.let.set()
    timeouts = Timeouts(deadline_s=0.05)
    async with opened(folder, says("Hm.", "It takes a while."), slow, timeouts=timeouts) as mind:
        await turn(mind, "hello")
        await mind.settled()
        slow.let.clear()
        said = (await turn(mind, "make me a plan"))[-1].event
        assert isinstance(said, Said) and said.late and said.text == "It takes a while."
        slow.let.set()
        await mind.settled()
        followed = [row.event for row in await stored_rows(mind, FollowUp)]
        assert [event.text for event in followed if isinstance(event, FollowUp)] == ["First warm the pot."]


async def test_no_follow_up_after_a_newer_utterance(folder: Path) -> None:
    slow = Slow(thinks(NOTHING, STEP, NOTHING))
    slow.let.set()
    async with opened(
        folder, says("Hm.", "It takes a while.", "Sure."), slow, timeouts=Timeouts(deadline_s=0.05)
    ) as mind:
        await turn(mind, "hello")
        await mind.settled()
        slow.let.clear()
        await turn(mind, "make me a plan")
        await turn(mind, "never mind, thanks")
        slow.let.set()
        await mind.settled()
        assert await stored_rows(mind, FollowUp) == []


async def test_an_invalid_belief_patch_is_not_written(folder: Path) -> None:
    bad = '{"thought": "t", "patch": {"colour": "red"}}'
    async with opened(folder, says("One."), thinks(bad, phases=["asking"])) as mind:
        await turn(mind, "hello")
        await mind.settled()
        assert "colour" not in Coach.of(mind).belief.value.model_dump()
        assert any("has no field 'colour'" in str(row.event) for row in await stored_rows(mind, Failed))


async def test_an_alarm_is_answered_without_a_model_call(folder: Path) -> None:
    talker = says("never said")
    async with opened(folder, talker, thinks(NOTHING, phases=["asking"])) as mind:
        said = (await turn(mind, "I burnt myself on the kettle"))[-1].event
        assert isinstance(said, Said) and said.text == "Hold it under cool water." and said.model == "safety"
        assert talker.asked == []


async def test_the_talker_phrases_a_medical_warning_in_its_own_words(folder: Path) -> None:
    talker = says("Since when?")
    async with opened(folder, talker, thinks(NOTHING, phases=["asking"])) as mind:
        said = (await turn(mind, "My heart races after tea"))[-1].event
        assert isinstance(said, Said) and said.text == "Since when?"
        assert "<called_for>\nTea can do that.\n</called_for>" in talker.asked[0].messages[-1].text


async def test_after_an_empty_reasoner_result_the_talker_answers_normally(folder: Path) -> None:
    talker = says("You're welcome.")
    async with opened(folder, talker, thinks(NOTHING), gate=Waits()) as mind:
        said = (await turn(mind, "thanks"))[-1].event
        assert isinstance(said, Said) and said.waited and said.text == "You're welcome."
        assert "has thought about this" in talker.asked[0].messages[-1].text


class Waits:
    """A gate that always waits."""

    name = "waits"

    def decide(self, situation: Situation) -> Decision:
        return Decision(True, why=situation.phase.name)


async def test_concurrent_utterances_are_answered_in_order(folder: Path) -> None:
    lines: list[Line] = [f"answer {n}" for n in range(8)]
    async with opened(folder, says(*lines), thinks(*[NOTHING] * 8, phases=["asking"] * 8)) as mind:
        turns = await asyncio.gather(*(turn(mind, f"utterance {n}") for n in range(8)))
        await mind.settled()
        heard = [events[0].seq for events in turns]
        said = [events[-1].event for events in turns]
        assert max(heard) < min(events[-1].seq for events in turns)
        assert [event.answers for event in said if isinstance(event, Said)] == heard
        about = [
            seq
            for row in await stored_rows(mind, Thought)
            if isinstance(row.event, Thought) and row.event.slot == "tea"
            for seq in row.event.about
        ]
        assert sorted(about) == heard


async def test_an_interrupted_answer_is_stored_as_far_as_it_came(folder: Path) -> None:
    async with opened(folder, says("one two three"), thinks(NOTHING, phases=["asking"])) as mind:
        events = mind.hear("hello")
        async for logged in events:
            if isinstance(logged.event, Piece):
                break
        await events.aclose()
        said = await stored_rows(mind, Said)
        assert len(said) == 1


async def test_running_work_can_be_cancelled_and_counts_as_done(folder: Path) -> None:
    slow = Slow(thinks(NOTHING))
    async with opened(folder, says("One."), slow) as mind:
        await turn(mind, "hello")
        await slow.asked.wait()
        assert mind.reasoners.cancel("tea") == 1
        slow.let.set()
        await mind.settled()
        texts = [
            row.event.text
            for row in await stored_rows(mind, Thought)
            if isinstance(row.event, Thought) and row.event.slot == "tea"
        ]
        assert texts == ["cancelled"]


async def test_memory_persists_between_sessions_and_is_isolated_by_user(folder: Path) -> None:
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        await turn(mind, "My name is Ann and I drink four coffees a day.")
        await mind.settled()
    async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
        said = (await turn(mind, "What do you remember about me?"))[-1].event
        assert isinstance(said, Said) and "four coffees" in said.text
    async with Mind.open(folder, user="bob", responder=Coach.using()) as mind:
        said = (await turn(mind, "What do you remember about me?"))[-1].event
        assert isinstance(said, Said) and "coffee" not in said.text and "Ann" not in said.text


@pytest.mark.parametrize("text", ["", "   \n", "\x00\x1b\x07", "x" * 1_000_000])
async def test_an_invalid_utterance_is_refused_and_not_stored(folder: Path, text: str) -> None:
    async with opened(folder, says("One."), thinks(NOTHING)) as mind:
        with pytest.raises(InputError):
            await turn(mind, text)
        assert await stored_rows(mind, Heard) == []


class Keeper:
    """A reasoner that records the messages that woke it."""

    def __init__(self, trigger: Trigger) -> None:
        self.slot, self.trigger, self.timeout_s = "keeping", trigger, 5.0
        self.woken: list[list[str]] = []
        self.done = asyncio.Event()

    async def think(self, context: RunContext) -> RunResult:
        self.woken.append([utterance.text for utterance in context.utterances])
        self.done.set()

        async def write() -> Writing:
            return (), ()

        return RunResult("kept", "test", write=write)


async def test_a_reasoner_wakes_by_its_trigger(folder: Path) -> None:
    second, planning = (
        Keeper(Trigger(every=2)),
        Keeper(Trigger(phases=("planning",), entering=True)),
    )
    planning.slot = "entering"
    lines: list[Line] = [f"answer {n}" for n in range(5)]
    thinker = thinks(*[NOTHING] * 5, phases=["asking", "asking", "planning", "planning", "planning"])
    async with opened(folder, says(*lines), thinker, reasoners=[second, planning]) as mind:
        for n in range(1, 6):
            await turn(mind, f"number {n}")
            await mind.settled()
    assert second.woken == [["number 2"], ["number 4"]]
    assert planning.woken == [["number 4"]]


async def test_an_utterance_that_was_not_stored_is_not_counted(folder: Path) -> None:
    class FullStore(SqliteStore):
        is_full = False

        async def commit(self, *commits: Commit) -> list[Logged]:
            if self.is_full:
                raise StorageError("the disk is full")
            return await super().commit(*commits)

    second = Keeper(Trigger(every=2))
    store = FullStore(folder)
    async with store, Mind.open(store, user="ann", responder=None, reasoners=[second]) as mind:
        await turn(mind, "number 1")
        store.is_full = True
        with pytest.raises(StorageError):
            await turn(mind, "number 2")
        store.is_full = False
        await turn(mind, "number 2")
        await mind.settled()
    assert second.woken == [["number 2"]]


async def test_an_idle_trigger_fires_once_per_silence(folder: Path) -> None:
    idle = Keeper(Trigger(every=0, idle_s=0.05))
    async with opened(folder, says("One."), thinks(NOTHING), reasoners=[idle]) as mind:
        await turn(mind, "hello")
        await idle.done.wait()
        await asyncio.sleep(0.3)
        assert idle.woken == [[]]
        thoughts = [
            row.event
            for row in await stored_rows(mind, Thought)
            if isinstance(row.event, Thought) and row.event.slot == "keeping"
        ]
        assert len(thoughts) == 1 and thoughts[0].about == ()


async def test_a_newer_utterance_steers_a_running_reasoner(folder: Path) -> None:
    reasoner = FakeModel(
        {
            "think": [phase("planning"), [Call("find_resources", '{"query": "tea"}')], STEP],
            "extract_facts": ['{"facts": []}'] * 5,
        }
    )
    slow = Slow(reasoner)
    slow.let.set()
    async with opened(folder, says("Hm.", "late", "late"), slow, timeouts=Timeouts(deadline_s=0.02)) as mind:
        await turn(mind, "hello")
        await mind.settled()
        slow.let.clear()
        slow.asked.clear()
        first = (await turn(mind, "make me a plan"))[0].seq
        await slow.asked.wait()
        second = (await turn(mind, "without sugar"))[0].seq
        slow.let.set()
        await mind.settled()
        about = [
            row.event.about
            for row in await stored_rows(mind, Thought)
            if isinstance(row.event, Thought) and row.event.slot == "tea"
        ]
        assert about[1:] == [(first, second)]
        thinking = [asked for asked in reasoner.asked if asked.prompt.label() == "think"]
        assert any("without sugar" in message.text for message in thinking[-1].turns)
