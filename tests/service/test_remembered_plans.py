"""`solve` reuses a plan that solved such a task before, unless told to plan again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mindstream.errors import ModelError
from mindstream.planning.exemplars import solved_plans, to_example
from mindstream.planning.journal import read_runs
from mindstream.service.calling import open_user_memory
from mindstream.service.solving import SolveSettings, open_solver
from mindstream.settings import Settings

PLANNED = ("make_plan", "#E1 = search_documents[Elbe length]")
ANSWERED = ("answer_from_evidence", "1,094 km")


def recording(file: Path, *said: tuple[str, str]) -> str:
    lines = [
        {"prompt": prompt, "role": "", "model": "door", "hash": "", "messages": [], "parts": [{"text": text}], "run": 0}
        for prompt, text in said
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return f"playback:{file}"


async def test_a_plan_is_reused_for_a_similar_task(tmp_path: Path) -> None:
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "rivers.md").write_text("The Elbe is 1,094 km long.\n\nThe Oder is 840 km long.", "utf-8")
    settings = Settings(data=tmp_path / "data", user="ann", model=recording(tmp_path / "r", PLANNED, ANSWERED))
    task = SolveSettings("How long is the Elbe?", docs=(tmp_path / "shelf",), run="first")
    async with open_solver(settings, task) as solver:
        assert (await solver.solve()).answer == "1,094 km"

    settings = settings.model_copy(update={"model": recording(tmp_path / "r", ("answer_from_evidence", "840 km"))})
    other = replace(task, text="How long is the Oder?", run="second")
    async with open_solver(settings, other) as solver:
        solved = await solver.solve()
    assert solved.answer == "840 km" and solved.plan.steps[0].arguments == {"query": "Oder length"}
    async with open_solver(settings, replace(other, run="third", fresh=True)) as solver:
        with pytest.raises(ModelError):
            await solver.solve()


async def test_plans_of_solved_runs_are_exported_in_prompt_format(tmp_path: Path) -> None:
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "rivers.md").write_text("The Elbe is 1,094 km long.", "utf-8")
    missing = ("answer_from_evidence", "MISSING E1: the length")
    settings = Settings(data=tmp_path / "data", user="ann", model=recording(tmp_path / "r", PLANNED, ANSWERED))
    task = SolveSettings("How long is the Elbe?", docs=(tmp_path / "shelf",), run="first", replans=0)
    async with open_solver(settings, task) as solver:
        await solver.solve()
        specs = solver.specs
    settings = settings.model_copy(update={"model": recording(tmp_path / "r", PLANNED, missing)})
    async with open_solver(settings, replace(task, text="How deep is it?", run="second")) as solver:
        assert (await solver.solve()).unanswered

    async with open_user_memory(settings) as memory:
        plans = solved_plans((await read_runs(memory)).values())
    assert [plan.task for plan in plans] == ["How long is the Elbe?"]
    told, asked, written = to_example(plans[0], specs)["messages"]
    assert told["role"] == "system" and "search_documents[" in told["content"] and "rivers.md" in told["content"]
    assert asked["content"].strip() == "<task>\nHow long is the Elbe?\n</task>"
    assert written == {"role": "assistant", "content": "Plan:\n#E1 = search_documents[Elbe length]"}
