"""A run interrupted while replanning is resumed: finished steps, replanning and spending are known."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kill_replan import measure
from planned import RecordingWatcher

from mindstream.clock import ManualClock
from mindstream.errors import ModelError, ModelRefused
from mindstream.memory.memory import Memory
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.models.embedders.embedder import embedder
from mindstream.models.model import Request
from mindstream.models.rules import FakeModel
from mindstream.models.wrappers.meter import Budget
from mindstream.planning.formats.read import read
from mindstream.planning.journal import read_run
from mindstream.planning.plan import Plan
from mindstream.planning.planner import Planner, Strategy
from mindstream.planning.run import Solution
from mindstream.tools.tool import FunctionTool, tool

PLAN, MENDED = "#E1 = look[a]\n#E2 = look[bad]\n", "#E2 = look[b]"


class Library:
    """Answer every query except a bad one, and record them."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.tool: FunctionTool = tool(self.look)

    async def look(self, query: str) -> str:
        """Look it up."""
        self.asked.append(query)
        return "" if query == "bad" else f"about {query}"

    @property
    def asked_in_turn(self) -> list[set[str] | str]:
        """The queries: the concurrent steps of PLAN as a set; then one after the other."""
        return [set(self.asked[:2]), *self.asked[2:]]


def crash(request: Request) -> str:
    """Interrupt the run as a crashing process does: its end is not logged."""
    raise ModelRefused("the process died")


def model(**lines: Any) -> FakeModel:
    return FakeModel({name: line if isinstance(line, list) else [line] for name, line in lines.items()})


@pytest.fixture
async def stream(tmp_path: Path) -> AsyncIterator[Memory]:
    store = SqliteStore(tmp_path)
    yield Memory(store, "marta", embedder("wordllama"), ManualClock())
    await store.close()


async def go(
    stream: Memory, library: Library, mind: FakeModel, how: Strategy = "rewoo", plan: Plan | None = None, **more: Any
) -> Solution:
    planner = Planner(model=mind, tools=[library.tool], how=how, memory=stream, **more)
    return await planner.solve("t", plan, run="r")


def labels(mind: FakeModel) -> list[str]:
    return [each.prompt.label() for each in mind.asked]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("how", ["rewoo", "plan-execute"])
def test_a_killed_run_keeps_its_revision_count_and_bill(how: Strategy, ends: bool) -> None:
    found = measure(how, ends, every=5)
    assert found.pop("calls_of_models_more") <= found["moments"]
    assert found["moments"] >= 4 and set(found.values()) == {found["moments"]}, found


@pytest.mark.parametrize("how", ["rewoo", "plan-execute"])
async def test_a_run_resumes_during_replanning(how: Strategy, stream: Memory) -> None:
    library = Library()
    with pytest.raises(ModelError):
        await go(stream, library, model(make_plan=PLAN, answer_from_evidence="MISSING E2", mend_plan=crash), how)
    mind = model(mend_plan=MENDED, answer_from_evidence="done")
    solution = await go(stream, library, mind, how)
    assert labels(mind) == ["mend_plan", "answer_from_evidence"] and solution.answer == "done"
    assert "E2: failed: the tool returned an empty result" in mind.asked[0].messages[-1].text
    assert library.asked_in_turn == [{"a", "bad"}, "b"]


async def test_a_revised_given_plan_stays_revised_on_resume(stream: Memory) -> None:
    library, told = Library(), RecordingWatcher()
    plan = read(PLAN, [library.tool.spec]).plan.model_copy(update={"task": "t"})
    first = model(answer_from_evidence=["MISSING E2", crash], mend_plan=MENDED)
    with pytest.raises(ModelError):
        await go(stream, library, first, plan=plan)
    solution = await go(stream, library, model(answer_from_evidence="done"), plan=plan, watchers=[told])
    assert solution.answer == "done" and library.asked_in_turn == [{"a", "bad"}, "b"] and not told.plans
    assert solution.plan.step("E2").arguments == {"query": "b"}


async def test_a_resumed_run_keeps_its_spending(stream: Memory) -> None:
    library = Library()
    first = model(make_plan=PLAN, answer_from_evidence=["MISSING E2", crash], mend_plan=MENDED)
    with pytest.raises(ModelError):
        await go(stream, library, first)
    begun = await read_run(stream, "r")
    assert begun and (begun.spent.model_calls, begun.spent.tool_calls) == (3, 3) and begun.spent.tokens > 0
    stopped = await go(stream, library, model(), budget=Budget(calls=3))
    assert "the limit of 3 calls is reached" in stopped.stopped and not stopped.answer
    stopped = await go(stream, library, model(), budget=Budget(tokens=begun.spent.tokens))
    assert "tokens is reached" in stopped.stopped
    done = await go(stream, library, model(answer_from_evidence="done"), budget=Budget(calls=4))
    assert done.answer == "done" and (done.spent.model_calls, done.spent.tool_calls) == (4, 3)
    again = await go(stream, library, model())
    assert (again.spent.model_calls, again.spent.tokens) == (4, done.spent.tokens)


async def test_a_shared_budget_counts_a_resumed_run_once(stream: Memory) -> None:
    library, budget = Library(), Budget(calls=9)
    with pytest.raises(ModelError):
        await go(stream, library, model(make_plan=PLAN, answer_from_evidence=crash), budget=budget)
    spent = budget.spent_calls
    await go(stream, library, model(answer_from_evidence="done"), budget=budget)
    assert spent == 2 and budget.spent_calls == 3


async def test_a_run_without_a_plan_is_planned_again(stream: Memory) -> None:
    library = Library()
    solution = await go(stream, library, model(make_plan="I cannot."))
    assert solution.stopped == "the reply of the planner has no step of a plan: I cannot."
    solution = await go(stream, library, model(make_plan="#E1 = look[a]", answer_from_evidence="done"))
    assert solution.answer == "done" and library.asked == ["a"]
