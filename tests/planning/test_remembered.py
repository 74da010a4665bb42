"""A successful plan serves every task of its form, and no other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from planned import RecordingWatcher

from mindstream.memory.memory import Memory
from mindstream.models.rules import FakeModel
from mindstream.planning.planner import Planner, Strategy
from mindstream.planning.remembered import RememberedPlans
from mindstream.planning.run import Solution
from mindstream.tools.tool import tool

TASK = "Which is taller, Mount Everest or K2, after 20% of its height is taken from K2?"
PLAN = "#E1 = search[height of Mount Everest]\n#E2 = search[height of K2]\n#E3 = math[max(#E1, #E2 * (1 - 20/100))]\n"


async def search(query: str) -> str:
    """Search."""
    return f"({query})"


async def math(expression: str) -> str:
    """Work out."""
    return expression


TOOLS = [tool(search), tool(math)]
SPECS = [each.spec for each in TOOLS]


@pytest.fixture
async def plans(tmp_path: Path) -> AsyncIterator[RememberedPlans]:
    async with Memory.open(tmp_path, "plans") as stream:
        yield RememberedPlans(stream)


def model(**lines: Any) -> FakeModel:
    return FakeModel({name: line if isinstance(line, list) else [line] for name, line in lines.items()})


async def learn(plans: RememberedPlans, task: str = TASK, plan: str = PLAN, **options: Any) -> Solution:
    mind = model(make_plan=plan, answer_from_evidence=["so much"] * 3)
    return await Planner(model=mind, tools=TOOLS, remembered=plans, **options).solve(task)


async def test_a_task_of_the_same_form_is_solved_without_a_planner(plans: RememberedPlans) -> None:
    await learn(plans)
    told, mind = RecordingWatcher(), model(answer_from_evidence="Denali")
    task = "Which is taller, Denali or Mont Blanc, after 35% of its height is taken from Mont Blanc?"
    solution = await Planner(model=mind, tools=TOOLS, remembered=plans, watchers=[told]).solve(task)
    assert solution.answer == "Denali" and [each.prompt.label() for each in mind.asked] == ["answer_from_evidence"]
    assert solution.evidence["E3"].text == "max((height of Denali), (height of Mont Blanc) * (1 - 35/100))"
    assert told.plans[0] == solution.plan and solution.plan.task == task
    assert len(await plans.memory.latest("exemplar", 9)) == 1, "a reused plan is not stored again"


@pytest.mark.parametrize(
    "task",
    [
        "Which is lower, Denali or Mont Blanc, after 20% of its height is taken from Mont Blanc?",
        "Which is not taller, Denali or Mont Blanc, after 20% of its height is taken from Mont Blanc?",
        "Which is taller, Denali or Mont Blanc, after 20% of its height is taken from Denali?",
        "Which is taller, Denali or Mont Blanc, after 20% of its height is taken from Mont Blanc in feet?",
    ],
)
async def test_a_different_question_gets_a_new_plan(plans: RememberedPlans, task: str) -> None:
    await learn(plans)
    assert await plans.find(task.replace("Denali", "Mount Everest").replace("Mont Blanc", "K2"), SPECS) is None
    assert await plans.find(task, SPECS) is None


@pytest.mark.parametrize(
    ("task", "plan", "other"),
    [
        ("How high is Everest plus 20%?", "#E1 = search[height of the mountain]\n#E2 = math[#E1 * 1.2]", "20 30"),
        ("How high is Everest?", "#E1 = search[Chomolungma height of Everest]", "Everest Denali"),
        ("How high is Mount Everest?", "#E1 = search[Mount Everest]\n#E2 = search[Everest height]", "Everest Elbert"),
        ("What is Everest less 25%?", "#E1 = search[Everest]\n#E2 = math[#E1 * 75/100, less 25%]", "25 30"),
    ],
)
async def test_an_ambiguous_plan_is_reused_only_for_its_own_task(
    plans: RememberedPlans, task: str, plan: str, other: str
) -> None:
    assert (await learn(plans, task, plan)).answer
    assert await plans.find(task, SPECS) is not None
    old, new = other.split()
    changed = task.replace("Mount Everest", "Denali") if new == "Elbert" else task.replace(old, new)
    assert changed != task and await plans.find(changed, SPECS) is None


@pytest.mark.parametrize("how", ["react", "failed", "mended", "given"])
async def test_only_successful_planned_runs_are_remembered(plans: RememberedPlans, how: Strategy | str) -> None:
    mind = model(
        make_plan=PLAN.replace("math", "maths") if how != "given" else PLAN, act_on_task="Everest",
        answer_from_evidence=["MISSING E3", "Everest"] if how == "mended" else ["Everest"] * 2,
        mend_plan="#E3 = math[max(#E1, #E2)]",
    )  # fmt: skip
    way: Strategy = "react" if how == "react" else "rewoo"
    given = (await learn(plans)).plan if how == "given" else None
    before = len(await plans.memory.latest("exemplar", 9))
    task = TASK if how != "given" else "Where is Everest?"
    solution = await Planner(model=mind, tools=TOOLS, how=way, remembered=plans).solve(task, given)
    assert solution.answer == "Everest" and len(await plans.memory.latest("exemplar", 9)) == before


async def test_a_plan_with_missing_tools_is_not_reused(plans: RememberedPlans) -> None:
    await learn(plans)
    assert await plans.find(TASK, SPECS) is not None
    assert await plans.find(TASK, SPECS[:1]) is None


async def test_quoted_text_is_not_parsed_as_a_reference(plans: RememberedPlans) -> None:
    await learn(plans, 'Who wrote "Dune"?', "#E1 = search[author of Dune]\n#E2 = math[#E1, Dune]")
    plan = await plans.find('Who wrote "#E1 and #E2"?', SPECS)
    assert plan is not None and plan.steps[0].needs == () and plan.steps[1].needs == ("E1",)
