"""A user talks with a resident: immediate answer, background reasoning, later effects, a reproducible journal."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from fake_endpoint import Asked, Behaviour, Fails, FakeEndpoint, Says
from hamlet import hamlet
from keys import key_of_resident
from mindstream_town.journal import rows_after
from mindstream_town.residents.interview import interview
from mindstream_town.residents.visiting import visit
from mindstream_town.town import Town

from mindstream.errors import InputError, ModelError
from mindstream.log.events import Event, Heard, Piece, Said, Thought
from mindstream.models.model import Part, Request
from mindstream.models.roles import Models
from mindstream.models.rules import Rules

NOON = 12 * 360
LATER = NOON + 360
SAID = ("What are you planning?", "The fair in the park on Saturday begins at 3pm.", "What are you planning?")


class Slow:
    """Answer like the rules, after a delay."""

    name = Rules.name

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        await asyncio.sleep(0.05)
        async for part in Rules().reply(request):
            yield part


async def act(town: Town, name: str) -> None:
    """Perform a user's act from outside."""
    if name == "whisper":
        await town.whisper("Ada Brook", "The bridge is closed on Sunday.")
    elif name == "set":
        await town.set_object("Hamlet:Oak Cafe:cafe:piano", "out of tune")
    else:
        async with visit(town, "Ada Brook", by=name) as mind:
            for text in SAID:
                await mind.send(text)


ACTS = ("whisper", "set", "Maya", "Tom", "whisper", "Maya")


async def live(folder: Path, models: Models | str = "rules") -> str:
    """Run half a day in which users come and go, all in one process; return the journal's digest."""
    async with Town.open(folder, hamlet(), model=models) as town:
        await town.run(NOON)
        for name in ACTS:
            await act(town, name)
        await town.run(LATER)
        return await town.digest()


async def test_the_same_visits_give_the_same_journal(tmp_path: Path) -> None:
    peace = await live(tmp_path / "a")
    assert await live(tmp_path / "b", Models(Rules(), {"reasoner": Slow()})) == peace, (
        "independent of the reasoner's duration"
    )
    async with Town.open(tmp_path / "c", hamlet()) as town:
        await town.run(NOON - 100)
        await town.run(NOON)
    for name in ACTS:
        async with Town.open(tmp_path / "c") as town:
            await act(town, name)
    async with Town.open(tmp_path / "c") as town:
        await town.run(NOON + 7)
        await town.run(LATER)
        assert await town.digest() == peace, "in any number of processes"


KILLED = """
import asyncio, os, signal, sys
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream_town.town import Town
from mindstream_town.residents.visiting import visit

class Never:
    name = Rules.name
    async def reply(self, request):
        await asyncio.sleep(1_000)
        yield

async def main(folder, lines):
    async with Town.open(folder, model=Models(Rules(), {"reasoner": Never()})) as town:
        async with visit(town, "Ada Brook", by="Maya") as mind:
            for line in lines:
                print(await mind.send(line), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(sys.argv[1], sys.argv[2:]))
"""


async def test_a_process_killed_after_an_answer_loses_nothing(tmp_path: Path) -> None:
    digests = []
    for folder in (tmp_path / "peace", tmp_path / "killed"):
        async with Town.open(folder, hamlet()) as town:
            await town.run(NOON)
            if folder.name == "peace":
                await act(town, "Maya")
        if folder.name == "killed":
            words = [sys.executable, "-c", KILLED, str(folder), *SAID]
            done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, timeout=200)
            assert done.returncode == -signal.SIGKILL and len(done.stdout.splitlines()) == 3, done.stderr
        async with Town.open(folder) as town:
            await town.run(LATER)
            digests.append(await town.digest())
            assert "3pm" in (await interview(town, "Ada Brook", "When is the fair in the park?")).answer
    assert digests[0] == digests[1]


def answer(asked: Asked) -> Behaviour:
    """Answer as a resident that a visitor invites."""
    if asked.body["model"] == "fast":
        return Says("I would love to come.", pause_s=0.1)
    cafe = re.search(r"(\d+)\. cafe of Oak Cafe", asked.body["messages"][-1]["content"])
    assert cafe
    agreed = {"text": "Ada will go to the concert at 3pm.", "what": "listening to the concert", "place": int(cafe[1])}
    hours = {"day": "2023-02-13", "start": "15:00", "end": "16:30", "who": ["Ada Brook", "Maya"]}
    memo = [{"text": "There is a concert at Oak Cafe today."}]
    return Says(json.dumps({"about": "a concert", "memo": memo, "agreed": [agreed | hours]}))


async def test_a_model_answers_at_once_and_agreements_are_kept(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(NOON)
    with FakeEndpoint() as door:
        door.otherwise = answer
        models = {"default": "rules", "talker": f"{door.url}#fast", "reasoner": f"{door.url}#slow"}
        async with Town.open(tmp_path, model=models) as town:
            async with visit(town, "Ada Brook", by="Maya") as mind:
                seen: list[Event] = []
                async for row in mind.hear("There is a concert at Oak Cafe today at 3pm. Will you come?"):
                    seen.append(row.event)
                kinds = [type(each) for each in seen]
                assert kinds == [Heard, *[Piece] * (len(kinds) - 2), Said] and len(kinds) > 3, "streamed"
                assert not await town.store.count(key_of_resident("Ada Brook"), "thought"), (
                    "reasoning runs in the background"
                )
                await mind.settled()
                assert await town.store.count(key_of_resident("Ada Brook"), "thought") == 1
            assert {asked.body["model"] for asked in door.chats} == {"fast", "slow"} and len(door.chats) == 2
            assert any("concert" in block.what for block in town.residents["Ada Brook"].state.blocks)
    async with Town.open(tmp_path) as town:
        await town.run(15 * 360 + 60)
        act = town.residents["Ada Brook"].state.act
        assert act is not None and "concert" in act.what, act


async def test_postponed_reasoning_about_a_visit_runs_before_the_town_continues(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(NOON)
    with FakeEndpoint() as door:
        door.otherwise = Fails(401, "wrong key")
        async with Town.open(tmp_path, model={"default": "rules", "reasoner": f"{door.url}#any"}) as town:
            with pytest.raises(ModelError, match="wrong key"):
                async with visit(town, "Ada Brook", by="Maya") as mind:
                    assert await mind.send(SAID[1])
            with pytest.raises(ModelError, match="wrong key"):
                await town.run(LATER)
            assert town.step == NOON
    async with Town.open(tmp_path) as town:
        await town.run(LATER)
        thoughts = [row.at async for row in rows_after(town.store) if isinstance(row.event, Thought)]
        assert thoughts == [town.setting.moment(NOON)]
        assert "3pm" in (await interview(town, "Ada Brook", "When is the fair in the park?")).answer


@pytest.mark.parametrize("says", [Fails(401, "wrong key"), Says("")])
async def test_without_an_available_model_a_resident_stays_silent_and_keeps_the_message(
    tmp_path: Path, says: Behaviour
) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(NOON)
    with FakeEndpoint() as door:
        door.otherwise = says
        async with Town.open(tmp_path, model={"default": "rules", "talker": f"{door.url}#any"}) as town:
            with pytest.raises(ModelError):
                async with visit(town, "Ada Brook", by="Maya") as mind:
                    await mind.send(SAID[1])
            rows = [row.event async for row in rows_after(town.store)]
    assert [each.text for each in rows if isinstance(each, Heard)] == [SAID[1]]
    assert not any(isinstance(each, Said) for each in rows), "no rule answers instead"
    async with Town.open(tmp_path) as town:
        await town.run(LATER)
        assert any([isinstance(row.event, Thought) async for row in rows_after(town.store)])


async def test_a_visitor_needs_a_name_that_no_resident_has(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        for by in ("Ben Hale", "ben hale", "", "a\nb"):
            with pytest.raises(InputError):
                async with visit(town, "Ada Brook", by=by):
                    pass


async def test_rules_quote_memories_and_not_earlier_quotes(folder: Path) -> None:
    async with Town.open(folder, hamlet(), model="rules") as town:
        await town.run(NOON)
        async with visit(town, "Ada Brook", by="Maya") as mind:
            answers = [await mind.send(text) for text in ("Is there a reading evening?", "Is there a reading evening?")]
    assert all(answer.count("No model answers") == 1 for answer in answers), answers
    assert all("reading evening" in answer for answer in answers)
