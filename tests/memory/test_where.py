"""`where` searches all records, not only those near the question."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue
from world import World

from mindstream.memory.recall.ranking import Bounded, Cosine, Generative, Policy
from mindstream.memory.store.record import RecordDraft


@pytest.mark.parametrize("policy", [Bounded(), Generative(), Cosine()])
@pytest.mark.parametrize(
    "where", [{"room": "attic"}, {"tags": ["a", "b"]}, {"room": "attic", "n": 3}, {"slot": None, "room": "attic"}]
)
async def test_a_where_filter_finds_records_of_low_relevance(
    world: World, policy: Policy, where: dict[str, JsonValue]
) -> None:
    news = [RecordDraft(text=f"noise in the street number {n}", data={"room": "street", "n": n}) for n in range(80)]
    hidden = RecordDraft(text="a quiet chest", data={"room": "attic", "tags": ["a", "b"], "n": 3})
    await world.stream.retain_all([*news[:40], hidden, *news[40:]])
    found = await world.stream.recall("noise in the street", k=1, where=where, policy=policy, touch=False)
    assert [each.record.text for each in found] == ["a quiet chest"]


@pytest.mark.parametrize("where", [{"by": None}, {"by": 3}, {"episode": ["x"]}, {"room": "nowhere"}, {"tags": []}])
async def test_a_where_filter_without_match_returns_nothing(world: World, where: dict[str, JsonValue]) -> None:
    await world.stream.retain_all([RecordDraft(text="noise", data={"tags": ["a"]})])
    assert await world.stream.recall("noise", where=where, touch=False) == []


async def test_a_policy_ranks_beyond_the_most_relevant_records(world: World) -> None:
    await world.stream.retain_all(
        [RecordDraft(text=f"the noise of trams, number {n}", importance=1.0) for n in range(30)]
    )
    world.clock.advance(3_000 * 3_600.0)
    best = await world.stream.retain("noise", importance=10.0)
    [found] = await world.stream.recall("what noise do trams make?", k=1, policy=Generative(), touch=False)
    assert found.record.id == best.id
    everything = await world.stream.recall("what noise do trams make?", k=99, policy=Generative(), touch=False)
    assert found.score == pytest.approx(max(each.score for each in everything))


async def test_find_returns_matching_records_newest_first(world: World) -> None:
    stream = world.stream
    news = [RecordDraft(text=f"noise {n}", kind="note", by="ann" if n % 2 else "", data={"n": n}) for n in range(6)]
    first, *_ = await stream.retain_all([*news, RecordDraft(text="a chest", data={"tags": ["a"]})])

    async def texts(n: int | None = None, **named: Any) -> list[str]:
        return [each.text for each in await stream.find(n, **named)]

    assert await texts(2, where={"by": "ann"}) == ["noise 5", "noise 3"]
    assert await texts(where={"tags": ["a"]}) == ["a chest"] and await texts(kinds=["dream"]) == []
    world.clock.advance(60)
    await stream.replace(first.id, RecordDraft(text="Noise 0", kind="note", data={"n": 0}))
    assert await texts(where={"n": 0}) == ["Noise 0"]
    assert await texts(where={"n": 0}, over=True) == ["Noise 0", "noise 0"]
    assert await texts(since=world.clock.now()) == ["Noise 0"]
    await stream.forget(first.id)
    assert await texts(where={"n": 0}, over=True) == [] and len(await texts()) == 6
