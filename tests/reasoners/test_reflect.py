"""Reflection: when enough important observations have gathered, they become thoughts with evidence."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from keys import key_of

from mindstream import FakeModel, ManualClock, Memory, SqliteStore
from mindstream.errors import ModelError, ModelUnavailable
from mindstream.log.events import Reflected
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.models.embedders.embedder import WordLlama
from mindstream.models.model import Request
from mindstream.models.rules import Rules
from mindstream.reasoners.background import make_writing
from mindstream.reasoners.reasoner import RunContext
from mindstream.reasoners.reflect.reflect import (
    START,
    Insight,
    Insights,
    Questions,
    ReflectReasoner,
    counter,
    reflect,
    reflect_if_due,
)


@pytest.fixture
async def stream(folder: Path) -> AsyncIterator[Memory]:
    store = SqliteStore(folder)
    async with Memory(store, "ann", WordLlama(), ManualClock()) as made:
        yield made
    await store.close()


async def seen(stream: Memory, *texts: str, importance: float = 5.0) -> list[Record]:
    return await stream.retain_all([RecordDraft(text=text, importance=importance) for text in texts])


def answering(question: str, *insights: Insight, times: int = 1) -> FakeModel:
    found = json.dumps({"insights": [each.model_dump() for each in insights]})
    return FakeModel({"salient_questions": [Questions(questions=[question])] * times, "insights": [found] * times})


async def test_the_counter_decreases_by_the_importance_of_observations(stream: Memory) -> None:
    assert await counter(stream) == START == 150
    await seen(stream, "a", "b", importance=8)
    await stream.retain("a note", "note", importance=9)
    await stream.retain("not rated yet")
    assert await counter(stream) == 134


async def test_at_zero_observations_become_thoughts_with_evidence_and_depth(stream: Memory) -> None:
    records = await seen(stream, *(f"Ann is painting the boat, day {n}" for n in range(30)))
    assert await counter(stream) == 0
    asked: list[str] = []

    def insight(request: Request) -> str:
        prompt = request.prompt
        assert isinstance(prompt, Insights)
        asked.append(prompt.question)
        number = prompt.memories.index("Ann is painting the boat, day 3") + 1
        return json.dumps({"insights": [{"text": f"Ann loves {len(asked)} boats", "because": [number, number, 99, 0]}]})

    questions = Questions(questions=["Which boat?", "Why paint?", "Who is Ann?", "one too many?"])
    model = FakeModel({"salient_questions": [questions], "insights": [insight] * 3})
    thoughts = await reflect_if_due(stream, model)
    assert asked == ["Which boat?", "Why paint?", "Who is Ann?"]
    assert [thought.text for thought in thoughts] == ["Ann loves 1 boats", "Ann loves 2 boats", "Ann loves 3 boats"]
    assert {(thought.kind, thought.depth, thought.evidence) for thought in thoughts} == {
        ("thought", 1, (records[3].id,))
    }
    assert await counter(stream) == 150
    event = await stream.store.last(key_of("ann"), "reflected")
    assert event is not None and isinstance(event.event, Reflected)
    assert event.event.thoughts == tuple(thought.id for thought in thoughts)


async def test_an_insight_with_an_existing_text_is_not_written_again(stream: Memory) -> None:
    await seen(stream, "Ann is painting the boat")
    both = (Insight(text="Ann loves boats.", because=[1]), Insight(text="ann loves boats", because=[1]))
    model = answering("the boat?", *both, times=2)
    assert len(await reflect(stream, model)) == 1
    assert await reflect(stream, model) == []
    assert len(await stream.latest("thought", 9)) == 1


async def test_an_insight_that_only_repeats_a_memory_is_dropped(stream: Memory) -> None:
    await seen(stream, "Ann is painting the boat")
    assert await reflect(stream, answering("the boat?", Insight(text="Ann is painting the boat.", because=[1]))) == []


async def test_an_insight_without_support_is_not_written(stream: Memory) -> None:
    await seen(stream, "Ann is painting the boat")
    assert await reflect(stream, answering("the boat?", Insight(text="Ann is rich", because=[7, -1]))) == []


@pytest.mark.parametrize("fails", ["salient_questions", "insights"])
async def test_a_failing_model_writes_nothing_and_keeps_the_counter(stream: Memory, fails: str) -> None:
    await seen(stream, *(f"percept {n}" for n in range(30)))
    lines = {"salient_questions": ['{"questions": ["What?"]}'], "insights": ["no idea"]}
    model = FakeModel(lines | {fails: [ModelUnavailable("nobody there")]})
    with pytest.raises(ModelError):
        await reflect_if_due(stream, model)
    assert await stream.latest("thought", 9) == []
    assert await counter(stream) == 0


async def test_without_a_model_nothing_is_rated_or_written(stream: Memory) -> None:
    await stream.retain_all([RecordDraft(text=f"My father died, {n}") for n in range(30)])
    assert await reflect_if_due(stream, Rules(), start=0) == []
    context = RunContext("reflect", stream, (), ())
    result = await ReflectReasoner(Rules(), start=0).think(context)
    assert result.thought == ""
    assert await make_writing(context, result) == ([], ())
    assert await stream.store.last(key_of("ann"), "reflected") is None
    assert await counter(stream) == 150


async def test_as_a_reasoner_it_waits_until_the_counter_is_zero(stream: Memory) -> None:
    reasoner = ReflectReasoner(answering("the boat?", Insight(text="Ann loves boats", because=[1])))
    context = RunContext("reflect", stream, (), ())
    assert (await reasoner.think(context)).thought == "no reflection yet: importance of 150 of 150 is missing"
    await seen(stream, *(f"Ann is painting the boat, {n}" for n in range(30)))
    entries, revisions = await make_writing(context, await reasoner.think(context))
    await stream.commit(*entries, revisions=revisions)
    assert [thought.text for thought in await stream.latest("thought", 9)] == ["Ann loves boats"]
    assert await counter(stream) == 150
