"""Interviews: answers from memory and plan, nothing made up, parts hidden, at any step, and no trace."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hamlet import hamlet

from mindstream.errors import InputError
from mindstream.town.history import read_history
from mindstream.town.interview import Condition, interview, open_interview
from mindstream.town.town import Town

NIGHT = 2 * 8_640 - 1
NOON = 8_640 + 12 * 360


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hamlet")

    async def lived() -> None:
        async with Town.open(folder, hamlet()) as town:
            await town.run(until=NIGHT)

    asyncio.run(lived())
    return folder


async def answer(folder: Path, question: str, who: str = "Ben Hale", **more: object) -> str:
    step, condition = more.get("step", NOON), more.get("condition", "full")
    assert step is None or isinstance(step, int)
    return (await interview(folder, who, question, step, condition)).answer  # type: ignore[arg-type]


async def test_an_interview_leaves_no_trace(tmp_path: Path) -> None:
    async with Town.open(tmp_path / "asked", hamlet()) as town:
        await town.run(until=4_000)
        before = await town.digest()
        for question in ("Who is Ada Brook?", "Give an introduction of yourself.", "Who is running for mayor?"):
            await interview(town, "Ben Hale", question)
        assert await town.digest() == before
        await town.run(until=NOON)
        asked = await town.digest()
    async with Town.open(tmp_path / "not", hamlet()) as town:
        await town.run(until=4_000)
        await town.run(until=NOON)
        assert await town.digest() == asked, "nor does what it remembers, or does next, change"


async def test_who_somebody_is_comes_from_the_description(folder: Path) -> None:
    for condition in ("full", "none"):
        assert "piano tuner" in await answer(folder, "What is your occupation?", condition=condition)
    assert "Ada Brook is my wife" in await answer(folder, "Who do you live with?")
    assert "around 11pm" in await answer(folder, "Describe your typical weekday schedule.")


async def test_what_was_told_is_known_and_what_was_not_is_not(folder: Path) -> None:
    assert (await answer(folder, "Is there a reading evening?")).startswith("Yes. ")
    assert "wife" in await answer(folder, "Who is Ada Brook?")
    assert await answer(folder, "Who is Dora Finch?") == "I do not know who Dora Finch is."
    assert await answer(folder, "Who is running for mayor?") == "I do not know."
    assert await answer(folder, "Is there a flower show?") == "I do not know."
    assert await answer(folder, "Is there a reading evening?", condition="none") == "I do not know."


async def test_at_an_earlier_step_it_knows_what_it_knew_then(folder: Path) -> None:
    assert await answer(folder, "Is there a reading evening?", step=10) == "I do not know."


async def test_what_one_will_do_comes_from_the_plan(folder: Path) -> None:
    block = (await read_history(folder, NOON)).state("Ben Hale", NOON).block_at(18 * 60)
    assert block is not None
    async with open_interview(folder, NOON) as interviewer:
        asked = await interviewer.ask("Ben Hale", "What will you be doing at 6 pm today?")
        assert block.what in asked.answer
        hidden = await interviewer.ask("Ben Hale", "What will you be doing at 1 pm today?", "no_reflection_no_plan")
        assert hidden.answer == "I do not know."
        night = await interviewer.ask("Ben Hale", "What will you be doing at 3 am tomorrow?", "none")
        assert night.answer == "I will be sleeping.", "of that its description speaks"


async def test_what_is_hidden_does_not_come_to_mind(folder: Path) -> None:
    kinds: dict[Condition, set[str]] = {}
    async with open_interview(folder) as interviewer:
        for condition in ("full", "no_reflection", "no_reflection_no_plan", "none"):
            asked = await interviewer.ask("Ben Hale", "What have you planned with Ada Brook?", condition)
            kinds[condition] = {
                "plan" if "plan" in each.record.keywords else each.record.kind for each in asked.memories
            }
    assert {"thought", "plan", "chat"} <= kinds["full"]
    assert "thought" not in kinds["no_reflection"] and "plan" in kinds["no_reflection"]
    assert not {"thought", "plan"} & kinds["no_reflection_no_plan"] and "chat" in kinds["no_reflection_no_plan"]
    assert kinds["none"] == set()


async def test_an_answer_names_the_memories_that_it_rests_on(folder: Path) -> None:
    asked = await interview(folder, "Ben Hale", "Is there a reading evening?")
    assert any("reading evening" in record.text for record in asked.rests_on)
    none = await interview(folder, "Ben Hale", "Who is Dora Finch?")
    assert none.rests_on == ()


async def test_several_questions_are_one_conversation(folder: Path) -> None:
    async with open_interview(folder) as interviewer:
        first, second = await interviewer.converse("Ben Hale", ["Who is Ada Brook?", "Your stove is on fire!"])
        assert "wife" in first.answer and second.answer.startswith("I would ")


async def test_what_cannot_be_asked_is_said(folder: Path) -> None:
    async with open_interview(folder) as interviewer:
        for who, question, condition, words in (
            ("Nobody", "Who?", "full", "nobody in Hamlet"),
            ("Ben Hale", " ", "full", "no question"),
            ("Ben Hale", "Who?", "half", "no condition"),
        ):
            with pytest.raises(InputError, match=words):
                await interviewer.ask(who, question, condition)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cannot be asked"):
        await interview(folder, "Ben Hale", "Who?", NIGHT + 10_000)
