"""Interviews: answers from memory and plan, no invention, hidden parts, at any step, without a trace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from hamlet import hamlet, live
from mindstream_town.forking import fork
from mindstream_town.inspect.history import read_history
from mindstream_town.prompts.conduct import AnswerInterview
from mindstream_town.residents.interview import Condition, interview, open_interview
from mindstream_town.town import Town

from mindstream.errors import InputError
from mindstream.models.model import Part, Piece, Request
from mindstream.models.roles import Models

NIGHT = 2 * 8_640 - 1
NOON = 8_640 + 12 * 360


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hamlet")
    asyncio.run(live(folder, hamlet(), NIGHT))
    return folder


async def answer(folder: Path, question: str, who: str = "Ben Hale", **more: object) -> str:
    step, condition = more.get("step", NOON), more.get("condition", "full")
    assert step is None or isinstance(step, int)
    return (await interview(folder, who, question, step, condition)).answer  # type: ignore[arg-type]


async def test_an_interview_does_not_change_the_town(tmp_path: Path) -> None:
    async with Town.open(tmp_path / "asked", hamlet()) as town:
        await town.run(until=4_000)
        before = await town.digest()
        for question in ("Who is Ada Brook?", "Give an introduction of yourself.", "Who is running for mayor?"):
            await interview(town, "Ben Hale", question)
        assert await town.digest() == before
        await town.run(until=NOON)
        asked = await town.digest()
    assert await live(tmp_path / "not", hamlet(), NOON) == asked, "nor do later memories and acts change"


async def test_without_a_model_recalled_memories_are_quoted_with_their_day(folder: Path) -> None:
    said = await answer(folder, "Is there a reading evening at the Oak Cafe?")
    assert said.startswith("(No model answers.") and "reading evening" in said and "(Monday 2023-02-13" in said
    assert await answer(folder, "Is there a reading evening?", condition="none") == (
        "(No model answers. Ben Hale remembers: nothing of it)"
    )
    assert "reading evening" not in await answer(folder, "Is there a reading evening?", step=10), (
        "the fact is not known yet"
    )


class RecordingModel:
    """A model with useless replies that records its requests."""

    name = "keeps"

    def __init__(self) -> None:
        self.asked: list[AnswerInterview] = []

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        assert isinstance(request.prompt, AnswerInterview)
        self.asked.append(request.prompt)
        yield Piece("Well.")


async def test_the_prompt_contains_identity_day_and_recalled_memories(folder: Path) -> None:
    model = RecordingModel()
    block = (await read_history(folder, NOON)).state("Ben Hale", NOON).block_at(18 * 60)
    assert block is not None
    async with open_interview(folder, NOON, models=Models(model)) as interviewer:
        first = await interviewer.ask("Ben Hale", "Who is ada?")
        said = ("Interviewer: Who is ada?", f"Ben Hale: {first.answer}")
        second = await interviewer.ask("Ben Hale", "What does she plan?", lines=said)
        await interviewer.ask("Ben Hale", "What will you do?", "none")
    shown, again, bare = model.asked
    assert "piano tuner" in shown.identity and any(block.what in line for line in shown.day)
    assert any("Ada Brook is planning a reading evening" in each for each in shown.memories), "by her first name"
    assert any("reading evening" in each for each in again.memories), "earlier questions are used for recall, too"
    assert again.lines == ("Interviewer: Who is ada?", "Ben Hale: Well.") and first.answer == second.answer == "Well."
    assert not (bare.memories or bare.day or bare.near or bare.doing)


async def test_hidden_kinds_of_memory_are_not_recalled(folder: Path) -> None:
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


async def test_an_answer_lists_its_supporting_memories(folder: Path) -> None:
    asked = await interview(folder, "Ben Hale", "Is there a reading evening?")
    assert any("reading evening" in record.text for record in asked.rests_on)
    none = await interview(folder, "Ben Hale", "Who is Dora Finch?", models=Models(RecordingModel()))
    assert none.rests_on == ()


async def test_invalid_questions_are_refused_with_the_reason(folder: Path) -> None:
    async with open_interview(folder) as interviewer:
        for who, question, condition, words in (
            ("Nobody", "Who?", "full", "Hamlet has no resident"),
            ("Ben Hale", " ", "full", "the question is empty"),
            ("Ben Hale", "Who?", "half", "unknown condition"),
        ):
            with pytest.raises(InputError, match=words):
                await interviewer.ask(who, question, condition)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="choose a step from 0 to"):
        await interview(folder, "Ben Hale", "Who?", NIGHT + 10_000)


async def test_a_town_that_has_not_run_is_named_so(tmp_path: Path) -> None:
    async with Town.open(tmp_path / "new", hamlet()):
        pass
    with pytest.raises(InputError, match="the town has not run yet"):
        await interview(tmp_path / "new", "Ben Hale", "Who?", 0)
    with pytest.raises(InputError, match="Hamlet has not run yet"):
        await fork(tmp_path / "new", tmp_path / "fork", 0)
