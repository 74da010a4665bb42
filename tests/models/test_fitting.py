"""Calls and typed replies in the forms in which models and servers send them."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from asking import Judge, Talk
from fake_endpoint import FakeEndpoint, Says, Streams
from pydantic import BaseModel

from mindstream import Models
from mindstream.errors import ReplyInvalid
from mindstream.models.fitting import fit, named_tool, read_object
from mindstream.models.model import ToolSpec
from mindstream.models.prompt import Prompt, act, ask

BOOK = ToolSpec(
    "book",
    "Book a table.",
    {
        "type": "object",
        "properties": {
            "place": {"type": "string"},
            "seats": {"type": "integer"},
            "inside": {"type": "boolean"},
            "guests": {"type": "array", "items": {"type": "string"}},
            "meal": {"enum": ["lunch", "dinner"]},
        },
        "required": ["place"],
    },
)
CLOCK = ToolSpec("clock", "Tell the time.", {"type": "object", "properties": {}})


@pytest.mark.parametrize(
    "text",
    [
        '{"place": "Bar", "seats": 2}',
        json.dumps(json.dumps({"place": "Bar", "seats": 2})),
        json.dumps(json.dumps(json.dumps({"place": "Bar", "seats": 2}))),
        '```json\n{"place": "Bar", "seats": 2}\n```',
        "{'place': 'Bar', 'seats': 2}",
        '{place: "Bar", seats: 2,}',
        '{"place": "Bar", /* two of us */ "seats": 2}',
        '{"place": "Bar", "seats": 2}}',
        '{"place": "Bar", "seats": 2}{"place": "Bar", "seats": 2}',
        '{}{"place": "Bar", "seats": 2}',
        'Arguments: {"place": "Bar", "seats": 2} done',
    ],
)
def test_one_json_object_is_read(text: str) -> None:
    assert read_object(text) == {"place": "Bar", "seats": 2}


@pytest.mark.parametrize("text", ["", " \n", "null", "None", "[]", '""', "{}", "undefined", '"null"', '"{}"'])
def test_missing_arguments_are_an_empty_object(text: str) -> None:
    assert read_object(text) == {}


@pytest.mark.parametrize(
    "text",
    ['{"place": "B', "{'place': 'B", '{"a": 1}{"a": 2}', "[1]", "7", "Bar", '{"a": NaN}', "{" * 5_000, "{'a': {1}}"],
)
def test_broken_or_ambiguous_json_is_invalid(text: str) -> None:
    with pytest.raises(ReplyInvalid):
        read_object(text)


def test_python_literals_and_raw_line_breaks_are_read() -> None:
    assert read_object("{'inside': True, 'seats': None, 'guests': ('a',)}") == {
        "inside": True, "seats": None, "guests": ["a"],
    }  # fmt: skip
    assert read_object('{"place": "two\nlines\t"}') == {"place": "two\nlines\t"}


@pytest.mark.parametrize(
    ("given", "fitted"),
    [
        ({"place": "Bar", "seats": "4"}, {"place": "Bar", "seats": 4}),
        ({"place": "Bar", "inside": "True"}, {"place": "Bar", "inside": True}),
        ({"place": "Bar", "guests": '["Ann", "Bo"]'}, {"place": "Bar", "guests": ["Ann", "Bo"]}),
        ({"place": "Bar", "guests": [7]}, {"place": "Bar", "guests": ["7"]}),
        ({"place": "Bar", "seats": None}, {"place": "Bar"}),
        ({"place": "Bar", "meal": "Dinner"}, {"place": "Bar", "meal": "dinner"}),
        ({"Place": "Bar", "seats": 2}, {"place": "Bar", "seats": 2}),
        ({"arguments": {"place": "Bar"}}, {"place": "Bar"}),
        ({"parameters": '{"place": "Bar"}'}, {"place": "Bar"}),
        ([{"place": "Bar"}], {"place": "Bar"}),
        ({"name": "book", "arguments": {"place": "Bar"}}, {"place": "Bar"}),
        ({"type": "function", "name": "book", "parameters": '{"place": "Bar"}'}, {"place": "Bar"}),
        ({"$schema": "x", "type": "object", "properties": {"place": "Bar"}}, {"place": "Bar"}),
        ({"place": "Bar", "meal": '"dinner"'}, {"place": "Bar", "meal": "dinner"}),
        ({"place": "Bar", "meal": " Dinner. "}, {"place": "Bar", "meal": "dinner"}),
        ({"place": "Bar", "meal": "Meal.DINNER"}, {"place": "Bar", "meal": "dinner"}),
    ],
)
def test_a_value_is_converted_to_its_schema(given: Any, fitted: Any) -> None:
    assert fit(given, BOOK.parameters) == fitted


SEATS = {"type": "integer"}
PARTY = {"type": "object", "properties": {"seats": SEATS}, "required": ["seats"]}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"party": {"$ref": "#/$defs/Party"}}, "$defs": {"Party": PARTY}},
        {"properties": {"party": {"$ref": "#/definitions/Party"}}, "definitions": {"Party": PARTY}},
        {"properties": {"party": {"allOf": [{"$ref": "#/$defs/Party"}], "title": "x"}}, "$defs": {"Party": PARTY}},
        {"properties": {"party": {"oneOf": [PARTY, {"type": "null"}]}}},
        {"properties": {"party": {**PARTY, "type": ["object", "null"]}}},
    ],
)
def test_an_object_that_is_given_as_text_is_converted_in_every_form_of_schema(schema: dict[str, Any]) -> None:
    assert fit({"party": '{"seats": 4}'}, {"type": "object", **schema}) == {"party": {"seats": 4}}
    assert fit({"party": "four"}, {"type": "object", **schema}) == {"party": "four"}


@pytest.mark.parametrize(
    "given",
    [
        {"seats": 4},
        {"place": "Bar", "seats": "four"},
        {"place": None},
        [{"place": 1}, {}],
        {"place": "Bar", "meal": "no dinner"},
        {"name": "book", "arguments": {"seats": 4}},
        {"title": "x", "properties": {"place": {"type": "string"}}},
        {"name": "Bar", "colour": "red", "arguments": {"place": "Bar"}},
    ],
)
def test_no_value_is_invented_to_fit_a_schema(given: Any) -> None:
    assert fit(given, BOOK.parameters) == given


@pytest.mark.parametrize(
    "name", ["Book", "functions.book", "functions.book:0", " book\n", "book<|channel|>json", '"book"']
)
def test_a_tool_is_found_by_the_name_variants_of_models(name: str) -> None:
    assert named_tool(name, [BOOK, CLOCK]) is BOOK
    assert named_tool(name.replace("ook", "ill"), [BOOK, CLOCK]) is None


def deltas(*each: Any, finish: str = "tool_calls") -> Streams:
    chunks = [{"choices": [{"index": 0, "delta": one}]} for one in each]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return Streams((*(f"data: {json.dumps(chunk)}" for chunk in chunks), "data: [DONE]"))


def call(index: int | None, id_: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    one = {"index": index, "id": id_, "function": {"name": name, "arguments": arguments}}
    return {"tool_calls": [{key: value for key, value in one.items() if value is not None}]}


@pytest.mark.parametrize(
    "all_of",
    [
        [call(0, "x", "book", '{"place": "A"}'), call(1, "x", "book", '{"place": "B"}')],
        [call(0, "x", "book", None), call(0, None, None, '{"place": "A"}'), call(1, "x", "book", '{"place": "B"}')],
        [call(None, "x", "book", '{"place": "A"}'), call(None, "x", "book", '{"place": "B"}')],
        [call(0, "x", "book", "{}"), call(0, None, None, '{"pla'), call(0, "x", None, 'ce": "A"}'),
         call(1, "x", "book", '{"pla'), call(1, "x", None, 'ce": "B"}')],
        [call(0, "x", "Book", "{'place': 'A'}"), call(1, "x", "functions.book", '{"place": "B"')
         | {"content": ""}, call(1, None, None, "}")],
    ],
)  # fmt: skip
async def test_calls_with_the_same_id_are_kept_apart(door: FakeEndpoint, all_of: Any) -> None:
    door.otherwise = deltas(*all_of)
    async with Models.named({"default": f"{door.url}#m"}, repair=0) as models:
        found = await act(models.of(""), Talk(), [BOOK, CLOCK])
    assert isinstance(found, tuple)
    assert [(each.tool, json.loads(each.arguments)) for each in found[1]] == [
        ("book", {"place": "A"}), ("book", {"place": "B"}),
    ]  # fmt: skip
    assert len({each.id for each in found[1]}) == 2


@pytest.mark.parametrize("arguments", ["null", " ", "[]", None, '"{}"'])
async def test_a_call_without_arguments_is_made(door: FakeEndpoint, arguments: Any) -> None:
    door.otherwise = deltas(call(0, "x", "clock", arguments))
    async with Models.named({"default": f"{door.url}#m"}, repair=0) as models:
        found = await act(models.of(""), Talk(), [BOOK, CLOCK])
    assert isinstance(found, tuple) and [(one.tool, one.arguments) for one in found[1]] == [("clock", "{}")]


@pytest.mark.parametrize(
    "reply",
    [
        Says('{"answer": {"score": 7}}'),
        Says('{"Score": 7}'),
        Says('[{"score": "7"}]'),
        Says('```\n{"properties": {"score": 7}}\n```'),
        Says(json.dumps('{"score": 7}')),
        deltas({"content": {"score": 7}}, finish="stop"),
        deltas(call(0, "x", "Grade", '{"score": 7}')),
    ],
)
async def test_a_typed_reply_is_read_in_every_wrapper(door: FakeEndpoint, reply: Any) -> None:
    door.otherwise = reply
    async with Models.named({"default": f"{door.url}#m"}, repair=0) as models:
        assert (await ask(models.of(""), Judge())).score == 7


class Mood(BaseModel):
    feels: Literal["Glad", "Sad"]
    why: str


class Feel(Prompt[Mood]):
    @classmethod
    def words(cls) -> str:
        return "# user\nHow? {{ schema }}"


@pytest.mark.parametrize("text", ['{"feels": "glad", "why": "sun"}', '{"Feels": "GLAD", "WHY": "sun"}'])
def test_letter_case_is_normalised_to_the_schema(text: str) -> None:
    assert Feel().parse(text) == Mood(feels="Glad", why="sun")
    with pytest.raises(ReplyInvalid, match="feels"):
        Feel().parse('{"feels": "angry", "why": "sun"}')
