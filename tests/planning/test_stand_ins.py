"""Without a model: a formula is calculated, other tasks are quoted; no rule replaces a missing model."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindstream.errors import ModelRefused, SettingsError
from mindstream.models.model import Model
from mindstream.models.rules import FakeModel, Rules
from mindstream.planning.planner import Planner, Strategy
from mindstream.planning.prompts import QUOTED
from mindstream.tools.named import named_tools


@pytest.mark.parametrize(
    ("task", "value"),
    [
        ("17.5% of 2480", "434"),
        ("2x + 3 = 11", "4"),
    ],
)
async def test_a_formula_is_calculated(task: str, value: str) -> None:
    async with named_tools(["calculator"]) as tools:
        solution = await Planner(model={}, tools=tools).solve(task)
    assert solution.answer == value and not solution.unanswered and not solution.is_quotation


@pytest.mark.parametrize(
    "task",
    [
        "wann wurde das Museum in Tornby eröffnet?",
        'museum [of] "Tornby" #E1 {',
    ],
)
async def test_other_tasks_are_answered_by_quotes_with_their_file(task: str, tmp_path: Path) -> None:
    (tmp_path / "museum.txt").write_text("The museum of Tornby opened in 1931.\nMISSING: nothing, and no model either")
    async with named_tools(["calculator", f"documents:{tmp_path}"]) as tools:
        solution = await Planner(model=Rules(), tools=tools).solve(task)
    assert [step.tool for step in solution.plan.steps] == ["search_documents"]
    assert solution.is_quotation and solution.unanswered == "an answer: no model was there"
    assert solution.answer.startswith(
        f"{QUOTED}\n\nmuseum.txt, lines 1-2:\nThe museum of Tornby opened in 1931. MISSING:"
    )


async def test_a_task_without_a_suitable_tool_is_reported() -> None:
    solution = await Planner(model=Rules(), tools=()).solve("Who wrote it?")
    assert not solution.answer and "if there is a search tool" in solution.stopped
    assert "`calculator` is not available" in (await Planner(model=Rules(), tools=()).solve("3 * 4")).stopped


async def test_react_needs_a_model() -> None:
    with pytest.raises(ModelRefused, match="configure a model"):
        await Planner(model={}, how="react").solve("3 * 4")


@pytest.mark.parametrize(("how", "lacks"), [("rewoo", "solver"), ("plan-execute", "solver"), ("react", "worker")])
async def test_a_missing_role_is_named(how: Strategy, lacks: str) -> None:
    table: dict[str, Model] = {"planner": FakeModel({})}
    with pytest.raises(SettingsError, match=f"no model is configured for the role '{lacks}'"):
        await Planner(model=table, how=how).solve("Who?")
