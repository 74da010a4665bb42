"""LLMCompiler's format, and numbered lists."""

from __future__ import annotations

import pytest
from plans import spec
from pydantic import JsonValue

from mindstream.planning.formats.read import read

SEARCH = spec("search", query={"type": "string"})
MATH = spec("math", problem={"type": "string"}, context={"type": "array"})
TOOLS = (SEARCH, MATH)
E1: JsonValue = {"$ref": "E1"}

PUBLISHED = """\
1. search("Mariana Trench")
2. search("Puerto Rico Trench")
3. math("absolute value of $1 - 20%?", ["$1"]
4. math("$2 * 1.2", ["$2"]
Thought: I can answer now.
5. join()<END_OF_PLAN>
6. search("after the end")
"""


def arguments(*lines: str) -> list[dict[str, JsonValue]]:
    return [step.arguments for step in read("\n".join(lines), TOOLS, "compiler").plan.steps]


def test_published_examples_with_missing_brackets_are_parsed() -> None:
    found = read(PUBLISHED, TOOLS, "compiler")
    assert [(step.id, step.tool, step.needs) for step in found.plan.steps] == [
        ("E1", "search", ()), ("E2", "search", ()), ("E3", "math", ("E1",)), ("E4", "math", ("E2",)),
    ]  # fmt: skip
    assert found.plan.steps[2].arguments == {
        "problem": {"$text": ["absolute value of ", E1, " - 20%?"]}, "context": [E1],
    }  # fmt: skip


@pytest.mark.parametrize("amount", ["$1 billion", "$1.50", "$1亿", "$12"])
def test_an_amount_of_money_is_not_a_reference(amount: str) -> None:
    assert arguments('1. search("x")', f'2. search("companies worth {amount}")')[1] == {
        "query": f"companies worth {amount}"
    }


@pytest.mark.parametrize(
    ("given", "pieces"),
    [("of $1", ["of ", E1]), ("of $1.", ["of ", E1, "."]), ("${1}000 x", [E1, "000 x"]), ("$1的人口", [E1, "的人口"])],
)
def test_a_reference_inside_a_text_is_parsed(given: str, pieces: list[JsonValue]) -> None:
    assert arguments('1. search("x")', f'2. search("{given}")')[1] == {"query": {"$text": pieces}}


@pytest.mark.parametrize("given", ['"$1"', "$1", "'${1}'", 'query="$1"', '{"query": "$1"}', '{"query": $1}'])
def test_an_argument_can_be_a_reference_alone(given: str) -> None:
    assert arguments('1. search("x")', f"2. search({given})")[1] == {"query": E1}


def test_a_reference_to_no_earlier_step_stays_text_with_a_note() -> None:
    found = read('1. search("$2")\n2. search("x")', TOOLS, "compiler")
    assert found.plan.steps[0].arguments == {"query": "$2"}
    assert "refers to no earlier step" in found.notes[0]


@pytest.mark.parametrize(
    ("given", "query"),
    [
        ('"the "best, greatest" film (2)"', 'the "best, greatest" film (2)'),
        ("what's new, here", "what's new, here"),
        ('"a \\"b\\" \\d"', 'a "b" \\d'),
    ],
)
def test_quotes_and_commas_in_a_text_are_kept(given: str, query: str) -> None:
    assert arguments(f"1. search({given})") == [{"query": query}]


def test_several_calls_on_one_line_are_parsed() -> None:
    assert arguments('1. search("x") 2. search("y" 3) search(z)') == [{"query": "x"}, {"query": "y"}, {"query": "z"}]


# Numbered lists.


def test_a_numbered_list_is_parsed_as_a_sequential_plan() -> None:
    found = read(
        "Here is it:\n1. Find the author\n   - of the book\n2) **Say** where #E1 was born\nDone.", format="numbered"
    )
    assert [(step.id, step.tool, step.needs) for step in found.plan.steps] == [
        ("E1", "LLM", ()),
        ("E2", "LLM", ("E1",)),
    ]
    assert found.plan.steps[0].arguments == {"input": "Find the author\n- of the book"}
    assert len(found.notes) == 2


@pytest.mark.parametrize(
    "text",
    [
        "1、搜索\n2、回答",
        "步骤1：搜索\n步骤2：回答",
        "**Step 1** - 搜索\n**Step 2** - 回答",
        "一、搜索\n二、回答",
    ],
)
def test_numbering_styles_of_lists_are_parsed(text: str) -> None:
    assert [(s.id, s.arguments["input"]) for s in read(text, format="numbered").plan.steps] == [
        ("E1", "搜索"),
        ("E2", "回答"),
    ]
