"""Forgetting on request: records that are removed, records that stay without the text, and no byte in any file."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from keys import key_of
from pydantic import BaseModel, JsonValue
from world import World

from mindstream import Coach, Memory, Mind, SqliteStore
from mindstream.errors import InputError, StorageError
from mindstream.identifiers import StreamKey
from mindstream.log.audit import Deed
from mindstream.log.database import FILE
from mindstream.log.erasure import finish_all
from mindstream.log.events import Corrected, Failed, Heard, Said, Thought, ToolCalled
from mindstream.log.files import history
from mindstream.memory.curation.forgetting import Forgotten, Removal
from mindstream.memory.store.record import Record, RecordDraft, Triple
from mindstream.memory.store.redaction import MARK
from mindstream.memory.store.store import Entry
from mindstream.service.doctor.repair import faults


class Believed(BaseModel):
    """The model of the beliefs in these tests."""

    mood: str | None = None
    pets: list[str] = []
    goals: list[str] = []


def left(folder: Path, *words: str) -> list[str]:
    """Return the names of the files that contain one of these words."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes().decode("utf-8", "replace").lower()
            found += [f"{path.name}: {word}" for word in words if word.lower() in content]
    return found


async def say(stream: Memory, text: str, answer: str = "", session: str = "monday") -> Record:
    """Write an utterance and an answer, as a mind does."""
    (said,) = await stream.build_records([RecordDraft(text=text, kind="chat", by="ann", episode=session)])
    (row,) = await stream.commit(Entry(Heard(text=text, session=session, record=said.id), "ann", (said,)))
    if answer:
        (reply,) = await stream.build_records([RecordDraft(text=answer, kind="chat", by="coach", episode=session)])
        event = Said(text=answer, answers=row.seq, belief_version=0, model="m", record=reply.id)
        await stream.commit(Entry(event, "coach", (reply,)))
    return (await stream.store.records(key_of("ann"), [said.id]))[0]


def texts(records: tuple[Record, ...]) -> list[str]:
    return [record.text for record in records]


async def all_texts(world: World) -> list[str]:
    return [record.text for record in (await world.store.changes(key_of("ann"), 0)).records]


async def forget(world: World, removal: Removal) -> Forgotten:
    """Forget, and check the preview."""
    before = {record.id for record in (await world.store.changes(key_of("ann"), 0)).records}
    done = await world.stream.remove(removal)
    after = {record.id for record in (await world.store.changes(key_of("ann"), 0)).records}
    assert before - after == {record.id for record in (*removal.asked, *removal.drawn)}
    assert (done.records, done.changed, done.items) == (
        len(before - after), len(removal.changed), len(removal.items),
    )  # fmt: skip
    return done


async def test_forget_removes_a_record_and_records_derived_from_it_alone(world: World) -> None:
    stream = world.stream
    zorro = await say(stream, "My parrot Zorro screams at six.", "Zorro is loud, then.")
    tea = await say(stream, "I drink green tea at night.")
    note = await stream.retain("Ann keeps the parrot Zorro", "note", evidence=[zorro.id])
    thought = await stream.retain("Zorro may be lonely", "thought", evidence=[note.id])
    await stream.retain("liked: Zorro's perch", "feedback", evidence=[zorro.id])
    mixed = await stream.retain(f"I dreamt: {zorro.text} The tea rose.", "dream", evidence=[thought.id, tea.id])
    await stream.commit(
        Entry(ToolCalled(slot="sleep", tool="find", arguments='{"q": "screaming Zorro"}'), "sleep"),
        Entry(Thought(slot="sleep", about=(zorro.seq,), text="a bird: Zorro", model="m", ask="Zorro?"), "sleep"),
        Entry(Thought(slot="sleep", about=(zorro.seq, tea.seq), text="a bird and tea", model="m"), "sleep"),
    )
    removal = await stream.find_removal(zorro.id)
    assert texts(removal.asked) == [zorro.text] and len(removal.drawn) == 4
    assert texts(removal.changed) == [mixed.text]
    await forget(world, removal)
    assert await all_texts(world) == [tea.text, f"I dreamt: {MARK}. The tea rose."]
    assert left(world.folder, "zorro", "screams") == []
    rows = await world.store.events(key_of("ann"), kinds=["thought"])
    assert [row.event.text for row in rows if isinstance(row.event, Thought)] == [MARK, "a bird and tea"]
    (hit,) = await stream.recall("tea", k=1, touch=False)
    assert (await stream.store.records(stream.key, [hit.record.id]))[0].vector is not None


async def test_forget_removes_derived_belief_items_from_all_versions(world: World) -> None:
    stream = world.stream
    zorro = await say(stream, "I have a parrot called Zorro and feel low.")
    tea = await say(stream, "I have a cat. I would like to sleep through.")
    await stream.believe("life", {"mood": "calm"}, Believed, evidence=[tea.id])
    await stream.believe("life", {"pets": ["Zorro"], "mood": "low"}, Believed, evidence=[zorro.id])
    await stream.believe("life", {"pets": ["a cat"], "goals": ["sleep through"]}, Believed, evidence=[tea.id])
    await stream.believe("life", {"goals": ["sing to the cat"]}, Believed, evidence=[zorro.id, tea.id])
    removal = await stream.find_removal(zorro.id)
    assert [(item.field, item.text) for item in removal.items] == [("mood", "low"), ("pets", "Zorro")]
    await forget(world, removal)
    belief = await stream.belief("life", Believed)
    assert belief.value == Believed(mood="calm", pets=["a cat"], goals=["sleep through", "sing to the cat"])
    assert belief.version == 5 and stream.last_version("life")
    assert left(world.folder, "zorro") == []
    versions = [record for record in (await world.store.changes(key_of("ann"), 0)).records if record.slot]
    assert [record.version for record in versions] == [1, 3, 4, 5]
    assert [record.data["value"]["pets"] for record in versions] == [[], ["a cat"], ["a cat"], ["a cat"]]  # type: ignore[index,call-overload]
    assert "sing to the cat" in (await stream.recall("sing", k=1, touch=False))[0].record.text


async def test_forget_redacts_the_text_in_beliefs_with_other_evidence(world: World) -> None:
    stream = world.stream
    zorro, tea = await say(stream, "Zorro screams at six"), await say(stream, "I drink tea at night")
    await stream.believe(
        "life", {"goals": ["after: Zorro screams at six", "Zorro screams at six", "rest"]}, Believed,
        evidence=[zorro.id, tea.id],
    )  # fmt: skip
    await forget(world, await stream.find_removal(zorro.id))
    assert (await stream.belief("life", Believed)).value.goals == [f"after: {MARK}", "rest"]
    assert left(world.folder, "zorro") == []


async def test_forget_removes_only_the_plan_steps_based_on_the_record(world: World) -> None:
    stream = world.stream
    zorro, tea = await say(stream, "Zorro screams"), await say(stream, "tea late")
    steps: list[JsonValue] = [{"title": "Cover Zorro's cage", "do": "a cloth over Zorro", "state": "now"}]
    text = "- Cover Zorro's cage (now)\n  a cloth over Zorro"
    for version, said in ((1, zorro), (2, tea)):
        plan = RecordDraft(
            text=text, kind="plan",
            slot="sleep.plan", version=version, evidence=(said.id,), data={"plan": {"steps": [*steps]}},
        )  # fmt: skip
        await stream.retain_all([plan])
        text += "\n- No tea after five (later)\n  water"
        steps.append({"title": "No tea after five", "do": "water", "state": "later"})
    steps.pop()
    await forget(world, await stream.find_removal(zorro.id))
    (last,) = [found] if (found := await stream.version("sleep.plan")) else []
    assert last.data == {"plan": {"steps": [{"title": "No tea after five", "do": "water", "state": "later"}]}}
    assert last.text == "- No tea after five (later)\n  water" and last.version == 3
    assert left(world.folder, "zorro") == []


async def test_the_previous_version_is_current_if_the_newest_is_forgotten(world: World) -> None:
    tea, zorro = await say(world.stream, "tea late"), await say(world.stream, "Zorro screams")
    for version, said in ((1, tea), (2, zorro)):
        await world.stream.retain_all(
            [RecordDraft(text=f"plan: {said.text}", kind="plan", slot="own", version=version, evidence=(said.id,))]
        )
    await forget(world, await world.stream.find_removal(zorro.id))
    last = await world.stream.version("own")
    assert last and (last.version, last.text, last.valid_until) == (3, "plan: tea late", None)
    assert left(world.folder, "zorro") == []
    with contextlib.closing(sqlite3.connect(world.folder / FILE)) as connection:
        assert list(faults(connection)) == []


async def test_forget_about_a_subject_removes_every_mention(world: World) -> None:
    stream = world.stream
    said = await say(stream, "On Fridays I bake with Otto.", "Baking with somebody is good.")
    other = await say(stream, "I bought an ottoman.", "A soft seat.")
    await stream.retain("Bakes on Fridays", "note", about=Triple("Ann", "bakes with", "Otto"), evidence=[other.id])
    faded = await stream.retain("OTTO's oven is old")
    await stream.supersede(faded.id, "His oven is new")
    await stream.believe("life", {"goals": ["visit Otto", "rest"]}, Believed, evidence=[other.id])
    await stream.commit(Entry(Thought(slot="s", about=(other.seq,), text="a seat, like Otto's", model="m"), "s"))
    typed(world.folder, said.text, "I bought an ottoman.", "/forget Otto")
    removal = await stream.find_removal(about="Otto")
    assert texts(removal.asked) == [said.text, "Bakes on Fridays", "OTTO's oven is old"]
    assert texts(removal.drawn) == ["Baking with somebody is good.", "His oven is new"]
    assert [item.text for item in removal.items] == ["visit Otto"]
    await forget(world, removal)
    assert await all_texts(world) == [other.text, "A soft seat.", "life: goals: rest", "life: goals: rest"]
    assert left(world.folder, "otto'", "otto.", "otto ", 'otto"', "visit otto", "bake") == []
    assert history(world.folder, key_of("ann")).read_text().count("+") == 1


def typed(folder: Path, *lines: str) -> None:
    (folder / "history").mkdir()
    content = "".join(f"\n# 2026-11-22 10:00:00.0\n+{line}\n" for line in lines)
    history(folder, key_of("ann")).write_text(content)


@pytest.mark.parametrize("form", ["id", "about", "session"])
async def test_forgetting_reads_no_columns_of_the_whole_memory(
    form: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts = [
        RecordDraft(text=f"boat {n} rows past lock {n * 7}", kind="note", episode=f"s{n % 50}") for n in range(400)
    ]
    notes = await world.stream.retain_all(drafts)
    await world.stream.recall("boats", k=3)
    whole = list[int]()
    changes = world.store.changes

    async def counted(stream: StreamKey, since: int, after: int = 0, most: int | None = None) -> Any:
        whole.extend([1] * (not since))
        return await changes(stream, since, after, most)

    monkeypatch.setattr(world.store, "changes", counted)
    asked: dict[str, Any] = {"about": "lock 77"} if form == "about" else {"session": "s11"} if form == "session" else {}
    done = await world.stream.forget(*([notes[11].id] if form == "id" else []), **asked)
    assert done.records == {"id": 1, "about": 2, "session": 8}[form]
    assert whole == [], "the columns are changed, not read again"


async def test_chinese_words_are_forgotten(world: World) -> None:
    stream = world.stream
    zorro = await say(stream, "我养了一只鹦鹉叫佐罗", "佐罗是个好名字")
    await say(stream, "我晚上喝绿茶", "喝茶会影响睡眠")
    await stream.retain("用户养了一只鹦鹉", "note", evidence=[zorro.id])
    await stream.believe("life", {"pets": ["鹦鹉佐罗"]}, Believed, evidence=[zorro.id])
    await forget(world, await stream.find_removal(about="鹦鹉"))
    assert await all_texts(world) == ["我晚上喝绿茶", "喝茶会影响睡眠"]
    assert left(world.folder, "鹦鹉", "佐罗") == []


async def test_forget_by_session_or_time_span_removes_derived_records(world: World) -> None:
    stream = world.stream
    first = await say(stream, "Zorro screams", "How loud?", "monday")
    world.clock.advance(3_600)
    await say(stream, "Tea at night", "Which tea?", "tuesday")
    world.clock.advance(3_600)
    await stream.retain("Keeps a parrot, Zorro", "note", evidence=[first.id])
    assert [(each.name, each.lines, each.opening) for each in await stream.sessions()] == [
        ("monday", 2, "Zorro screams"), ("tuesday", 2, "Tea at night"),
    ]  # fmt: skip
    span = await stream.find_removal(since=first.created - 1, until=first.created + 1)
    session = await stream.find_removal(session="monday")
    assert texts(span.asked) == texts(session.asked) == ["Zorro screams", "How loud?"]
    assert texts(span.drawn) == ["Keeps a parrot, Zorro"]
    assert (await stream.find_removal(about="Zorro", session="tuesday")).asked == ()
    await forget(world, session)
    assert [each.name for each in await stream.sessions()] == ["tuesday"]
    assert left(world.folder, "zorro", "how loud") == []


async def test_another_user_s_records_are_untouched(world: World) -> None:
    said = await say(world.stream, "Otto is loud")
    other = Memory(world.store, "bob", world.stream.embedder, world.clock)
    bobs = await other.retain("Otto is loud", "note", evidence=[said.id])
    before = (await world.store.events(key_of("bob")), await world.store.records(key_of("bob"), [bobs.id]))
    await forget(world, await world.stream.find_removal(about="Otto"))
    assert (await world.store.events(key_of("bob")), await world.store.records(key_of("bob"), [bobs.id])) == before
    with pytest.raises(InputError, match="there is no record"):
        await world.stream.find_removal(bobs.id)


async def test_messages_of_other_people_are_kept(world: World) -> None:
    said = await say(world.stream, "I sold the red bicycle")
    others = await world.stream.retain("Ann sold the red bicycle, says Otto", by="otto")
    removal = await world.stream.find_removal(said.id)
    await forget(world, removal)
    assert await all_texts(world) == [others.text]


async def test_repetitions_in_other_answers_are_redacted_by_line(world: World) -> None:
    zorro = await say(world.stream, "My parrot Zorro screams at six.")
    await say(
        world.stream, "What do you know of me?", "This is what I have:\n- your parrot Zorro screams at six\n- tea"
    )
    removal = await world.stream.find_removal(zorro.id)
    assert len(removal.changed) == 1
    await forget(world, removal)
    assert (await all_texts(world))[-1] == f"This is what I have:\n{MARK}\n- tea"
    assert left(world.folder, "zorro") == []


@pytest.mark.parametrize("line", ["The ferry to Hven sails at noon.", "渡轮中午开往文岛", "Ferry: Hven, noon ⛴"])
async def test_an_independent_answer_with_the_same_words_is_kept(line: str, world: World) -> None:
    stream = world.stream
    await say(stream, "Make me a plan.", f"First rest.\n{line}")
    ferry = await say(stream, f"By the way: {line} Zorro sails too.", line)
    await say(stream, "And on Sunday?", f"On Sunday, too.\n{line}", "tuesday")
    quoting = await say(stream, "What did I tell you?", f"You said: {line} Zorro sails too.")
    removal = await stream.find_removal(ferry.id)
    assert texts(removal.asked) == [ferry.text] and texts(removal.drawn) == [line]
    assert len(removal.changed) == 1 and removal.left == (MARK,)
    await forget(world, removal)
    kept = [f"First rest.\n{line}", f"On Sunday, too.\n{line}", MARK]
    assert [text for text in await all_texts(world) if text != quoting.text and "?" not in text][1:] == kept
    said = [row.event.text for row in await world.store.events(key_of("ann")) if isinstance(row.event, Said)]
    assert said == [kept[0], MARK, *kept[1:]]
    assert left(world.folder, "zorro") == []


async def test_forget_can_redact_a_part_of_a_message(world: World) -> None:
    stream = world.stream
    said = await say(stream, "I am Ida, I rise at five and my parrot is called Zorro.", "Good morning, Ida.")
    await stream.retain("Keeps a parrot, Zorro", "note", evidence=[said.id])
    rises = await stream.retain("Rises at five", "note", evidence=[said.id])
    await stream.believe("life", {"pets": ["Zorro"], "goals": ["rise at five"]}, Believed, evidence=[said.id])
    whole = await stream.find_removal(about="Zorro")
    assert {record.text for record in whole.asked} == {said.text, "Keeps a parrot, Zorro"}
    assert texts(whole.apart) == [rises.text]
    part = await stream.find_removal(about="Zorro", kinds=["note", "thought"])
    assert texts(part.asked) == ["Keeps a parrot, Zorro"] and not part.apart
    await forget(world, part)
    assert {said.text, rises.text} <= {*await all_texts(world)}
    assert (await stream.belief("life", Believed)).value == Believed(goals=["rise at five"])


async def test_forget_writes_the_audit_atomically_even_if_compaction_fails(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(_: SqliteStore) -> None:
        raise StorageError("another program reads it")

    notes = [await world.stream.retain(f"Zorro eats seed {n}", "note") for n in range(4)]
    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "compact", busy)
        removal = await world.stream.find_removal(notes[0].id)
        done = await world.stream.remove(removal, deed=Deed("forgot", "rest", "token", key_of("ann")))
    assert (done.records, done.pending) == (1, "another program reads it")
    assert [event.text for event in await world.events("error") if isinstance(event, Failed)] == [done.pending]
    others = [await world.stream.find_removal(note.id) for note in notes[1:]]
    deed = Deed("forgot", "rest", "token", key_of("ann"))
    await asyncio.gather(*(world.stream.remove(each, deed=deed) for each in others))
    rows = await world.store.audit(about="ann")
    assert [(row.did, row.door, row.counts) for row in rows] == [
        ("forgot", "rest", {"records": 1, "changed": 0, "items": 0})
    ] * 4
    assert left(world.folder, "zorro") == []


async def test_forget_follows_corrections_to_earlier_and_later_wordings(world: World) -> None:
    stream = world.stream
    paris, rome = await say(stream, "I live in Paris"), await say(stream, "No, I live in Rome")
    note = await stream.retain("Lives in Paris", "note", evidence=[paris.id])
    new = await stream.supersede(note.id, "Lives in Rome", evidence=[rome.id])
    assert texts((await stream.find_removal(rome.id)).drawn) == ["Lives in Rome"]
    removal = await stream.find_removal(new.id)
    assert texts(removal.asked) == ["Lives in Paris", "Lives in Rome"] and not removal.drawn
    assert texts(removal.sources) == [paris.text, rome.text]
    await forget(world, removal)
    assert await all_texts(world) == [paris.text, rome.text]


async def test_an_interrupted_rewrite_is_finished_when_the_folder_is_opened(world: World) -> None:
    zorro = await say(world.stream, "My parrot is called Zorro.")
    await world.store.erase(key_of("ann"), [zorro.id])  # and the process died before the file was rewritten
    await world.close()
    assert unfinished(world.folder)
    finish_all(world.folder, key_of("bob"))
    assert not unfinished(world.folder) and left(world.folder, "zorro") == []


def unfinished(folder: Path) -> bool:
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:
        return bool(connection.execute("SELECT 1 FROM counters WHERE name = 'erased' AND value > 0").fetchone())


async def test_a_running_reasoner_writes_nothing_about_forgotten_text(folder: Path) -> None:
    async with Mind.open(folder, user="ann", session="s", responder=Coach.using()) as mind:
        await mind.send("My parrot Zorro screams at six.")
        await mind.memory.forget(session="s")
        await mind.settled()
        assert left(folder, "zorro", "screams") == []
        await mind.send("The tram is loud at night.")
        await mind.settled()
        assert Coach.of(mind).belief.version
    assert left(folder, "zorro") == []


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ({}, "name what is to be forgotten"),
        ({"about": "  "}, "name what is to be forgotten"),
        ({"about": "it is"}, "no words to look for"),
        ({"session": "friday"}, "there is no session 'friday'"),
        ({"since": 2.0, "until": 1.0}, "ends before it begins"),
        ({"since": -1.0}, "since: seconds since 1970"),
    ],
)
async def test_invalid_forget_requests_raise_an_error_with_the_reason(
    what: dict[str, str], says: str, world: World
) -> None:
    await say(world.stream, "hello")
    with pytest.raises(InputError, match=says):
        await world.stream.find_removal(**what)  # type: ignore[arg-type]


async def test_a_correction_is_logged_and_reports_records_based_on_the_old_text(world: World) -> None:
    stream = world.stream
    said = await say(stream, "I wake at three")
    note = await stream.retain("Wakes at three", "note", evidence=[said.id])
    await stream.retain("Three may be the tram", "thought", evidence=[note.id])
    await stream.believe("life", {"goals": ["not to wake at three", "rest"]}, Believed, evidence=[said.id])
    done = await stream.correct(note.id, "Wakes at four")
    assert done.record.text == "Wakes at four" and done.superseded.superseded_by == done.record.id
    assert texts(done.drawn) == ["Three may be the tram"]
    assert [item.text for item in done.items] == ["not to wake at three"]
    assert (await world.events("corrected")) == [Corrected(old=note.id, new=done.record.id)]
    assert (await stream.correct(done.record.id, "Wakes at four")).record == done.record
    assert len(await world.events("corrected")) == 1


async def test_removed_records_are_not_listed_as_similar(folder: Path) -> None:
    async with Mind.open(folder, user="ann", session="one", responder=Coach.using()) as mind:
        for text in ("My daughter is called Iris.", "I drink coffee at four.", "The coffee keeps me awake."):
            await mind.send(text)
            await mind.settled()
        removal = await mind.memory.find_removal(about="coffee")
    gone = {record.id for record in (*removal.asked, *removal.drawn)}
    assert len(gone) >= 4 and not gone & {record.id for record in removal.similar}
