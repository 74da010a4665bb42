"""Without a model the coach quotes its memory, and does not decide whether a record still holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from spoken import said, turn

from mindstream import Coach, Mind
from mindstream.coach.belief.plan import CoachingPlan, PlanStep
from mindstream.coach.packs.load import load
from mindstream.coach.talker import Talk, answer_from_pack
from mindstream.memory.conversation import Line

PLAN = CoachingPlan(steps=[PlanStep(title="Darken the room", state="now"), PlanStep(title="Find the noise")])


async def ask(folder: Path, session: str, *utterances: str) -> str:
    """Send some utterances without a model; return the last answer."""
    async with Mind.open(folder, user="ann", session=session, responder=Coach.using()) as mind:
        for utterance in utterances:
            answered = said(await turn(mind, utterance))
            await mind.settled()
    return answered.text


def answer(asked: str, plan: CoachingPlan) -> str:
    """Ask in the middle of a conversation about noise."""
    pack = load("sleep")
    return str(answer_from_pack(
        Talk(
            pack=pack, phase=pack.phases[0], belief={"sleep_concern": ["noise"]}, plan=plan, notes=(),
            recalled=(),
            history=(Line(by_user=True, text="It is loud."), Line(by_user=False, text="I see.")), utterance=asked,
        )
    ))  # fmt: skip


@pytest.mark.parametrize("facts", [("I moved to Paris.", "I live in Lyon."), ("I live in Lyon.", "I moved to Paris.")])
async def test_possibly_changed_facts_are_listed_newest_first_without_a_decision(
    folder: Path, facts: tuple[str, str]
) -> None:
    head, *lines = (await ask(folder, "one", *facts, "Where do I live?")).splitlines()
    assert "newest first" in head and "still holds" in head
    assert lines == [f"- in this talk: {fact}" for fact in reversed(facts)]
    _, *lines = (await ask(folder, "two", "Where do I live?")).splitlines()
    assert [line.partition(": ")[2] for line in lines] == list(reversed(facts)), (
        "and in the next conversation, with their days"
    )
    assert not any("in this talk" in line for line in lines)


async def test_a_single_matching_record_is_quoted_alone(folder: Path) -> None:
    quoted = await ask(folder, "one", "My doctor is Dr. Lee.", "Who is my doctor?")
    assert "(in this talk): “My doctor is Dr. Lee.”" in quoted and "\n" not in quoted


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ("what's my plan?", "- plan: Darken the room (now); Find the noise (later)"),
        ("What is my sleep concern?", "- sleep concern: noise"),
        ("我的计划是什么？", "- 计划: Darken the room (now); Find the noise (later)"),
    ],
)
def test_questions_about_plan_and_belief_quote_them(asked: str, line: str) -> None:
    assert line in answer(asked, PLAN).splitlines()


def test_a_missing_plan_is_not_invented() -> None:
    assert "plan" not in answer("what's my plan?", CoachingPlan())
