"""ReWOO's format as people and models write it, including text that published parsers fail on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import spec
from pydantic import JsonValue

from mindstream.planning.formats.read import open_reader, read, read_other
from mindstream.planning.formats.rewoo import write_plan

SEARCH, LLM = spec("Search", query={"type": "string"}), spec("LLM", input={"type": "string"})
ROUND = spec("Round", places={"type": "integer"}, number={"type": "number"}, unit={"type": "string"})
FLAT = spec("Flat", number={"type": "number"})
CONVERT = spec("Convert", value={"type": "number"}, unit={"type": "string"})
TOOLS = (SEARCH, LLM, ROUND, FLAT, CONVERT)
E1: JsonValue = {"$ref": "E1"}


def inputs(text: str) -> dict[str, JsonValue]:
    return {step.id: step.arguments.get("input") for step in read(text).plan.steps}


# Text that published parsers fail on.


@pytest.mark.parametrize("line", ["#", "#E1", "#E1 =", "#E1 = Tool", "#E1 = [x]"])
def test_a_malformed_line_is_noted_and_the_rest_parsed(line: str) -> None:
    found = read(f"Plan: a\n{line}\n#E2 = LLM[y]\n")
    assert [step.id for step in found.plan.steps] == ["E2"]
    assert len(found.notes) == 1 and found.notes[0].startswith("line 2")


def test_a_colon_or_nothing_can_replace_the_equals_sign() -> None:
    assert inputs("#E1: Tool[x]\n#E2 Tool[y]\n") == {"E1": "x", "E2": "y"}


def test_several_steps_on_one_line_are_parsed() -> None:
    found = read("Plan: a #E1 = A[x] Plan: b #E2 = B[#E1], #E3 = C[#E2 [1]] and so on").plan.steps
    assert [(step.id, step.tool, step.why) for step in found] == [("E1", "A", "a"), ("E2", "B", "b"), ("E3", "C", "b")]
    assert found[2].arguments == {"input": {"$text": [{"$ref": "E2"}, " [1]"]}}


def test_ids_with_a_common_prefix_are_distinguished() -> None:
    assert inputs("#E13 = LLM[#E1 and #E12]") == {"E13": {"$text": [E1, " and ", {"$ref": "E12"}]}}


def test_nested_brackets_are_parsed() -> None:
    assert inputs("#E1 = LLM[What is a[0] in [1, [2]]?]\n#E2 = LLM[is 0] an array?]\n#E3 = LLM[a \"[\" b]\n") == {
        "E1": "What is a[0] in [1, [2]]?", "E2": "is 0] an array?", "E3": 'a "[" b',
    }  # fmt: skip


def test_a_repeated_step_is_dropped_and_a_conflicting_one_kept() -> None:
    assert len(read("#E1 = A[x]\n#E1 = A[x]\n").plan.steps) == 1
    assert len(read("#E1 = A[x]\n#E1 = B[x]\n").plan.steps) == 2


# Other notations.


def test_markdown_around_lines_is_ignored() -> None:
    text = "### Plan\n1. **Plan:** do it\n   - **#E1** = `Search[x]`\n```\n**Plan 2:** then\n> `#E2 = LLM[#E1]`\n```\n"
    found = read(text, TOOLS).plan.steps
    assert [(step.id, step.why, step.arguments) for step in found] == [
        ("E1", "do it", {"query": "x"}), ("E2", "then", {"input": E1}),
    ]  # fmt: skip


def test_full_width_characters_and_chinese_are_parsed() -> None:
    found = read("问题：首都？\n计划：搜索首都\n＃E1 ＝ 搜索［法国的首都］\n#E2 = LLM[#E1有多少人？]\n")
    assert found.plan.task == "首都？"
    assert next((step.why, step.arguments["input"]) for step in found.plan.steps) == ("搜索首都", "法国的首都")
    assert found.plan.steps[1].arguments == {"input": {"$text": [E1, "有多少人？"]}}


def test_an_input_can_span_lines() -> None:
    found = inputs("#E2 = LLM[Given:\n#E1\n\nanswer [in\nwords]]\nPlan: x\n#E3 = LLM[y]\n")
    assert found == {"E2": {"$text": ["Given:\n", E1, "\n\nanswer [in\nwords]"]}, "E3": "y"}


def test_an_unclosed_bracket_ends_with_its_line() -> None:
    found = read("#E1 = LLM[x\nPlan: b\n#E2 = LLM[y #E3 = LLM[z]\n#E4 = LLM[cut of")
    assert [step.arguments["input"] for step in found.plan.steps] == ["x", "y", "z", "cut of"]
    assert sum("not closed" in note for note in found.notes) == 3


def test_prose_between_steps_is_noted() -> None:
    found = read("Sure! Here goes.\nPlan: a\n#E1 = LLM[x]\nThe colour #E1AD01 and #E12345 are none.\n")
    assert [step.id for step in found.plan.steps] == ["E1"]
    assert [note.partition(":")[0] for note in found.notes] == ["line 1", "line 4"]
    assert read("#E2 = LLM[paint it #E1AD01]").plan.steps[0].needs == ()


def test_another_question_ends_the_plan() -> None:
    found = read("Question: first?\nPlan: a\n#E1 = LLM[x]\n\nQuestion: second?\nPlan: b\n#E1 = LLM[y]\n")
    assert (found.plan.task, len(found.plan.steps)) == ("first?", 1)
    assert "a second question" in found.notes[0]


def test_steps_are_emitted_when_their_line_is_complete() -> None:
    reader = open_reader("rewoo", TOOLS)
    assert reader.feed("Plan: a\n#E1 = Sea") == []
    assert reader.feed("rch[x]") == []
    assert [step.id for step in reader.feed("\nPlan: b")] == ["E1"]
    assert [step.id for step in reader.feed("\n#E2 = LLM[y")] == []
    assert [step.id for step in reader.close()] == ["E2"]


# Inputs.


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("Search[Oslo, Norway]", {"query": "Oslo, Norway"}),
        ("Search[]", {}),
        ("Round[km]", {"unit": "km"}),  # the one required text
        ('Round[{"number": "#E1", "unit": "in #E1"}]', {"number": E1, "unit": {"$text": ["in ", E1]}}),
        ("Round[{'number': #E1, places: 2,}]", {"number": E1, "places": 2}),
        ('Round[number=#E1, places=2, unit="a, b=c"]', {"number": E1, "places": 2, "unit": "a, b=c"}),
        ('Convert[#E1, "km"]', {"value": E1, "unit": "km"}),  # as many as it needs, in order
        ("Convert[10, unit=km]", {"value": 10, "unit": "km"}),
        ("Convert[10, km, 2]", {"unit": "10, km, 2"}),  # more than it accepts
        ("LLM[x = 3, y = 4]", {"input": "x = 3, y = 4"}),
        ("Flat[-2.5]", {"number": -2.5}),
        ('LLM[{"a": "]"} and so on]', {"input": '{"a": "]"} and so on'}),
        ('Unknown[{"a": "] #E1", "b": {"$text": ["#E1"]}}]', {"a": {"$text": ["] ", E1]}, "b": "#E1"}),
        ('LLM[{"$ref": "E1", "path": ["price"]}]', {"input": {"$ref": "E1", "path": ["price"]}}),
    ],
)
def test_an_input_becomes_the_tools_arguments(call: str, arguments: JsonValue) -> None:
    (step,) = read(f"#E2 = {call}\n", TOOLS).plan.steps
    assert step.arguments == arguments


# Printing.


def test_a_plan_is_printed_as_the_authors_write_it() -> None:
    text = "Question: Who?\nPlan: look\n#E1 = Search[x, y]\nPlan: say\n#E2 after #E1 = LLM[Of #E1?]\n"
    plan = read(text, TOOLS).plan
    assert write_plan(plan, TOOLS) == text
    assert write_plan(plan).splitlines()[2] == '#E1 = Search[{"query": "x, y"}]'


# Forms that models use next to the published one.

WEB = spec("web_search", query={"type": "string"}, k={"type": "integer"})
REAL = (WEB, LLM)


@pytest.mark.parametrize(
    ("given", "query"),
    [
        ('"best pizza"', "best pizza"),
        ("'what's on'", "what's on"),
        ("“best pizza”", "best pizza"),
        ("「最好」", "最好"),
        ("``best``", "best"),
        ('"""best"""', "best"),
        ("„beste“", "beste"),
        ('"say \\"hi\\""', 'say "hi"'),
        ('"Harry Potter" author', '"Harry Potter" author'),
        ('"a" or "b"', '"a" or "b"'),
        ('query="best pizza"', "best pizza"),
        ("query: best pizza", "best pizza"),
        ('"query": "best pizza"', "best pizza"),
        ('{"query": "best [1] pizza"}', "best [1] pizza"),
        ("5'", "5'"),
    ],
)
def test_quotes_around_a_whole_input_are_removed(given: str, query: str) -> None:
    assert read(f"#E1 = web_search[{given}]", REAL).plan.steps[0].arguments == {"query": query}


@pytest.mark.parametrize(
    "line",
    [
        "#e1 = Web Search[pizza]",
        "# E1 = web-search[pizza]",
        "E1: WEB_SEARCH[pizza]",
        "**#E1** := `web_search`[pizza]",
        "＃Ｅ１＝web_search［pizza］",
        "#E1 -> web_search[pizza]",
        "#E1 ← web_search[pizza]",
        "{#E1} = web_search[pizza]",
        "#E1 = web_search(pizza)",
        '#E1 = web_search(query="pizza")',
        "#E1 = web_search（pizza）",
        "#E1 = web_search: pizza",
        '#E1 = web_search "pizza"',
        '#E1 = web_search {"query": "pizza"}',
        "#E1 = <web_search>pizza</web_search>",
        "web_search[pizza] -> #E1",
        "web_search(pizza) → #E1",
        "1. web_search[pizza]",
        "Step 1: Web Search[pizza] to begin with",
        "- 1) `web_search`[pizza]",
        "```\n#E1 = web_search[pizza]\n```",
        "#E1 = web_search[pizza",
        "#E1 = web_search(pizza) and then we see",
    ],
)
def test_steps_in_other_notations_are_parsed(line: str) -> None:
    (step,) = read(line, REAL).plan.steps
    assert (step.id, step.tool, step.arguments) == ("E1", "web_search", {"query": "pizza"})


@pytest.mark.parametrize(
    "line",
    [
        "#E1 = sing(pizza)",  # no such tool
        "#E1 = LLM(2+3)*4",  # the following lines belong to it
        "We could use web_search(pizza) here",
        "Then E1: web_search(pizza)",
        "The form is E1 = web_search[…], they say",
        "1. First look at web_search[1] in the list",
    ],
)
def test_lines_similar_to_a_step_are_not_steps(line: str) -> None:
    found = read(line, REAL)
    assert not found.plan.steps and found.notes


@pytest.mark.parametrize(
    "form", ["#E1", "{#E1}", "{{#E1}}", "${E1}", "$E1", "[#E1]", "<#E1>", "# E1", "＃E1", "#e1", "{E1}"]
)
def test_all_forms_of_a_reference_are_parsed(form: str) -> None:
    (step,) = read(f"#E2 = web_search[{form}]", REAL).plan.steps
    assert step.arguments == {"query": E1}
    (step,) = read(f"#E2 = web_search[in {form}. And #E10]", REAL).plan.steps
    assert step.arguments == {"query": {"$text": ["in ", E1, ". And ", {"$ref": "E10"}]}}


JSON_STEPS = [
    '[{"tool": "web_search", "input": "pizza"}, {"tool": "LLM", "input": "Of #E1"}]',
    '{"plan": [{"step": 1, "action": "Web Search", "action_input": {"query": "pizza"}},'
    ' {"step": 2, "action": "LLM", "action_input": "Of ${E1}"}]}',
    'Here it is:\n```json\n{"steps": [{"id": "#E1", "function": {"name": "web_search", "arguments": {}}},'
    ' {"id": "step_2", "name": "llm", "args": {"input": "Of {#E1}"}}]}\n```',
    '1. web_search("pizza")\n2. LLM("Of $1")\n3. join()<END_OF_PLAN>',
]


@pytest.mark.parametrize("text", JSON_STEPS)
def test_json_plans_and_native_calls_are_parsed(text: str) -> None:
    plan = read_other(text, REAL)
    assert plan and [(step.id, step.tool) for step in plan.steps] == [("E1", "web_search"), ("E2", "LLM")]
    assert plan.steps[1].arguments == {"input": {"$text": ["Of ", E1]}}
    assert read_other(text.replace("web_search", "sing").replace("Web Search", "sing"), REAL) is None


# Other names of steps, Markdown, and tools with more around their names.


@pytest.mark.parametrize(
    ("text", "second"),
    [
        ("#E01 = LLM[x]\n#E02 = LLM[#E01]", "E2"),
        ("#S1 = LLM[x]\n#S2 = LLM[#S1]", "E2"),
        ("Plan: a\n#Evidence1 = LLM[x]\nPlan: b\n#Evidence2 = LLM[#Evidence1]", "E2"),
        ("- #E_1: LLM[x]\n- #E_2: LLM[#E_1]", "E2"),
        ("1. #E-1 = LLM[x]\n2. #E-2 = LLM[#E-1]", "E2"),
        ("#E 1 = LLM[x]\n#E 2 = LLM[#E 1]", "E2"),
        ("#step1 = LLM[x]\n#step2 = LLM[#step1]", "E2"),
        ("\\#E1 = LLM[x]\n\\#E2 = LLM\\[\\#E1\\]", "E2"),
        ("**#E1** = LLM[x]\n**#E2** = LLM[**#E1**]", "E2"),
        ("`#E1` = LLM[x]\n`#E2` = LLM[`#E1`]", "E2"),
        ("#E1 = functions.LLM[x]\n#E2 = @LLM[#E1]", "E2"),
        ('#E1 = "LLM"[x]\n#E2 = `LLM`[[#E1]]', "E2"),
        ("#E1 = LLM{x}\n#E2 = LLM{#E1}", "E2"),
        ("\ufeff#E1 = \u200bLLM[x]\n#E2\u200b = LLM[#E1]", "E2"),
    ],
)
def test_other_step_names_are_parsed(text: str, second: str) -> None:
    steps = read(text, TOOLS).plan.steps
    assert [(step.id, step.tool) for step in steps] == [("E1", "LLM"), (second, "LLM")]
    assert [step.arguments["input"] for step in steps] == ["x", E1]


def test_steps_numbered_from_zero_are_renumbered() -> None:
    steps = read("#E0 = LLM[x]\n#E1 = LLM[#E0]\n#E2 = LLM[#E1]", TOOLS).plan.steps
    assert [(step.id, step.needs) for step in steps] == [("E1", ()), ("E2", ("E1",)), ("E3", ("E2",))]


@pytest.mark.parametrize(
    "text",
    ["Samsung #S24 prices", "see https://x.org/page#E1 there", "issue #Step1", "#E1st place", "tag #E1_a", "2**#E1**2"],
)
def test_other_punctuation_in_an_input_is_kept(text: str) -> None:
    given = read(f"#E1 = LLM[x]\n#E2 = LLM[{text}]", TOOLS).plan.steps[1].arguments["input"]
    assert given == (text if "**" not in text else {"$text": ["2**", E1, "**2"]})


@pytest.mark.parametrize(
    "text",
    [
        '{"E1": {"tool": "LLM", "input": "x"}, "E2": {"tool": "LLM", "input": "#E1"}}',
        '{"plan": {"steps": [{"tool": "LLM", "args": {"input": "x"}}, {"tool": "LLM", "args": {"input": "#E1"}}]}}',
        '{"id": 1, "tool": "LLM", "input": "x"}\n{"id": 2, "tool": "LLM", "input": "#E1"}',
        '[{"toolName": "LLM", "toolInput": "x"}, {"Tool": "LLM", "Action Input": "#E1"}]',
        '<tool_call>{"name": "LLM", "arguments": {"input": "x"}}</tool_call>\n'
        '<tool_call>{"name": "LLM", "arguments": "{\\"input\\": \\"#E1\\"}"}</tool_call>',
    ],
)
def test_several_json_plan_shapes_are_parsed(text: str) -> None:
    plan = read_other(text, TOOLS)
    assert plan is not None
    assert [(step.id, step.arguments) for step in plan.steps] == [("E1", {"input": "x"}), ("E2", {"input": E1})]


PIECES = (
    *(
        "Plan: ",
        "Plan:",
        "#E1 = ",
        "#E12 = ",
        "#e2 = ",
        "LLM",
        "Search",
        "LLM[",
        "[",
        "]",
        "] ",
        "x",
        " 1",
        "E3",
        "#E1",
    ),
    *('{"input": "#E1"}', '"quoted"', "a=b", " -> ", "Step 1. ", "**", ":", "\t"),
)


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), max_size=4))
def test_plain_lines_are_read_as_any_others(lines: list[str]) -> None:
    plain = read("\n".join(lines), TOOLS)
    general = (f"{line}\u200b" if line else line for line in lines)  # a sign without width takes the general path
    other = read("\n".join(general), TOOLS)
    assert plain.plan == other.plan
    assert [note.replace("\u200b", "") for note in plain.notes] == [note.replace("\u200b", "") for note in other.notes]
