"""The reported faults of a plan file are exactly those that prevent its run."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from mindstream.planning.plan import Fault, Plan, PlannedStep, check
from mindstream.service.solving import SolveSettings, find_faults, open_solver
from mindstream.settings import Settings

INPUTS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"expression": st.just("1 + 2")}),
    st.fixed_dictionaries({"query": st.sampled_from([{"$ref": "E1"}, {"$ref": "E3"}, "tea", 4])}),
    st.just({}),
)
STEPS = st.builds(
    PlannedStep, id=st.sampled_from(["E1", "E2", "E3"]), arguments=INPUTS,
    tool=st.sampled_from(["calculator", "recall", "search_documents", "LLM", "web_search"]),
)  # fmt: skip
TASKS = st.builds(
    SolveSettings, text=st.just("Why?"),
    tools=st.sampled_from([None, (), ("calculator",), ("recall",), ("calculator", "recall")]),
    docs=st.sampled_from([(), (Path(__file__).parent,)]),
)  # fmt: skip


@examples(max_examples=25, deadline=None)
@given(st.lists(STEPS, max_size=4), TASKS)
def test_checking_a_plan_finds_the_faults_a_run_would_refuse(steps: list[PlannedStep], task: SolveSettings) -> None:
    async def both(folder: Path) -> tuple[tuple[Fault, ...], tuple[Fault, ...]]:
        (file := folder / "plan.json").write_text(Plan(task="Why?", steps=tuple(steps)).save())
        named = SolveSettings(task.text, tools=task.tools, docs=task.docs, file=file)
        settings = Settings(data=folder / "data")
        async with open_solver(settings, named) as solver:
            assert solver.task.plan
            return (await find_faults(settings, named))[1], check(solver.task.plan, solver.specs)

    with tempfile.TemporaryDirectory() as folder:
        checked, refused = asyncio.run(both(Path(folder)))
    assert checked == refused
