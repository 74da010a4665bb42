"""Tasks planned, worked on and answered by a language model, played back from a recording of a local endpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindstream import Models
from mindstream.planning.planner import Planner, Strategy
from mindstream.tools.named import Means, named_tools

ROOT = Path(__file__).parents[2]
HOURS = (
    "Thomas, Toby, and Rebecca worked a total of 157 hours in one week. Thomas worked x hours. Toby worked 10 hours "
    "less than twice what Thomas worked, and Rebecca worked 8 hours less than Toby. How many hours did Rebecca work?"
)
SEED = "What is the hometown of the winner of the men's 2024 Australian Open?"
TASKS: list[tuple[int, str, Strategy, str]] = [
    (0, SEED, "rewoo", "Sexten"),
    (1, SEED, "react", "Sexten"),
    (2, SEED, "plan-execute", "Sexten"),
    (3, HOURS, "rewoo", "56"),
    (10, "How high is K2, in which year was it first climbed, and how long is the Karakoram?", "rewoo", "8,611"),
    (11, "When was Oslo founded, and who is its mayor?", "plan-execute", "1040"),
]
IN_PART = {"How high is K2": "Karakoram", "When was Oslo": "mayor"}
"""Answers that the documents lack, by the beginning of the task."""


RECORDED = [
    json.loads(line) for line in (ROOT / "tests" / "recordings" / "planning.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize(("run", "task", "how", "answer"), TASKS)
async def test_a_recorded_model_solves_the_task(
    run: int, task: str, how: Strategy, answer: str, tmp_path: Path
) -> None:
    recording = tmp_path / "recording.jsonl"
    recording.write_text("".join(json.dumps(line) + "\n" for line in RECORDED if line["run"] == run), "utf-8")
    async with Models.named({"default": f"playback:{recording}"}) as models:
        names = ("calculator", f"documents:{ROOT / 'examples' / 'documents'}", "llm")
        async with named_tools(names, Means(model=models.of("worker"), data=tmp_path / "data")) as tools:
            solution = await Planner(model=models, tools=tools, how=how).solve(task)
    missing = next((words for start, words in IN_PART.items() if task.startswith(start)), "")
    assert answer in solution.answer and not solution.stopped, solution
    assert missing in solution.unanswered and bool(missing) == bool(solution.unanswered), solution
    assert all(not evidence.failed for evidence in solution.evidence.values()), solution.evidence
