"""Unusual values in an existing file can be read: the text is kept, and no operation raises an exception."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from keys import key_of
from world import World

from mindstream import Coach, Mind
from mindstream.errors import InputError
from mindstream.log.events import Said, Unknown, every_kind, read_event
from mindstream.memory.curation.curation import Drawn
from mindstream.memory.store.record import Kind, RecordDraft
from mindstream.memory.store.store import Commit, Entry, Revision


def change(folder: Path, sql: str, *values: object) -> None:
    with contextlib.closing(sqlite3.connect(folder / "mindstream.db", isolation_level=None)) as connection:
        connection.execute(sql, values)


ODD: list[tuple[str, object]] = [
    ("kind", "telepathy"),
    ("created", "yesterday"),
    ("created", -1e11),
    ("importance", "high"),
    ("level", 10**15),
    ("by", b"\x00\xff"),
    ("keywords", "{broken"),
    ("evidence", "[" * 5000),
    ("data", "{broken"),
    ("data", "[" * 5000),
    ("vector", b"\x01\x02\x03"),
    ("text", b"\xff\xfe tea \xff"),
    ("version", 2**63 - 1),
    ("slot", "sleep.plan"),
    ("seq", "x"),
    ("changed", 1e300),
]


@pytest.mark.parametrize(("column", "value"), ODD, ids=lambda value: repr(value)[:20])
async def test_an_odd_column_value_breaks_no_operation(folder: Path, column: str, value: object) -> None:
    world = World(folder)
    bad = await world.stream.retain("Ann drinks green tea.", "note", importance=3, keywords=["tea"])
    good = await world.stream.retain("Ann drinks black tea.", "note", evidence=[bad.id])
    await world.close()
    change(folder, f"UPDATE records SET {column} = ? WHERE id = ?", value, bad.id)
    world = World(folder)
    assert {record.id for record in (await world.store.changes(key_of("ann"), 0)).records} == {bad.id, good.id}
    (read,) = await world.store.records(key_of("ann"), [bad.id])
    assert "tea" in read.text or column == "text"
    found = await world.stream.recall("black tea", k=5)
    assert found[0].record.id == good.id
    await world.stream.audit()
    assert (await world.stream.evidence_of(good.id)).evidence[0].record.id == bad.id
    await world.stream.sleep()
    await world.stream.retain("Ann drinks tea at five.", "note")
    await world.close()


async def test_an_unknown_event_keeps_its_payload(world: World) -> None:
    await world.stream.retain("tea")
    change(
        world.folder, "INSERT INTO log (mind, at, by, kind, payload) VALUES ('ann', 1, 'x', 'tomorrow', '{\"a\": 1}')"
    )
    change(world.folder, "INSERT INTO log (mind, at, by, kind, payload) VALUES ('ann', 'x', 'x', 'said', '{broken')")
    unknown = [each for each in await world.store.events(key_of("ann")) if isinstance(each.event, Unknown)]
    assert [each.event.entry() for each in unknown] == [("tomorrow", '{"a": 1}'), ("said", "{broken")]
    assert unknown[0].row() == {
        "event": "unknown", "seq": 2, "at": 1.0, "by": "x", "named": "tomorrow", "payload": '{"a": 1}',
    }  # fmt: skip
    assert await world.store.last(key_of("ann"), "said") is None
    assert await world.store.events(key_of("ann"), kinds=["said"]) == []
    (again,) = await world.store.commit(Commit(mind=key_of("ann"), at=2.0, entries=(Entry(unknown[0].event, "x"),)))
    assert (await world.store.events(key_of("ann"), after=again.seq - 1))[0].event == unknown[0].event


@pytest.mark.parametrize(
    "payload", ["", "{}", "[]", "7", "null", "[" * 100_000, "\x00", '{"text": NaN}', None, 7, b"\xff"]
)
def test_reading_any_payload_raises_no_error(payload: object) -> None:
    for kind in (*every_kind(), "tomorrow", None, 7, b"\xff"):
        read_event(kind, payload).entry()


async def test_a_conversation_survives_odd_beliefs_plans_and_events(folder: Path) -> None:
    async def talk(words: str) -> None:
        async with Mind.open(folder, user="ann", responder=Coach.using()) as mind:
            said = [each.event async for each in mind.hear(words)]
            assert isinstance(said[-1], Said)
            await mind.settled()
            assert Coach.of(mind).plan is not None and Coach.of(mind).belief is not None

    await talk("I wake at three and my thoughts race. Make me a plan.")
    for sql in (
        "UPDATE records SET version = 9223372036854775807 WHERE slot = 'sleep' AND valid_until IS NULL",
        "UPDATE records SET valid_until = 1 WHERE slot = 'sleep.plan'",
        'UPDATE records SET data = \'{"plan": {"steps": [{"title": "a", "state": "odd"}, 7]}}\' WHERE kind = \'plan\'',
        "UPDATE records SET kind = 'note' WHERE kind = 'plan'",
        "UPDATE log SET payload = '{}' WHERE kind IN ('said', 'thought', 'decided', 'judged', 'opened')",
        "DELETE FROM counters",
    ):
        change(folder, sql)
        await talk("Coffee keeps me up. Make me a plan.")


async def test_the_newest_version_of_a_slot_counts_even_if_it_has_ended(world: World) -> None:
    for n in (1, 2):
        new = RecordDraft(text=f"plan {n}", kind="plan", slot="p", version=n, data={"plan": {}})
        await world.stream.retain_all([new])
    change(world.folder, "UPDATE records SET valid_until = 1")
    assert [record.version for record in await world.store.latest(key_of("ann"), now=2.0, slot="p")] == [2]


async def test_the_store_refuses_invalid_revisions_and_times(world: World) -> None:
    record = await world.stream.retain("tea")
    for revision in (
        Revision(id=record.id, accessed=float("nan")),
        Revision(id=record.id, level=10**9),
        Revision(id=record.id, importance=11),
        Revision(id=record.id, forgotten=1e18),
    ):
        with pytest.raises(InputError):
            await world.stream.commit(revisions=[revision])
    with pytest.raises(InputError, match="at"):
        await world.store.commit(Commit(mind=key_of("ann"), at=float("inf")))


def size(drawn: Drawn) -> int:
    return 1 + sum(map(size, drawn.evidence))


async def chain(world: World, levels: int, wide: int, kind: Kind = "observation") -> str:
    """Write records in levels, each derived from all of the level below; return the top one."""
    below: list[str] = []
    for level in range(levels):
        news = [RecordDraft(text=f"{level} {n}", kind=kind, evidence=tuple(below), depth=0) for n in range(wide)]
        below = [record.id for record in await world.stream.retain_all(news)]
    return below[0]


async def test_a_diamond_of_forty_evidence_levels_gives_a_small_tree(world: World) -> None:
    tree = await world.stream.evidence_of(await chain(world, 40, 2))
    assert size(tree) < 4 * 40 * 2
    assert tree.evidence[0].evidence[0].evidence and tree.evidence[1].evidence[0].cut


async def test_cyclic_evidence_gives_a_finite_tree(world: World) -> None:
    one = await world.stream.retain("one")
    two = await world.stream.retain("two", evidence=[one.id])
    change(world.folder, "UPDATE records SET evidence = ? WHERE id = ?", f'["{two.id}", "{one.id}"]', one.id)
    assert size(await world.stream.evidence_of(two.id)) <= 4
