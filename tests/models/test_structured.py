"""A reply is held to its schema by the endpoint where it can be; what an endpoint does not know it is asked once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asking import ADD, Grade, Judge, Talk, parts_of, talk
from fake_endpoint import Asked, Behaviour, FakeEndpoint, Says
from pydantic import BaseModel, Field, JsonValue, TypeAdapter

import mindstream
from mindstream.models.model import Request, Usage
from mindstream.models.prompt import ask
from mindstream.models.providers.provider import Provider
from mindstream.models.roles import Models
from mindstream.models.schema import bound_schema


def holds_to_schemas(asked: Asked) -> Behaviour:
    """An endpoint whose model babbles unless its reply is held to a schema."""
    return Says('{"score": 3}' if "response_format" in asked.body else "Three points, I would say.")


async def test_the_schema_is_sent_to_the_endpoint(door: FakeEndpoint) -> None:
    door.otherwise = holds_to_schemas
    async with Models.named({"default": f"{door.url}#any"}) as models:
        assert await ask(models.of(""), Judge()) == Grade(score=3)
    assert len(door.chats) == 1
    asked = door.chats[0].body
    assert asked["response_format"]["type"] == "json_schema"
    assert asked["response_format"]["json_schema"]["name"] == "judge"
    sent = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}
    assert asked["response_format"]["json_schema"]["schema"] == sent, "without titles, which cost tokens"
    assert '"score"' in asked["messages"][0]["content"], "small models need the schema in words, too"


async def test_free_text_and_calls_send_no_schema(door: FakeEndpoint, model: Provider) -> None:
    await parts_of(model, Request(Talk()))
    await parts_of(model, Request(Judge(), tools=(ADD,)))
    assert not any("response_format" in each.body for each in door.chats)


@pytest.mark.parametrize(
    "words",
    [
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
        "This response_format type is unavailable now",
        "Invalid schema for response_format 'judge': 'required' is required to be supplied",
        "body -> json_schema: extra fields not permitted",
        "failed to parse grammar",
    ],
)
async def test_an_endpoint_without_schema_support_is_asked_in_text_afterwards(door: FakeEndpoint, words: str) -> None:
    door.refuses["response_format"] = words
    door.otherwise = Says('{"score": 3}')
    async with Models.named({"default": f"{door.url}#any"}) as models:
        assert await ask(models.of(""), Judge()) == Grade(score=3)
        assert await ask(models.of(""), Judge()) == Grade(score=3)
    assert ["response_format" in each.body for each in door.chats] == [True, False, False]


# Tokens that were kept.


async def test_cached_tokens_are_reported_and_metered(door: FakeEndpoint) -> None:
    calls: list[Any] = []
    door.otherwise = Says("hi", usage=(100, 3), cached=80)
    async with Models.named({"default": f"{door.url}#any"}, on_call=calls.append) as models:
        assert (await parts_of(models.of(""), talk()))[-1] == Usage(100, 3, None, 80)
    assert calls[0].usage.cached_tokens == 80


# Schemas within limits: what a grammar holds a small model to.


class Item(BaseModel):
    title: str
    tags: list[str] = []
    kind: str | None = None


class Deep(BaseModel):
    items: list[Item] = Field(max_length=20)
    patch: dict[str, JsonValue] = {}
    words: str = Field("", max_length=6_000)
    count: int = 0
    share: float = Field(0.0, ge=0, le=1)


def longest(schema: dict[str, Any]) -> Any:
    """The longest value that a bounded schema lets through."""
    if "anyOf" in schema:
        return max((longest(each) for each in schema["anyOf"]), key=lambda value: len(json.dumps(value)))
    match schema.get("type"):
        case "string":
            return "x" * int(schema["pattern"].rpartition(",")[2].rstrip("}$"))
        case "array":
            return [longest(schema["items"])] * schema["maxItems"]
        case "object" if "properties" in schema:
            return {name: longest(each) for name, each in schema["properties"].items()}
        case "object":
            value = longest(schema["additionalProperties"])
            return {f"key{n}": value for n in range(schema["maxProperties"])}
        case "integer" | "number":
            return schema["minimum"]
    return None


@pytest.mark.parametrize("characters", [1_000, 3_000, 10_000])
def test_the_longest_reply_of_a_bounded_schema_fits(characters: int) -> None:
    schema = bound_schema(TypeAdapter(Deep).json_schema(), characters)
    value = longest(schema)
    assert len(json.dumps(value)) < 1.3 * characters
    assert Deep.model_validate(value), "and it is still what was asked for"


class Mood(BaseModel):
    mood: str


async def test_a_question_in_words_has_an_answer_of_the_type_that_is_named(door: FakeEndpoint) -> None:
    door.will(Says('{"mood": "glad"}'), Says("Hello."), Says("[1, 2]"))
    name = f"{door.url}#any"
    assert await mindstream.ask(name, "In which mood is 'What a day!'?", output=Mood) == Mood(mood="glad")
    assert "mood" in door.chats[0].body["messages"][0]["content"]
    assert await mindstream.ask(name, "Greet me.") == "Hello."
    assert await mindstream.ask(name, "Count.", output=list[int]) == [1, 2]
