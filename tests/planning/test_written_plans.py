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
from mindstream.planning.estimate import estimate
from mindstream.planning.exemplars import choose_exemplars, read_exemplars, shipped_exemplars, to_example
from mindstream.planning.formats.read import read, read_any, read_json_plan, read_other
from mindstream.planning.journal import read_run, read_runs
from mindstream.planning.plan import check
from mindstream.planning.planner import Planner, planner_tool
from mindstream.planning.run import plan_task
from mindstream.tools.call import call_tool
from mindstream.tools.named import named_tools
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
        await Planner(model=FakeModel({}), tools=[look], memory=stream).solve("t", first, run="r")
    assert (begun := await read_run(stream, "r")) and begun.plan == first and sorted(calls) == ["a", "b"]
    second = first.edited("E2", arguments={"query": "c"})
    mind = FakeModel({"answer_from_evidence": ["done"]})
    solution = await Planner(model=mind, tools=[look], memory=stream).solve("t", second, run="r")
    assert calls[2:] == ["c"] and solution.evidence["E2"].text == "found c"
    mind = FakeModel({"answer_from_evidence": ["x"]})
    await Planner(model=mind, tools=[look], memory=stream).solve("u", second, run="s")
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


ADD_AND_TRIPLE = [
    '{"steps": [{"id": "sum", "tool": "calculator", "input": "2+2"},'
    ' {"id": "all", "tool": "calculator", "input": "{{sum}} * 3"}]}',
    '{"steps": [{"id": "step1", "tool": "calculator", "input": "2+2"},'
    ' {"id": "step2", "tool": "calculator", "input": "$step1 * 3"}]}',
    '[{"id": "a", "tool": "calculator", "input": "2+2"},'
    ' {"id": "b", "tool": "calculator", "input": "${a.output} * 3", "depends_on": ["a"]}]',
    '{"tool_calls": [{"id": "call_a", "type": "function", "function":'
    ' {"name": "calculator", "arguments": "{\\"expression\\": \\"2+2\\"}"}},'
    ' {"id": "call_b", "type": "function", "function":'
    ' {"name": "calculator", "arguments": "{\\"expression\\": \\"<call_a> * 3\\"}"}}]}',
    'I begin:\n```json\n{"steps": [\n```\nAgain:\n```json'
    '\n[{"tool": "calculator", "input": "2+2"},'
    ' {"tool": "calculator", "input": "#E1 * 3"}]\n```',
    'steps:\n  - id: E1\n    tool: calculator\n    input: "2+2"\n  - id: E2\n    tool: calculator\n    input: #E1 * 3',
    "```yaml\n- tool: calculator\n  input: 2+2\n- tool: calculator\n  input: '#E1 * 3'\n```",
    "| step | tool | input |\n|---|---|---|\n| #E1 | calculator | 2+2 |\n| E2 | **calculator** | #E1 * 3 |",
    "Thought: first\nAction: calculator[2+2]\nThought: then\nAction: calculator[#E1 * 3]",
    "E1 = calculator[2+2]\nE2 = calculator[E1 * 3]",
    'E1 = calculator("2+2")\nE2 = calculator(f"{E1} * 3")',
    "#E1 = calculator[2+2]\n#E2 = calculator[#E1.result * 3]",
    "#E1 = Tool: calculator, Input: 2+2\n#E2 = Tool: calculator; Tool Input: #E1 * 3",
    '#E1 = calculator[["2+2"]]\n#E2 = calculator[["#E1 * 3"]]',
    "Step 1 - calculator[2+2]\nStep 2 – calculator[#E1 * 3]",
    '{"steps": [{"id": 1, "tool": "calculator", "input": "2+2"}, {"id": 2, "tool": "calculator", "input": "$1 * 3"}]}',
    '[{"tool": "calculator", "args": ["2+2"]}, {"tool": "calculator", "args": ["${1} * 3"]}]',
    '{"steps": [{"id": "1", "tool": "calculator", "input": "2+2"},'
    ' {"id": "2", "tool": "calculator", "input": "{{steps.1.output}} * 3", "depends_on": "1"}]}',
    '{"steps": [{"tool": "calculator", "input": "2+2", "output_variable": "sum"},'
    ' {"tool": "calculator", "input": "{sum} * 3"}]}',
    '{"steps": [{"id": 1, "tool": "calculator", "input": "2+2"},'
    ' {"id": 2, "tool": "calculator", "input": "<result of step 1> * 3"}]}',
    '{"tasks": [{"task_id": "a", "tool": "calculator", "args": {"expression": "2+2"}},'
    ' {"task_id": "b", "tool": "calculator", "args": {"expression": "{a} * 3"}}]}',
    '{"properties": {"steps": {"type": "array", "items": [{"tool": "calculator", "input": "2+2"},'
    ' {"tool": "calculator", "input": "#E1 * 3"}]}}}',
    json.dumps(
        json.dumps({"result": {"plan": [{"tool": "calculator", "input": each} for each in ("2+2", "#E1 * 3")]}})
    ),
    '{"steps": [{"title": "A", "steps": [{"tool": "calculator", "input": "2+2"}]},'
    ' {"title": "B", "steps": [{"tool": "calculator", "input": "#E1 * 3"}]}]}',
    '{"#E1": "calculator[2+2]", "#E2": "calculator[#E1 * 3]"}',
    '{"步骤": [{"工具": "calculator", "输入": "2+2"}, {"工具": "calculator", "输入": "#E1 * 3"}]}',
    '[[steps]]\ntool = "calculator"\ninput = "2+2"\n[[steps]]\ntool = "calculator"\ninput = "#E1 * 3"',
    '1. calculator(expression="2+2")\n2. calculator(expression="$1 * 3")\n3. finish()',
    "Step 1: Add\nTool: calculator\nInput: 2+2\nStep 2: Triple\nTool: calculator\nInput: #E1 * 3",
    "Thought: a\nAction: calculator\nAction Input: 2+2\nThought: b\nAction: calculator\nAction Input: #E1 * 3",
    "1. calculator: 2+2\n2. calculator: #E1 * 3",
    "① calculator[2+2]\n② calculator[#E1 * 3]",
    "a) calculator[2+2]\nb) calculator[#E1 * 3]",
    'total = calculator("2+2")\nresult = calculator(f"{total} * 3")',
    "| # | Plan | Tool | Input |\n|---|---|---|---|\n| 1 | Add | calculator | 2+2 |\n| 2 | So | calculator | #E1 * 3 |",
    "| Step | Tool | Input | Why |\n|--|--|--|--|\n| 1 | calculator | `2+2` | a |\n| 2 | calculator | `#E1 * 3` | b |",
    '$1 = calculator("2+2")\n$2 = calculator("$1 * 3")',
    "Plan: add\n$1 = calculator[2+2]\nPlan: triple\n$2 = calculator[${1} * 3]",
    "Plan: add\nEvidence1 = calculator[2+2]\nPlan: triple\nEvidence2 = calculator[Evidence1 * 3]",
    "Evidence 1: calculator[2+2]\nEvidence 2: calculator[Evidence 1 * 3]",
    '["#E1 = calculator[2+2]", "#E2 = calculator[#E1 * 3]"]',
    '[{"plan": "add", "step": "#E1 = calculator[2+2]"}, {"plan": "triple", "step": "#E2 = calculator[#E1 * 3]"}]',
    '{"plan": ["Plan: add", "#E1 = calculator[\\"2+2\\"]", "Plan: triple", "#E2 = calculator[\\"#E1 * 3\\"]"]}',
    '[{"tool": "calculator", "expression": "2+2"}, {"tool": "calculator", "expression": "#E1 * 3"}]',
    "- tool: calculator\n  why: first: the sum\n  input: 2+2\n- tool: calculator\n  expression: (#E1) * 3",
    "plan:\n- tool: calculator\n  args:\n    expression: 2+2\n- tool: calculator\n  args:\n    expression: 3 * #E1",
    "Plan: x\n#E١ = calculator[2+2]\nPlan: y\n#E٢ = calculator[#E١ * 3]",
    '۱. calculator("2+2")\n۲. calculator("$۱ * 3")',
    '[{"id": "E१", "tool": "calculator", "input": "2+2"}, {"id": "E२", "tool": "calculator", "input": "#E१ * 3"}]',
    '<plan><step id="1"><tool>calculator</tool><input>2+2</input></step>'
    '<step id="2"><tool>calculator</tool>\n<input>#E1 * 3</input></step></plan>',
]


@pytest.mark.parametrize("text", ADD_AND_TRIPLE)
async def test_plans_in_the_forms_of_many_planners_are_run(text: str) -> None:
    async with named_tools(["calculator"]) as tools:
        model = FakeModel({"make_plan": [text], "answer_from_evidence": ["12"]})
        solution = await Planner(model=model, tools=tools).solve("Add and triple.")
    assert [each.text for each in solution.evidence.values()] == ["4", "12"]


@pytest.mark.parametrize(
    ("line", "query"),
    [
        ("#E1 = search[cell E1 of #E2]", {"$text": ["cell E1 of ", {"$ref": "E2"}]}),
        ("#E1 = search[#E2.results]", {"$text": [{"$ref": "E2"}, ".results"]}),
        ("#E1 = search[#E2.text.txt]", {"$text": [{"$ref": "E2"}, ".text.txt"]}),
        ("#E1 = search[f is a letter]", "f is a letter"),
        ('"#E1 = search[\\"a\\" or \\"b\\"]"', '"a" or "b"'),
        ('#E1 = search[the "quoted [x]" text]', 'the "quoted [x]" text'),
    ],
)
def test_words_that_only_look_like_references_are_kept(line: str, query: object) -> None:
    (step,) = read(line, [search.spec]).plan.steps
    assert step.arguments == {"query": query}


@pytest.mark.parametrize("query", ["costs $2.50", "costs $1,000", "costs $1 million", "the Evidence10 of #2", "US$1"])
def test_amounts_and_other_words_are_no_steps_named_so(query: str) -> None:
    plan = read_other(f"$1 = search(x)\n$2 = search({query})\nEvidence1 is text", [search.spec])
    assert plan and plan.steps[1].arguments == {"query": query}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"input": "a #E9", "id": 1}, "costs $1"),
        ({"input": "a"}, "costs $1,000 or $1.50 or $2"),
        ({"input": "a", "result": "The number"}, "{x} and {{y}}"),
        ({"input": "a", "output": "x"}, "x and xylophone"),
        ({"input": "a", "id": 1}, "#1 song"),
    ],
)
def test_other_words_in_json_plans_are_no_references(first: dict[str, object], second: str) -> None:
    steps = [{"tool": "search", **first}, {"tool": "search", **first, "input": second, "id": 2, "output": "z"}]
    plan = read_json_plan(json.dumps(steps), [search.spec])
    assert plan.steps[1].arguments == {"query": second}


@pytest.mark.parametrize(
    "text",
    [
        "Note: this\n1. Remember(me)\n2. search(it)",
        "1. sing[a]\n2. search[b]",
        "Tool: none\nInput: x",
        '{"name": "Bob", "age": 3}',
        '{"properties": {"query": {"type": "string"}}}',
        "x = sing(a)",
    ],
)
def test_a_plan_with_unknown_tools_is_not_read_in_part(text: str) -> None:
    assert read_other(text, [search.spec]) is None


def test_yaml_with_aliases_is_not_read() -> None:
    bomb = "- tool: calculator\n  input: &a [x]\n" + "".join(
        f"- tool: calculator\n  input: [*a, *a] # {n}\n" for n in range(9)
    )
    with pytest.raises(InputError):
        read_json_plan(bomb)
