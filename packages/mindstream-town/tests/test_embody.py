"""A user controls a resident or visitor: acts are seen, remembered, stored, and reproducible."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from fake_endpoint import Asked, Behaviour, Fails, FakeEndpoint, Says
from hamlet import hamlet
from mindstream_town.embody.embodied import Embodied as Person
from mindstream_town.embody.embodied import find_beside, visitor
from mindstream_town.embody.living import WAYS
from mindstream_town.events import Acted, Declined, Embodied, Released, Spoke, Talked
from mindstream_town.inspect.history import read_history
from mindstream_town.inspect.timeline import read_timeline
from mindstream_town.journal import resident_of, rows_after
from mindstream_town.town import Town

from mindstream.errors import InputError, ModelError
from mindstream.memory.store.store import read_all

EIGHT, NINE = 8 * 360, 9 * 360
CAFE = "Hamlet:Oak Cafe:cafe"


async def memories(town: Town, name: str) -> list[str]:
    memory = town.residents[name].memory
    return [each.text async for part in read_all(town.store, memory.key) for each in part]


async def test_residents_remember_a_visitor_who_leaves_the_town(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(EIGHT + 60)
        me = await town.embody("Maya", as_visitor=True, at="oak cafe:cafe")
        seen = await me.look()
        assert seen.where == "cafe of Oak Cafe" and [each.name for each in seen.people] == ["Ada Brook"]
        await me.do("juggling five lemons", 5, "piano")
        await me.say("Good morning, I am new here.")
        talk = await me.look(since=seen.step)
        assert [each.text for each in talk.happened if each.kind == "heard" and each.who == "Ada Brook"]
        await me.say("See you!")
        await me.leave()
        theirs = await memories(town, "Ada Brook")
        assert "Maya is juggling five lemons" in theirs and "Good morning, I am new here." in theirs
        assert any(text.startswith("Ada Brook talked with Maya") for text in theirs)
        assert any("Maya was juggling five lemons" in text for text in await memories(town, "Maya"))
        await town.run(NINE)
        assert not town.is_here("Maya")


ACTS = ("begin", "do", "say", "say", "go", "wait", "leave")


async def live_as(folder: Path, name: str = "Maya", *, together: bool) -> str:
    """Control a resident for two hours, in one process or in one per act; return the journal's checksum."""
    async with Town.open(folder, hamlet()) as town:
        await town.run(EIGHT + 60)
    rest = list(ACTS)
    while rest:
        async with Town.open(folder) as town:
            for act in rest if together else rest[:1]:
                me = await town.embody(name, as_visitor=name == "Maya", at=CAFE if name == "Maya" else "")
                if act == "do":
                    await me.do("juggling", 5, "piano")
                elif act == "say":
                    await me.say("Hello again, Ada!")
                elif act == "go":
                    await me.go("oak cafe:cafe")
                elif act == "wait":
                    await me.wait(20)
                elif act == "leave":
                    await me.leave()
            rest = [] if together else rest[1:]
    async with Town.open(folder) as town:
        await town.run(NINE + 360)
        return await town.digest()


async def test_the_same_acts_at_the_same_steps_give_the_same_journal(tmp_path: Path) -> None:
    digest = await live_as(tmp_path / "a", together=True)
    assert await live_as(tmp_path / "b", together=True) == digest
    assert await live_as(tmp_path / "c", together=False) == digest, "in any number of processes"


KILLED = """
import asyncio, os, signal, sys
from mindstream_town.town import Town

async def main(folder):
    async with Town.open(folder) as town:
        me = await town.embody("Maya", as_visitor=True, at="Hamlet:Oak Cafe:cafe")
        await me.do("juggling", 5, "piano")
        await me.say("Hello again, Ada!")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(sys.argv[1]))
"""


async def test_a_killed_process_loses_no_act_and_the_town_can_continue(tmp_path: Path) -> None:
    digests = []
    for folder in (tmp_path / "peace", tmp_path / "killed"):
        async with Town.open(folder, hamlet()) as town:
            await town.run(EIGHT + 60)
            if folder.name == "peace":
                me = await town.embody("Maya", as_visitor=True, at=CAFE)
                await me.do("juggling", 5, "piano")
                await me.say("Hello again, Ada!")
        if folder.name == "killed":
            words = [sys.executable, "-c", KILLED, str(folder)]
            done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, timeout=200)
            assert done.returncode == -signal.SIGKILL, done.stderr
        async with Town.open(folder) as town:
            assert town.residents["Maya"].state.embodied == "Maya"
            await town.run(NINE)
            assert not town.residents["Maya"].state.embodied and not town.is_here("Maya")
            assert "Hello again, Ada!" in await memories(town, "Ada Brook")
            digests.append(await town.digest())
    assert digests[0] == digests[1]


async def test_a_released_resident_continues_by_itself(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(EIGHT + 60)
        me = await town.embody("Ada Brook", by="Maya")
        assert (await me.look()).plan[0].what.startswith("serving guests")
        await me.do("dancing on the table", 30)
        assert town.residents["Ada Brook"].state.act is not None
        with pytest.raises(InputError, match="already controls Ada Brook"):
            await town.embody("Ada Brook", by="Tom")
        await me.leave()
        act = town.residents["Ada Brook"].state.act
        assert act is not None and act.what.startswith("serving guests") and act.why == "plan"
        assert any(
            text.startswith("Ada Brook was dancing on the table (cafe of Oak Cafe) from 08:1")
            for text in await memories(town, "Ada Brook")
        )
        rows = [row async for row in rows_after(town.store) if resident_of(row) == "Ada Brook"]
        mine = [row for row in rows if row.by == "Maya"]
        assert isinstance(mine[0].event, Embodied) and isinstance(mine[-1].event, Released)
        assert [row.event.act.what for row in mine if isinstance(row.event, Acted)][1:2] == ["dancing on the table"]


def reply_of(text: str, place: int = 0) -> str:
    return json.dumps({"items": [{"start": "08:00", "minutes": 600, "what": text, "place": place}]})


async def test_after_release_the_model_replans_the_rest_of_the_day(
    tmp_path: Path,
) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(EIGHT + 60)
    with FakeEndpoint() as door:
        door.otherwise = by_prompt
        models = {"default": "rules", "planner": f"{door.url}#any"}
        async with Town.open(tmp_path, model=models) as town:
            me = await town.embody("Ada Brook", by="Maya")
            await me.do("dancing on the table", 30)
            assert not asked_of_ada(door), "a controlled resident calls no model"
            await me.leave()
            act = town.residents["Ada Brook"].state.act
            asked = asked_of_ada(door)[0]
    assert "dancing on the table" in asked and act is not None and "schlafen" in act.what


def asked_of_ada(door: FakeEndpoint) -> list[str]:
    return [text for each in door.chats if "Ada Brook, 34" in (text := str(each.body["messages"]))]


def by_prompt(asked: Asked) -> Behaviour:
    """Plan the rest of a day, or a part of it."""
    if "the rest of the day of a person" in str(asked.body["messages"][0]):
        return Says(reply_of("schlafen"))
    return Says(json.dumps({"tasks": [{"minutes": 60, "what": "schlafen"}]}))


async def test_a_resident_can_ignore_a_visitor_and_both_remember_it(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(EIGHT + 60)
    with FakeEndpoint() as door:
        door.otherwise = Says("no")
        async with Town.open(tmp_path, model={"default": "rules", "decider": f"{door.url}#any"}) as town:
            me = await town.embody("Maya", as_visitor=True, at=CAFE)
            await me.say("Have you a moment?", "ada")
            seen = await me.look(since=0)
            assert not seen.talks_with and ("unanswered", "Ada Brook") in [
                (each.kind, each.who) for each in seen.happened
            ]
            assert ("said", "Have you a moment?") in [(each.kind, each.text) for each in seen.happened]
            for name in ("Maya", "Ada Brook"):
                told = await memories(town, name)
                assert "Maya spoke to Ada Brook, and Ada Brook did not answer" in told
                assert "Have you a moment?" in told


def greets(asked: Asked) -> Behaviour:
    """Decide to talk, and say something in a language that no rule knows."""
    return Says("yes" if asked.body["model"] == "decides" else json.dumps({"text": "Guten Morgen, Fremde!"}))


@asynccontextmanager
async def greeted(folder: Path) -> AsyncIterator[tuple[Town, Person]]:
    """Be a visitor in a café where a resident starts a conversation."""
    async with Town.open(folder, hamlet()) as town:
        await town.run(EIGHT + 60)
    with FakeEndpoint() as door:
        door.otherwise = greets
        models = {"default": "rules", "decider": f"{door.url}#decides", "talker": f"{door.url}#talks"}
        async with Town.open(folder, model=models) as town:
            yield town, await town.embody("Maya", as_visitor=True, at=CAFE)


async def test_a_user_can_answer_decline_or_ignore_a_resident(tmp_path: Path) -> None:
    async with greeted(tmp_path) as (town, me):
        assert await me.wait(30) == "Ada Brook"
        seen = await me.look(since=0)
        assert seen.talks_with == "Ada Brook" and seen.talk[0].text == "Guten Morgen, Fremde!"
        assert town.step < EIGHT + 60 + 180, "time stops for the addressee"
        await me.say("Grüß Gott!")
        assert [line.by for line in (await me.look()).talk] == ["Ada Brook", "Maya", "Ada Brook"]
        await me.do("laughing", 1)
        rows = [row.event async for row in rows_after(town.store) if resident_of(row) == "Ada Brook"]
        (talk,) = [each for each in rows if isinstance(each, Talked) and each.partner == "Maya"]
        assert [line.text for line in talk.lines][1] == "Grüß Gott!"
        assert sum(isinstance(each, Spoke) for each in rows) == 3


async def test_a_resident_remembers_an_unanswered_greeting(tmp_path: Path) -> None:
    async with greeted(tmp_path) as (town, me):
        await me.wait(30)
        await me.decline()
        with pytest.raises(InputError, match="there is no talk to end"):
            await me.decline()
        await me.wait(60)
        assert me.talks_with != "Ada Brook", "she does not start again at once"
        rows = [row.event async for row in rows_after(town.store) if resident_of(row) == "Ada Brook"]
        assert [each.by for each in rows if isinstance(each, Declined)] == ["Maya"]
        assert "Ada Brook spoke to Maya, and Maya did not answer" in await memories(town, "Ada Brook")
        history = await read_history(town)
        for name, words in (("Maya", "is spoken to by Ada Brook, and Maya"), ("Ada Brook", "speaks to Maya, who")):
            other = "Ada Brook" if name == "Maya" else "Maya"
            (moment,) = [each for each in read_timeline(history, name, about=other) if "answer" in each.text]
            assert moment.text == f"{words} does not answer: Ada: “Guten Morgen, Fremde!”"


async def test_a_resident_waits_some_minutes_for_an_answer(tmp_path: Path) -> None:
    async with greeted(tmp_path) as (town, me):
        await me.wait(30)
        seen = await me.look()
        said = town.setting.when(town.step)
        assert seen.answer_by == f"{said + timedelta(minutes=3):%H:%M}"
        assert await me.wait() == "" and not me.talks_with
        (told,) = [each for each in (await me.look(seen.step)).happened if each.kind == "unanswered"]
        assert (told.who, told.text, told.waited) == ("Maya", "Ada Brook", True)
        assert (await me.look()).answer_by == ""


async def test_waiting_continues_after_a_conversation_ends(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(EIGHT + 60)
        me = await town.embody("Maya", as_visitor=True, at=CAFE)
        await me.say("Good morning, I am new here.")
        before = town.step
        assert me.talks_with == "Ada Brook" and await me.wait(10) == ""
        assert town.step == before + 60 and not me.talks_with
        (over,) = [each for each in (await me.look(before)).happened if each.kind == "talked"]
        assert over.waited and over.who == "Ada Brook"


async def test_a_finished_conversation_is_not_shown_as_ongoing(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(EIGHT + 60)
        me = await town.embody("Maya", as_visitor=True, at=CAFE)
        await me.say("Good morning, I am new here.")
        assert [each.doing for each in (await me.look()).people] == ["talking with Maya"]
        await me.decline()
        seen = await me.look(since=0)
        assert [each.kind for each in seen.happened][-1] == "talked"
        assert "talking" not in seen.doing + "".join(each.doing for each in seen.people)
        await me.wait(5)
        told = [each for each in (await me.look(since=0)).happened if each.kind == "saw"]
        assert told and all(each.who and "talking" not in each.text for each in told)


async def test_words_to_all_are_remembered_by_all_near_and_answered_by_one(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(NINE + 180)
        me = await town.embody("Maya", as_visitor=True, at=CAFE)
        near = [each.name for each in (await me.look()).people]
        assert sorted(near) == ["Ada Brook", "Ben Hale"]
        await me.say("The library boat comes on Wednesday.")
        heard = "heard Maya say: The library boat comes on Wednesday."
        assert f"{near[1]} {heard}" in await memories(town, near[1])
        assert f"{near[0]} {heard}" not in await memories(town, near[0]), "one of them is spoken to"
        assert [line.by for line in (await me.look()).talk] == ["Maya", near[0]]
        history = await read_history(town)
        (moment,) = read_timeline(history, near[1], about="library boat")
        assert moment.text == "hears Maya say to all: “The library boat comes on Wednesday.”"
        await me.say("It lends picture books.")
        await me.say("And atlases.", "all")
        theirs = await memories(town, near[1])
        assert f"{near[1]} heard Maya say: And atlases." in theirs
        assert not any("picture books" in text for text in theirs), "that was addressed to one"


async def test_a_failed_step_has_no_effect_and_can_be_repeated(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(EIGHT + 60)
    with FakeEndpoint() as door:
        door.otherwise = Fails(401, "wrong key")
        async with Town.open(tmp_path, model={"default": "rules", "talker": f"{door.url}#any"}) as town:
            me = await town.embody("Maya", as_visitor=True, at=CAFE)
            before = town.step
            with pytest.raises(ModelError, match="wrong key"):
                await me.say("Hello!", "ada")
            assert town.step == before
            door.otherwise = Says(json.dumps({"text": "Hello yourself."}))
            await me.say("Hello!", "ada")
            assert [line.text for line in (await me.look()).talk] == ["Hello!", "Hello yourself."]


async def test_impossible_acts_are_refused_and_take_no_time(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(EIGHT - 60)
        for name, visitor in (("ada brook", True), ("Ada Brook", True), ("Nobody", False)):
            with pytest.raises(InputError):
                await town.embody(name, as_visitor=visitor)
        me = await town.embody("Maya", as_visitor=True)
        before = town.step
        with pytest.raises(InputError, match="not open to you"):
            await me.go("elm house:room")
        with pytest.raises(InputError, match="has no place called"):
            await me.go("moon")
        with pytest.raises(InputError, match="not in sight"):
            await me.say("Hello?", "cleo")
        with pytest.raises(InputError, match="1 to 600 characters"):
            await me.say(" ", "ada")
        assert town.step == before


async def test_whisper_and_set_work_during_a_visit(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(EIGHT + 60)
        me = await town.embody("Maya", as_visitor=True, at=CAFE)
        await town.set_object(f"{CAFE}:piano", "out of tune")
        await town.whisper("Ada Brook", "The bridge is closed.")
        before = town.step
        await me.wait(1)
        seen = await me.look(since=before)
        assert [each.condition for each in seen.things if each.name == "piano"] == ["out of tune"]
        assert "the piano is out of tune" in [each.text for each in seen.happened if each.kind == "saw"]
        assert "The bridge is closed." in await memories(town, "Ada Brook")


async def test_walls_and_closed_doors_stop_a_visitor(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(EIGHT + 60)
        me = await town.embody("Maya", as_visitor=True, at="oak cafe:cafe")
        before, walked = await memories(town, "Maya"), []
        for way in ("left", "left", "up"):
            x, y = (await me.look()).spot
            since = town.step
            try:
                await me.step(way)
            except InputError as error:
                assert "wall" in str(error) and town.step == since, "refused steps take no time"
                continue
            dx, dy = {"left": (-1, 0), "up": (0, -1)}[way]
            seen = await me.look()
            assert seen.spot == (x + dx, y + dy) and town.step == since + 2 and not seen.on_the_way
            walked.append(way)
        assert "left" in walked
        assert [text for text in await memories(town, "Maya") if text not in before and "Maya was" in text] == []
        spot = (await me.look()).spot
    async with Town.open(tmp_path) as town:
        me = await town.embody("Maya", as_visitor=True)
        assert (await me.look()).spot == spot, "another process continues from the same tile"
        await town.run(NINE)
        assert not town.is_here("Maya")


async def test_a_visitor_cannot_step_into_private_houses(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(3 * 360)
        world, maya = town.setting.world, visitor(town.setting, "Maya")
        steps = [
            (outside, way) for x, y in world.spots(town.setting.addresses["Hamlet:Mill House:room"])
            for way, (dx, dy) in WAYS.items()
            if world.walkable(outside := (x - dx, y - dy)) and world.address_at(outside).level == 1
        ]  # fmt: skip
        assert steps
        for outside, way in steps:
            with pytest.raises(InputError, match="not open to you"):
                find_beside(town, maya, outside, way)
