"""Sleep: random decay, the dream, and housekeeping, each step separately."""

from __future__ import annotations

import pytest
from keys import key_of
from pydantic import JsonValue
from world import LAWS, World

from mindstream import FakeModel
from mindstream.clock import DAY_S
from mindstream.errors import ModelUnavailable
from mindstream.memory.lifecycle.duplicates import alike
from mindstream.memory.lifecycle.importance import Importance
from mindstream.memory.store.record import Kind, RecordDraft
from mindstream.memory.store.store import Revision

OLD = LAWS.asleep_s + 1


async def observed(world: World, *texts: str, kind: Kind = "observation") -> list[str]:
    news = [RecordDraft(text=text, kind=kind, importance=3) for text in texts]
    return [record.id for record in await world.stream.retain_all(news)]


async def test_archived_records_become_the_evidence_of_a_dream(world: World) -> None:
    ids = await observed(world, "a red boat", "a song in the night", "grandmother's clock")
    world.clock.advance(OLD)
    model = FakeModel({"dream": ["I was in a red boat that sang."]}, "reasoner")
    assert await world.stream.sleep(model) == "I was in a red boat that sang."
    asked = model.asked[0]
    assert all(text in asked.messages[-1].text for text in ("a red boat", "grandmother's clock"))
    assert "make a dream" in asked.messages[-1].text
    assert asked.role == "reasoner"
    dream = (await world.stream.latest("dream"))[0]
    assert (dream.text, dream.depth, set(dream.evidence)) == ("I was in a red boat that sang.", 1, set(ids))
    assert {record.id for record in await world.stream.archive()} == set(ids)
    assert (await world.told())["dream"].records == (dream.id,)


async def test_rules_write_a_dream_in_the_language_of_the_records(world: World) -> None:
    await observed(world, "A red boat.", "A song in the night.")
    world.clock.advance(OLD)
    dream = await world.stream.sleep()
    assert dream.startswith("I dreamt: ")
    assert "A red boat; and then: A song" in dream or "A song in the night; and then: A red" in dream
    await observed(world, "河上有一条红船", "夜里有人唱歌")
    world.clock.advance(OLD)
    assert "我梦见" in await world.stream.sleep()


async def test_a_sleep_draws_n_records_and_each_loses_one_level(world: World) -> None:
    ids = await observed(world, *(f"memory {n}" for n in range(50)))
    await world.stream.commit(revisions=[Revision(id=id_, level=2) for id_ in ids])
    world.clock.advance(OLD)
    for night in range(1, 4):
        world.clock.advance(DAY_S)
        await world.stream.sleep(n=12)
        levels = [record.level for record in await world.store.records(key_of("ann"), ids)]
        assert sum(2 - level for level in levels) == 12 * night
        assert (await world.told())["fading"].looked_at == 12


async def test_sleep_has_its_own_threshold_and_spares_long_term_records(world: World) -> None:
    fresh, old, lasting = await observed(world, "fresh", "old", "lasting")
    await world.stream.commit(revisions=[Revision(id=lasting, level=6, lasting=True)])
    world.clock.advance(LAWS.asleep_s)
    await world.stream.recall("fresh", k=1)
    assert await world.stream.sleep(n=99) == ""
    world.clock.advance(1)
    assert await world.stream.sleep(n=99) == "I dreamt: old."
    held = {record.id: record.level for record in await world.store.records(key_of("ann"), [fresh, old, lasting])}
    assert held == {fresh: 1, old: -1, lasting: 6}


async def test_a_failing_model_writes_no_dream_and_sleep_continues(world: World) -> None:
    await observed(world, "a red boat", "a song")
    world.clock.advance(OLD)
    for answer in (ModelUnavailable("nobody there"), "  "):
        await observed(world, "something else that fades")
        world.clock.advance(OLD)
        assert await world.stream.sleep(FakeModel({"dream": [answer]})) == ""
        assert await world.stream.latest("dream") == []
        told = await world.told()
        assert told["dream"].error
        assert "compaction" in told
    assert len(await world.stream.archive()) == 4


async def test_pending_importance_is_rated_in_batches(world: World) -> None:
    await world.stream.retain_all([RecordDraft(text=f"memory {n}") for n in range(25)])
    await world.stream.retain("hello", "belief")
    model = FakeModel({"rate_importance": [Importance(ratings=[7] * 20), Importance(ratings=[2] * 5)]})
    await world.stream.sleep(model, n=0)
    rated = [record.importance for record in await world.store.latest(key_of("ann"), n=99, now=world.clock.now())]
    assert rated == [2.0] * 5 + [7.0] * 20 + [None]
    assert (await world.told())["importance"].changed == 25


@pytest.mark.parametrize("reply", [Importance(ratings=[5]), '{"ratings": [11, 0]}', "I would say 5"])
async def test_invalid_importance_ratings_are_not_written(world: World, reply: str | Importance) -> None:
    await world.stream.retain_all([RecordDraft(text="one"), RecordDraft(text="two")])
    await world.stream.sleep(FakeModel({"rate_importance": [reply]}), n=0)
    assert [record.importance for record in await world.store.latest(key_of("ann"), n=9, now=world.clock.now())] == [
        None,
        None,
    ]
    assert (await world.told())["importance"].error


async def test_near_duplicates_are_superseded_with_evidence(world: World) -> None:
    texts = [
        "The user drinks three cups of coffee every day", "User drinks three cups of strong coffee every day.",
        "The user drinks two cups of coffee every day", "The user never drinks three cups of coffee every day",
    ]  # fmt: skip
    ids = await observed(world, *texts, kind="note")
    await world.stream.commit(revisions=[Revision(id=ids[0], level=3, accessed=world.clock.now())])
    world.clock.advance(DAY_S)
    await world.stream.sleep(n=0)
    notes = await world.stream.latest("note", 9)
    assert {note.text for note in notes} == set(texts[1:])
    merged = next(note for note in notes if note.text == texts[1])
    assert (merged.evidence, merged.level, merged.depth) == ((ids[1], ids[0]), 3, 1)
    old = await world.store.records(key_of("ann"), ids[:2])
    assert [record.superseded_by for record in old] == [merged.id] * 2
    assert (await world.told())["duplicates"].records == (merged.id,)
    before = await world.stream.recall("coffee", as_of=world.clock.now() - 1)
    assert {each.record.id for each in before} == set(ids)
    await world.stream.sleep(n=0)
    assert (await world.told())["duplicates"].changed == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("I drink coffee at night.", "I really drink the coffee at night", True),
        ("I drink coffee at night.", "I drink coffee at 9 at night", False),
        ("The user lives with her mother in Springfield", "The user lives with her brother in Springfield", False),
        ("Ann bit the dog", "The dog bit Ann", False),
        ("I can sleep when it is quiet here", "I cannot sleep when it is quiet here", False),
        ("I sleep well when it is quiet here", "I rarely sleep well when it is quiet here", False),
        ("I lived in Rome", "I live in Rome", False),
        ("小红每天喝咖啡", "小红每天喝咖啡。", True),
        ("小红每天喝咖啡", "小明每天喝咖啡", False),
    ],
)
def test_alike_compares_near_duplicates(one: str, other: str, same: bool) -> None:
    assert alike(one, other) is alike(other, one) is same


async def test_expired_records_are_archived(world: World) -> None:
    now = world.clock.now()
    until = [RecordDraft(text="the shop is closed", valid_until=now + DAY_S), RecordDraft(text="the bridge is closed")]
    shop, bridge = await world.stream.retain_all(until)
    assert len(await world.stream.recall("closed", touch=False)) == 2
    await world.stream.sleep(n=0)
    world.clock.advance(2 * DAY_S)
    assert [each.record.id for each in await world.stream.recall("closed", touch=False)] == [bridge.id]
    await world.stream.sleep(n=0)
    assert (await world.told())["expiry"].records == (shop.id,)
    assert [record.id for record in await world.stream.archive()] == [shop.id]
    past = await world.stream.recall("closed", as_of=now + DAY_S / 2)
    assert {each.record.id for each in past} == {shop.id, bridge.id}


@pytest.mark.parametrize(
    ("datas", "common"),
    [
        ([{"life": True, "n": 1}, {"n": 2, "life": True}], {"life": True}),
        ([{"life": True}, {}], {}),
        ([{"life": True}, {"life": 1}], {}),
        ([{"tags": ["a", {"b": 1}]}, {"tags": ["a", {"b": 1}]}], {"tags": ["a", {"b": 1}]}),
        ([{"life": True, "tainted": True}, {"life": True}], {"life": True, "tainted": True}),
        ([{"life": None}, {}], {}),
    ],
)
async def test_merged_records_and_dreams_keep_the_common_data(
    world: World, datas: list[dict[str, JsonValue]], common: dict[str, JsonValue]
) -> None:
    texts = ["I drink coffee at night", "I drink the coffee at night"]
    await world.stream.retain_all(
        [RecordDraft(text=text, kind="note", importance=3, data=data) for text, data in zip(texts, datas, strict=True)]
    )
    await world.stream.sleep(n=0)
    [merged] = await world.stream.latest("note", 9)
    assert merged.data == common
    await world.stream.retain_all([RecordDraft(text=f"a {n} boat", data=data) for n, data in enumerate(datas)])
    world.clock.advance(OLD)
    await world.stream.sleep(n=99)
    [dream] = await world.stream.latest("dream", 9)
    assert dream.data == common
    found = await world.stream.recall("boat", where={"life": True}, touch=False)
    assert [each.record.id for each in found] == [dream.id] * (common.get("life") is True)
