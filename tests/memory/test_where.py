"""What `where` asks for is looked for among all records, not among those that happen to be near the question."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from world import World

from mindstream.memory.fields import Fields, entries, is_plain
from mindstream.memory.policies import Bounded, Cosine, Generative, Policy
from mindstream.memory.record import Record
from mindstream.memory.stream import New

values: st.SearchStrategy[JsonValue] = st.sampled_from(
    [None, True, False, 0, 1, 2.5, "a", "b", "x" * 200, ["a"], {"a": 1}, [], ""]
)


@given(st.lists(st.dictionaries(st.sampled_from(["room", "slot", "n"]), values), max_size=12), values)
@settings(max_examples=60)
def test_fields_know_who_has_what(rows: list[dict[str, JsonValue]], wanted: JsonValue) -> None:
    fields = Fields()
    records = [
        Record(
            id=f"record{at}", stream="ann", kind="note", text="x", created=1.0, accessed=1.0, data=data,
            slot="s" if at % 5 == 0 else None,
        )
        for at, data in enumerate(rows)
    ]  # fmt: skip
    for at, record in enumerate(records):
        fields.add(at, record)
    for name in ("room", "slot", "nothing"):
        having = [dict(entries(record)).get(name) == wanted for record in records]
        if is_plain(wanted):
            assert fields.having(name, wanted, len(records)).tolist() == having
        else:
            assert {at for at, has in enumerate(having) if has} <= set(fields.large(name))


@pytest.mark.parametrize("policy", [Bounded(), Generative(), Cosine()])
@pytest.mark.parametrize(
    "where", [{"room": "attic"}, {"tags": ["a", "b"]}, {"room": "attic", "n": 3}, {"slot": None, "room": "attic"}]
)
async def test_what_matches_is_found_however_little_it_answers(
    world: World, policy: Policy, where: dict[str, JsonValue]
) -> None:
    news = [New(text=f"noise in the street number {n}", data={"room": "street", "n": n}) for n in range(80)]
    hidden = New(text="a quiet chest", data={"room": "attic", "tags": ["a", "b"], "n": 3})
    await world.stream.remember_all([*news[:40], hidden, *news[40:]])
    found = await world.stream.recall("noise in the street", k=1, where=where, policy=policy, touch=False)
    assert [each.record.text for each in found] == ["a quiet chest"]


@pytest.mark.parametrize("where", [{"by": None}, {"by": 3}, {"episode": ["x"]}, {"room": "nowhere"}, {"tags": []}])
async def test_what_nothing_has_finds_nothing(world: World, where: dict[str, JsonValue]) -> None:
    await world.stream.remember_all([New(text="noise", data={"tags": ["a"]})])
    assert await world.stream.recall("noise", where=where, touch=False) == []


async def test_a_policy_is_not_bound_to_what_is_most_relevant(world: World) -> None:
    await world.stream.remember_all([New(text=f"the noise of trams, number {n}", importance=1.0) for n in range(30)])
    world.clock.advance(3_000 * 3_600.0)
    best = await world.stream.remember("noise", importance=10.0)
    [found] = await world.stream.recall("what noise do trams make?", k=1, policy=Generative(), touch=False)
    assert found.record.id == best.id
    everything = await world.stream.recall("what noise do trams make?", k=99, policy=Generative(), touch=False)
    assert found.score == pytest.approx(max(each.score for each in everything))
