"""A reply is held to its schema by the endpoint where it can be; what an endpoint does not know it is asked once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from asking import ADD, Grade, Judge, Talk, parts_of, talk
from fake_endpoint import Asked, Behaviour, FakeEndpoint, Says
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from mindstream.clock import Moment
from mindstream.errors import ModelRefused
from mindstream.minds.calls import build_event
from mindstream.models.ask import ask
from mindstream.models.bounded import bound_schema
from mindstream.models.model import Cut, Request, Usage
from mindstream.models.openai_chat import FIELDS
from mindstream.models.prices import price
from mindstream.models.prompt import Prompt
from mindstream.models.provider import provider
from mindstream.models.roles import Models
from mindstream.models.wrappers.meter import Metered


@pytest.fixture
def door() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as door:
        yield door


def holds_to_schemas(asked: Asked) -> Behaviour:
    """An endpoint whose model babbles unless its reply is held to a schema."""
    return Says('{"score": 3}' if "response_format" in asked.body else "Three points, I would say.")


async def test_a_reply_is_held_to_its_schema_by_the_endpoint(door: FakeEndpoint) -> None:
    door.otherwise = holds_to_schemas
    async with Models.named({"default": f"{door.url}#any"}) as models:
        assert await ask(models.of(""), Judge()) == Grade(score=3)
    assert len(door.chats) == 1
    asked = door.chats[0].body
    assert asked["response_format"]["type"] == "json_schema"
    assert asked["response_format"]["json_schema"]["name"] == "judge"
    assert asked["response_format"]["json_schema"]["schema"] == Judge().reply_schema()
    assert '"score"' in asked["messages"][0]["content"], "small models need the schema in words, too"


async def test_only_what_can_be_held_strictly_is_called_strict(door: FakeEndpoint) -> None:
    class Closed(BaseModel):
        model_config = ConfigDict(extra="forbid")
        score: int

    class Strict(Prompt[Closed]):
        @classmethod
        def words(cls) -> str:
            return "# user\nGrade."

    model = provider(f"{door.url}#any")
    await parts_of(model, Request(Judge()))
    await parts_of(model, Request(Strict()))
    await model.aclose()
    assert [each.body["response_format"]["json_schema"]["strict"] for each in door.chats] == [False, True]


async def test_free_text_and_calls_are_not_held_to_anything(door: FakeEndpoint) -> None:
    model = provider(f"{door.url}#any")
    await parts_of(model, Request(Talk()))
    await parts_of(model, Request(Judge(), tools=(ADD,)))
    await model.aclose()
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
async def test_an_endpoint_that_does_not_know_schemas_is_asked_in_words_from_then_on(
    door: FakeEndpoint, words: str
) -> None:
    door.refuses["response_format"] = words
    door.otherwise = Says('{"score": 3}')
    async with Models.named({"default": f"{door.url}#any"}) as models:
        assert await ask(models.of(""), Judge()) == Grade(score=3)
        assert await ask(models.of(""), Judge()) == Grade(score=3)
    assert ["response_format" in each.body for each in door.chats] == [True, False, False]


async def test_two_requests_that_are_refused_at_once_are_both_asked_again(door: FakeEndpoint) -> None:
    import asyncio

    door.refuses["response_format"] = "response_format is not supported"
    door.otherwise = Says('{"score": 3}')
    async with Models.named({"default": f"{door.url}#any"}) as models:
        found = await asyncio.gather(*(ask(models.of(""), Judge()) for _ in range(3)))
    assert found == [Grade(score=3)] * 3


async def test_any_other_refusal_is_one(door: FakeEndpoint) -> None:
    door.refuses["response_format"] = "The moon is not full."
    model = provider(f"{door.url}#any")
    with pytest.raises(ModelRefused, match="moon"):
        await parts_of(model, Request(Judge()))
    await model.aclose()
    assert FIELDS[0] in door.chats[0].body


# Tokens that were kept.


async def test_cached_tokens_are_told_and_metered(door: FakeEndpoint) -> None:
    calls: list[Any] = []
    door.otherwise = Says("hi", usage=(100, 3), cached=80)
    async with Models.named({"default": f"{door.url}#any"}, on_call=calls.append) as models:
        assert (await parts_of(models.of(""), talk()))[-1] == Usage(100, 3, None, 80)
    assert calls[0].usage.cached_tokens == 80


async def test_cached_tokens_cannot_be_more_than_there_are(door: FakeEndpoint) -> None:
    model = provider(f"{door.url}#any")
    door.otherwise = Says("hi", usage=(10, 3), cached=80)
    assert (await parts_of(model))[-1] == Usage(10, 3, None, 10)
    await model.aclose()


def test_cached_tokens_cost_less() -> None:
    at = provider("openai:gpt-4o-mini", api_key="sk-test-0123456789")._address
    whole, half = price("gpt-4o-mini", at, 1000, 10), price("gpt-4o-mini", at, 1000, 10, 500)
    assert whole and half and half < whole


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


def test_narrower_limits_stay() -> None:
    schema = bound_schema(TypeAdapter(Deep).json_schema(), 1_000_000)
    assert schema["properties"]["words"] == {"type": "string", "pattern": "^[^<]{0,6000}$"}
    assert schema["properties"]["share"] == {"type": "number", "minimum": 0, "maximum": 1}


def test_a_schema_that_names_what_it_does_not_hold_is_still_bounded() -> None:
    schema = bound_schema({"type": "object", "properties": {"a": {"$ref": "#/$defs/Gone"}}}, 500)
    assert {"type": "boolean"} in schema["properties"]["a"]["anyOf"]


# What the log says.


def test_a_call_s_row_says_what_was_kept_and_what_was_cut() -> None:
    cut = (Cut("conversation", items=3), Cut("utterances", characters=200))
    call = Metered("any", "talker", "talk", Moment(0.0), 0.1, 0.2, Usage(100, 3, None, 80), cut=cut)
    row = build_event(call)
    assert (row.cached_tokens, row.cut) == (80, "conversation -3, utterances -200 characters")
