"""Purged text is removed from rows and bytes; independent records stay."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3

import pytest
from keys import key_of
from world import World

from mindstream.log.database import FILE
from mindstream.log.events import (
    BeliefChanged,
    Heard,
    Logged,
    Observed,
    Reflected,
    Remembered,
    Said,
    Slept,
    Thought,
    ToolCalled,
    Unknown,
)
from mindstream.memory.store.record import Record, RecordDraft, Triple
from mindstream.memory.store.redaction import MARK, ErasedWords
from mindstream.memory.store.store import Entry, Revision

SECRET = "Ann keeps a parrot called Zorro"


async def forgotten(world: World, text: str = SECRET, kind: str = "note") -> Record:
    """Write a record and forget it."""
    (record,) = await world.stream.build_records([RecordDraft(text=text, kind=kind, about=Triple("user", "pet", text))])  # type: ignore[arg-type]
    await world.stream.commit(Entry(Remembered(count=1, kinds={kind: 1}), "facts", (record,)))
    await world.stream.commit(revisions=[Revision(id=record.id, forgotten=1.0)])
    return record


def left(world: World, word: str = "zorro") -> list[str]:
    """Return the names of the files that contain a word."""
    return [
        path.name for path in world.folder.iterdir() if word in path.read_bytes().decode("utf-8", "replace").lower()
    ]


async def log(world: World) -> list[Logged]:
    return await world.store.events(key_of("ann"))


@pytest.mark.parametrize(
    "event",
    [
        Thought(
            slot="facts",
            about=(1,),
            text=f"“{SECRET}”; Ann drinks tea",
            model="m",
            ask=SECRET,
            offer=SECRET,
            care=SECRET,
        ),
        Thought(slot="facts", about=(1,), text=SECRET.upper() + ".", model="m"),
        Thought(slot="facts", about=(1,), text=SECRET.replace(" ", " \n "), model="m"),
        ToolCalled(slot="sleep", tool="find", arguments='{"q": "Ann keeps a parrot called \\u005aorro, why?"}'),
        Observed(slot="sleep", tool="find", text=f"found: {SECRET} (1)"),
        Slept(step="dream", text=f"In the dream: {SECRET}; the sea."),
        Reflected(upto="x", questions=("What matters?", f"Is it so that {SECRET}?"), thoughts=(), model="m"),
    ],
    ids=lambda event: event.kind,
)
async def test_purge_redacts_log_rows_and_keeps_the_rows(event: Thought, world: World) -> None:
    await forgotten(world)
    (row,) = await world.stream.commit(Entry(event, "facts"))
    before = await log(world)
    assert left(world)
    assert await world.stream.purge() == 1
    assert left(world) == []
    after = await log(world)
    assert [(each.seq, each.event.kind, each.at) for each in after] == [
        (each.seq, each.event.kind, each.at) for each in before
    ]
    assert MARK in next(each for each in after if each.seq == row.seq).event.model_dump_json()
    assert [each for each in after if each.seq != row.seq] == [each for each in before if each.seq != row.seq]


async def test_purge_redacts_and_reembeds_derived_records(world: World) -> None:
    secret = await forgotten(world)
    dream = await world.stream.retain(f"In the dream: {SECRET}; the sea rose.", "dream", evidence=[secret.id])
    thought = await world.stream.retain(
        f"It seems that {SECRET}.",
        "thought",
        evidence=[dream.id],
        keywords=[SECRET],
        about=Triple("Ann", "has", SECRET),
    )
    await world.stream.purge()
    assert left(world) == []
    sea, seems = await world.store.records(key_of("ann"), [dream.id, thought.id])
    assert sea.text == f"In the dream: {MARK}; the sea rose." and sea.vector is not None
    assert seems.text == f"It seems that {MARK}." and seems.keywords == (MARK,)
    assert seems.about == Triple("Ann", "has", MARK)
    assert (await world.stream.recall("sea", k=1, touch=False))[0].record.id == dream.id
    assert (await world.stream.columns()).foreign == 0
    again = await world.stream.retain(f"it seems that {MARK}", "thought")  # found by its new text
    assert again.id == thought.id


async def test_purge_keeps_independent_records(world: World) -> None:
    (said,) = await world.stream.build_records([RecordDraft(text=SECRET, kind="chat", by="ann")])
    (answer,) = await world.stream.build_records([RecordDraft(text=f"I hear that {SECRET}.", kind="chat", by="mind")])
    (belief,) = await world.stream.build_records(
        [RecordDraft(text=f"pet: {SECRET}", kind="belief", slot="pets", version=1)]
    )
    await world.stream.commit(
        Entry(Heard(text=SECRET, session="s", record=said.id), "ann", (said,)),
        Entry(Said(text=answer.text, answers=1, belief_version=0, model="m", record=answer.id), "mind", (answer,)),
        Entry(BeliefChanged(slot="pets", version=1, patch={"pet": SECRET}), "pets", (belief,)),
    )
    await forgotten(world)
    before = await log(world)
    assert await world.stream.purge() == 1
    assert await log(world) == before
    assert {record.id for record in (await world.store.changes(key_of("ann"), 0)).records} == {
        said.id,
        answer.id,
        belief.id,
    }


async def test_purge_redacts_the_log_row_that_wrote_the_record(world: World) -> None:
    (said,) = await world.stream.build_records([RecordDraft(text="yes Zorro", kind="chat")])
    (belief,) = await world.stream.build_records(
        [RecordDraft(text="pet: Zorro", kind="belief", slot="pets", version=1)]
    )
    await world.stream.commit(
        Entry(Heard(text="yes Zorro", session="s", record=said.id), "ann", (said,)),
        Entry(BeliefChanged(slot="pets", version=1, patch={"pet": "Zorro"}), "pets", (belief,)),
        Entry(Thought(slot="sleep", about=(1,), text="unrelated", model="m"), "sleep"),
    )
    assert await world.store.erase(key_of("ann"), [said.id, belief.id]) == 2
    await world.store.compact()
    heard, changed, thought = (each.event for each in await log(world))
    assert isinstance(heard, Heard) and heard.text == MARK and heard.record == said.id
    assert isinstance(changed, BeliefChanged) and changed.patch == {} and changed.version == 1
    assert isinstance(thought, Thought) and thought.text == "unrelated"
    assert left(world) == []


async def test_purge_does_not_change_another_user(world: World) -> None:
    other = World(world.folder)
    other.stream.key = key_of("bob")
    await other.stream.commit(Entry(Thought(slot="facts", about=(1,), text=SECRET, model="m"), "facts"))
    await other.close()
    await forgotten(world)
    await world.stream.purge()
    (row,) = await world.store.events(key_of("bob"))
    assert isinstance(row.event, Thought) and row.event.text == SECRET


async def test_erasure_redacts_damaged_rows(world: World) -> None:
    secret = await forgotten(world)
    (row,) = await world.stream.commit(Entry(Thought(slot="facts", about=(1,), text=SECRET, model="m"), "facts"))
    await world.stream.retain("the sea", evidence=[secret.id])
    with contextlib.closing(sqlite3.connect(world.folder / FILE, isolation_level=None)) as connection:
        connection.execute("UPDATE log SET payload = substr(payload, 2) WHERE seq = ?", (row.seq,))
        connection.execute("UPDATE records SET evidence = '[' WHERE text = 'the sea'")
    assert await world.store.erase(key_of("ann"), [secret.id]) == 1
    await world.store.compact()
    assert left(world) == []


async def test_short_texts_are_redacted_only_as_whole_texts(world: World) -> None:
    await forgotten(world, "tea")
    await world.stream.commit(
        Entry(Thought(slot="facts", about=(1,), text="Tea.", model="m"), "facts"),
        Entry(Thought(slot="facts", about=(1,), text="a steady tea drinker", model="m"), "facts"),
    )
    await world.stream.purge()
    texts = [each.event.text for each in await log(world) if isinstance(each.event, Thought)]
    assert texts == [MARK, "a steady tea drinker"]


async def test_no_byte_is_left_after_repeated_purges_of_a_large_file(world: World) -> None:
    """Rows move between pages as a file grows; copies stay in unused pages until the file is rewritten."""
    for round_ in range(4):
        news = [
            RecordDraft(text=f"Zorro the parrot said {round_} {n} times {'word ' * (n % 90)}", kind="note")
            for n in range(80)
        ]
        records = await world.stream.retain_all(
            [*news, *(RecordDraft(text=f"river {round_} {n}" * 9) for n in range(80))]
        )
        gone = [record.id for record in records if "Zorro" in record.text]
        for record in records[:80:2]:
            await world.stream.commit(revisions=[Revision(id=record.id, importance=5.0)])
        thought = Thought(slot="facts", about=(1,), text="; ".join(new.text for new in news), model="m")
        await world.stream.commit(Entry(thought, "facts"), revisions=[Revision(id=id_, forgotten=1.0) for id_ in gone])
    assert await world.stream.purge() == 320
    assert left(world) == []


async def test_records_written_during_a_purge_are_redacted(world: World) -> None:
    await forgotten(world)
    thoughts = [Thought(slot="facts", about=(n,), text=f"{n}: {SECRET}", model="m") for n in range(20)]
    writing = [world.stream.commit(Entry(thought, "facts")) for thought in thoughts]
    await asyncio.gather(*writing[:10], world.stream.purge(), *writing[10:])
    assert sum(MARK in each.event.model_dump_json() for each in await log(world)) >= 10


@pytest.mark.parametrize(
    ("said", "text", "left"),
    [
        ("吵得我睡不着觉，隔壁", "她说吵得我睡不着觉，隔壁还在唱歌", f"她说{MARK}还在唱歌"),
        ("Straße ist laut heute", "Die STRASSE IST LAUT HEUTE wieder", f"Die {MARK} wieder"),
        ("İstanbul is far away", "to İSTANBUL IS FAR AWAY he went", MARK),
        ("a (b) [c] * d?", "x a (b) [c] * d? y", f"x {MARK}? y"),
        ("I wake at three", "I wake at three. I wake at\tthree!", f"{MARK}. {MARK}!"),
        ("nothing of the kind", "something else", "something else"),
    ],
)
def test_redaction_ignores_case_and_whitespace_in_any_script(said: str, text: str, left: str) -> None:
    assert ErasedWords([said]).redact(text) == left


def test_redaction_finds_the_beginning_and_the_end_of_a_long_text() -> None:
    text = " ".join(f"word{n}" for n in range(400))
    assert ErasedWords([text]).redact(f"about: {text[:200].strip()} …") == f"about: {MARK} …"
    assert MARK in ErasedWords([text]).redact(f"… {text[-80:]}")


async def test_rows_of_unregistered_kinds_are_redacted_at_any_depth(world: World) -> None:
    await forgotten(world)
    row = Unknown(named="of_another_room", payload=json.dumps({"deep": [{"id": "x", "j": json.dumps({"q": SECRET})}]}))
    await world.stream.commit(Entry(row, "facts"))
    await world.stream.purge()
    assert left(world) == []
    (unread,) = [each.event for each in await log(world) if isinstance(each.event, Unknown)]
    assert json.loads(json.loads(unread.payload)["deep"][0]["j"]) == {"q": MARK}


async def test_fields_of_earlier_versions_are_redacted(world: World) -> None:
    await forgotten(world)
    old = Unknown(named="observed", payload=json.dumps({"slot": "s", "tool": "t", "text": "x", "shown": SECRET}))
    await world.stream.commit(Entry(old, "facts"))
    await world.stream.purge()
    assert left(world) == []
