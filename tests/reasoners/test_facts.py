"""Facts: a model states new, replaced and withdrawn ones; without one nothing is noted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mindstream import FakeModel, Memory
from mindstream.clock import ManualClock
from mindstream.memory.facts import Fact, Facts
from mindstream.models.model import Model
from mindstream.models.rules import Rules
from mindstream.reasoners.background import make_writing
from mindstream.reasoners.facts import FactsReasoner
from mindstream.reasoners.reasoner import RunContext, Utterance


@pytest.fixture
async def stream(folder: Path) -> AsyncIterator[Memory]:
    async with Memory.open(folder, "ann", clock=ManualClock()) as made:
        yield made


async def think(stream: Memory, model: Model, said: str) -> list[str]:
    """Run the reasoner on an utterance; return the current notes, oldest first."""
    record = await stream.retain(said, "chat", by="ann")
    utterance = Utterance(seq=0, text=said, record=record.id, session="s", at=stream.clock.now())
    context = RunContext("facts", stream, [utterance], [])
    entries, revisions = await make_writing(context, await FactsReasoner(model).think(context))
    await stream.commit(*entries, revisions=revisions)
    return [note.text for note in await stream.latest("note", 9)]


def replies(*found: Facts) -> FakeModel:
    return FakeModel({"extract_facts": list(found)})


async def test_a_new_fact_replaces_outdated_ones(stream: Memory) -> None:
    lives = Fact(text="The user lives in Paris.", rests_on="I live in Paris")
    await think(stream, replies(Facts(facts=[lives])), "I live in Paris")
    moved = Fact(text="The user lives in Lyon.", rests_on="Wir sind jetzt in Lyon", replaces=[1])
    notes = await think(stream, replies(Facts(facts=[moved])), "Wir sind jetzt in Lyon, nicht mehr in Paris")
    assert notes == ["The user lives in Lyon."]
    assert await think(stream, replies(Facts(let_go=[1, 7])), "算了，别记我住哪里") == []


async def test_a_fact_without_a_supporting_quote_is_not_noted(stream: Memory) -> None:
    made_up = Fact(text="The user has a yacht.", rests_on="my yacht")
    assert await think(stream, replies(Facts(facts=[made_up])), "I cannot sleep.") == []


async def test_without_a_model_messages_are_recalled_and_no_facts_noted(stream: Memory) -> None:
    assert await think(stream, Rules(), "I moved to Paris.") == []
    stream.clock.advance(86_400)  # type: ignore[attr-defined]
    assert await think(stream, Rules(), "I live in Lyon.") == []
    found = await stream.recall("Where do I live?", 2)
    assert {each.record.text for each in found} == {"I moved to Paris.", "I live in Lyon."}
