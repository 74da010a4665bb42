"""Plans from files, exemplars from files, cost estimates, a planner as a tool."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mindstream.clock import ManualClock
from mindstream.errors import InputError, ModelRefused
from mindstream.memory.memory import Memory
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.models.embedders.embedder import embedder
from mindstream.models.model import Call, ToolSpec
from mindstream.models.rules import FakeModel
from mindstream.planning.check import check
from mindstream.planning.estimate import estimate
from mindstream.planning.exemplars import choose_exemplars, read_exemplars, shipped_exemplars, to_example
from mindstream.planning.formats.read import read, read_any
from mindstream.planning.journal import read_run, read_runs
from mindstream.planning.planner import Planner, planner_tool
from mindstream.planning.run import plan_task
from mindstream.tools.call import call_tool
from mindstream.tools.tool import Traits, tool

REWOO = "Plan: find it.\n#E1 = search[the capital of Peru]\n#E2 = search[people in #E1]\n"
COMPILER = '1. search("the capital of Peru")\n2. search("people in $1")\n3. join()\n'
NUMBERED = "1. Find the capital of Peru\n2. Find how many people live there\n"


@tool
def search(query: str) -> str:
    """Search."""
    return f"what is known of {query}"


@pytest.mark.parametrize("text", [REWOO, COMPILER, NUMBERED, read_any(REWOO, [search.spec]).plan.save()])
def test_plans_are_parsed_from_any_format(text: str) -> None:
    plan = read_any(text, [search.spec]).plan
    assert [step.id for step in plan.steps] == ["E1", "E2"] and plan.steps[1].needs == ("E1",)


@pytest.mark.parametrize(("text", "where"), [("hello\nyou", "line 1"), ('{"steps": 3}', "steps"), ("{\n]", "line 2")])
def test_an_invalid_plan_is_refused_with_its_line(text: str, where: str) -> None:
    with pytest.raises(InputError, match=where):
        read_any(text)


def test_exemplars_are_read_from_text_or_exported_plans() -> None:
    assert read_exemplars("Question: a\n#E1 = x[y]\n---\nQuestion: b\n") == ("Question: a\n#E1 = x[y]", "Question: b")
    plan = read_any("Question: how?\n" + REWOO, [search.spec]).plan
    exported = json.dumps(to_example(plan, [search.spec]))
    assert read_exemplars(f"{exported}\n\n{exported}\n")[1].startswith("Question: how?\nPlan: find it.\n#E1 = search[")
    with pytest.raises(InputError, match="line 2"):
        read_exemplars(f"{exported}\n{{}}")
    with pytest.raises(InputError, match="found 0"):
        read_exemplars("\n---\n")


ROLES = dict.fromkeys(("planner", "worker", "solver", "replanner"), "openai:gpt-5-mini")


def test_shipped_exemplars_are_valid_plans_for_the_available_tools(tmp_path: Path) -> None:
    arguments = {"LLM": "instruction", "web_search": "query"}
    tools = [ToolSpec(name, "", {"properties": {each: {}}, "required": [each]}) for name, each in arguments.items()]
    shown = choose_exemplars("shipped", tools)
    plans = [read(each, tools).plan for each in shown]
    assert [len(plan.steps) for plan in plans] == [2, 3, 2, 0], "a sum, a chain, a comparison, and none"
    assert all(plan.task and not check(plan, tools) for plan in plans[:3])
    assert {step.tool for plan in plans for step in plan.steps} == {"web_search", "LLM"}
    assert plans[1].steps[2].needs == ("E2",)
    assert shipped_exemplars(tools[1:]) == (shown[0], *shown[2:]) and shipped_exemplars(tools[:1]) == shown[3:]
    assert choose_exemplars("none", tools) == choose_exemplars("", tools) == ()
    (tmp_path / "mine.txt").write_text(shown[2])
    assert choose_exemplars(str(tmp_path / "mine.txt"), ()) == shown[2:3]


def test_an_estimate_depends_on_strategy_text_and_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none-needed-for-a-price")
    tools = [ToolSpec("search", "x " * 40, {})]
    rewoo, react = (estimate("Who?", how, tools, ROLES) for how in ("rewoo", "react"))
    assert rewoo.calls == 2 and react.calls == 5 and react.tokens > 2 * rewoo.tokens
    assert 0 < (rewoo.cost_usd or 0) < (react.cost_usd or 0) and "$0.0" in str(rewoo)
    plan = read_any("#E1 = LLM[a]\n#E2 = LLM[b #E1]", [ToolSpec("LLM", "", {})]).plan
    known = estimate("Who?", "rewoo", [ToolSpec("LLM", "", {})], ROLES, plan=plan)
    assert {each.role: each.calls for each in known.asked} == {"worker": 2, "solver": 1}
    assert estimate("Who?", "rewoo", tools, ROLES, ["long " * 900]).tokens > rewoo.tokens + 1_000


def test_rules_are_free_and_unknown_prices_are_reported() -> None:
    assert estimate("Who?", "rewoo", [], dict.fromkeys(ROLES, "rules")).calls == 0
    assert "price not known" in str(estimate("Who?", "rewoo", [], dict.fromkeys(ROLES, "http://127.0.0.1:9/v1#m")))


async def test_a_plan_can_be_written_without_being_run() -> None:
    told: list[str] = []
    mind = FakeModel({"make_plan": [REWOO]})
    plan = await plan_task("How many?", [search], mind, on_step=lambda step: told.append(step.id))
    assert plan.task == "How many?" and told == ["E1", "E2"]
    with pytest.raises(InputError, match="the reply of the planner has no step of a plan: I would rather not"):
        await plan_task("How many?", [search], FakeModel({"make_plan": ["I would rather not"]}))


async def test_a_given_plan_is_logged_and_a_changed_plan_reuses_valid_evidence(folder: Path) -> None:
    calls: list[str] = []

    @tool
    def look(query: str) -> str:
        """Look it up."""
        calls.append(query)
        return f"found {query}"

    store = SqliteStore(folder)
    stream = Memory(store, "ann", embedder("wordllama"), ManualClock(0.0))
    first = read_any("#E1 = look[a]\n#E2 = look[b]", [look.spec]).plan
    with pytest.raises(ModelRefused):  # the solver has no reply
        await Planner(models=FakeModel({}), tools=[look], memory=stream).solve("t", first, run="r")
    assert (begun := await read_run(stream, "r")) and begun.plan == first and sorted(calls) == ["a", "b"]
    second = first.edited("E2", arguments={"query": "c"})
    mind = FakeModel({"answer_from_evidence": ["done"]})
    solution = await Planner(models=mind, tools=[look], memory=stream).solve("t", second, run="r")
    assert calls[2:] == ["c"] and solution.evidence["E2"].text == "found c"
    mind = FakeModel({"answer_from_evidence": ["x"]})
    await Planner(models=mind, tools=[look], memory=stream).solve("u", second, run="s")
    assert [(run.task, run.answer) for run in (await read_runs(stream)).values()] == [("t", "done"), ("u", "x")]
    await store.close()


async def test_a_planner_can_be_used_as_a_tool() -> None:
    mind = FakeModel({"make_plan": [REWOO], "answer_from_evidence": ["Ten million."]})
    solver = planner_tool([replace(search, traits=Traits(untrusted=True))], mind)
    assert solver.spec.name == "solve_task" and "search" in solver.spec.description and solver.traits.untrusted
    found = await call_tool(Call("solve_task", '{"task": "How many people live in the capital of Peru?"}'), [solver])
    assert found.text.startswith("Ten million.") and "E2 search: what is known of people in" in found.text
    silent = planner_tool([search], FakeModel({"make_plan": ["no"]}))
    failed = await call_tool(Call("solve_task", '{"task": "How?"}'), [silent])
    assert failed.failed and "the reply of the planner has no step of a plan: no" in failed.text
