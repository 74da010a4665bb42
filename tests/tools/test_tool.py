"""A function as a tool: its signature is the model's description, and the call."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from mindstream.errors import ToolError
from mindstream.models.model import Call
from mindstream.models.schema import find_faults
from mindstream.tools.tool import tool


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Place(BaseModel):
    room: str
    shelf: int = 1


class Cupboard:
    """A class with a method."""

    def __init__(self, content: str) -> None:
        self.content = content

    def look(self, place: Place, size: Size = Size.SMALL) -> str:
        """Look into a place."""
        return f"{self.content} in {place.room} {place.shelf} {size.name}"


def find(
    what: Annotated[str, Field(description="the thing", max_length=5)],
    *,
    size: Size = Size.SMALL,
    kind: Literal["a", "b"] = "a",
    place: Place | None = None,
    since: date | None = None,
    model_tags: list[str] = [],  # noqa: B006 (a default as people write them)
) -> dict[str, Any]:
    """Find a thing."""
    return {"what": what, "size": size, "kind": kind, "place": place, "since": since, "tags": model_tags}


async def later(minutes: float, _why: str = "") -> str:
    """Wait a while."""
    return f"{minutes:g}{_why}"


async def test_a_signature_becomes_a_schema_with_defaults_enums_models_and_literals() -> None:
    schema = tool(find).spec.parameters
    assert schema["required"] == ["what"] and schema["additionalProperties"] is False
    assert schema["properties"]["what"] == {
        "description": "the thing",
        "maxLength": 5,
        "type": "string",
    }
    assert schema["properties"]["kind"]["enum"] == ["a", "b"]
    assert schema["properties"]["size"]["enum"] == ["small", "large"]
    assert find_faults({"what": "cup", "place": {"shelf": 2}}, schema) == ["place.room is missing"]


async def test_arguments_are_converted_to_their_declared_types() -> None:
    given = {"what": "cup", "size": "large", "place": {"room": "hall"}, "since": "2026-11-24", "model_tags": ["x"]}
    found = json.loads(await tool(find)(Call("find", json.dumps(given))))
    assert found == {
        "what": "cup", "size": "large", "kind": "a", "place": {"room": "hall", "shelf": 1},
        "since": "2026-11-24", "tags": ["x"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "what: Missing required"),
        ({"what": "too long"}, "what: String should have at most 5 characters"),
        ({"what": "cup", "colour": "red"}, "colour: Unexpected keyword argument"),
    ],
)
async def test_invalid_arguments_are_reported_and_nothing_is_called(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolError, match="find: the arguments do not fit the tool's schema: ") as caught:
        await tool(find)(Call("find", json.dumps(given)))
    assert words in str(caught.value) and len(str(caught.value)) < 300


async def test_methods_partials_and_async_functions_are_tools() -> None:
    look = Call("look", '{"place": {"room": "hall"}}')
    assert [await tool(Cupboard(what).look)(look) for what in ("tea", "rice")] == [
        "tea in hall 1 SMALL",
        "rice in hall 1 SMALL",
    ]
    assert await tool(later)(Call("later", '{"minutes": 2, "_why": "!"}')) == "2!"
    in_hall = tool(partial(Cupboard("tea").look, place=Place(room="hall", shelf=3)))
    assert list(in_hall.spec.parameters["properties"]) == ["size"] and in_hall.spec.description == "Look into a place."
    assert await in_hall(Call("look", '{"size": "large"}')) == "tea in hall 3 LARGE"
    soon = tool(partial(later, _why="?"))
    assert await soon(Call("later", '{"minutes": 1}')) == "1?"
    with pytest.raises(ToolError, match="_why: Unexpected keyword argument"):
        await soon(Call("later", '{"minutes": 1, "_why": "another"}'))


def untyped(what) -> str:  # type: ignore[no-untyped-def]
    """Take anything."""
    return str(what)


def named(**what: str) -> str:
    """Take the named argument."""
    return str(what)


def silent(what: str) -> str:
    return what


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (untyped, "'what' needs a type hint"),
        (named, r"cannot give \*\*what"),
        (silent, "needs a docstring"),
        (Cupboard.look, "'self' needs a type hint"),
    ],
)
def test_functions_a_model_could_not_call_are_refused(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        tool(function)
