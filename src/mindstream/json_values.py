"""Values of JSON: the type of an object, the texts in a value, and how damaged JSON is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias, TypeVar

from pydantic import JsonValue

T = TypeVar("T")
JsonObject: TypeAlias = dict[str, JsonValue]


def texts_in(value: Any) -> Iterator[str]:
    """Yield each text in a value, without the names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts_in(each)


def parsed(text: object, shape: type[T]) -> T:
    """Parse JSON; return an empty value of the expected type if the text is damaged or of another type."""
    found = parsed_or_none(text)
    return found if isinstance(found, shape) else shape()


def parsed_or_none(text: object) -> object:
    """Parse JSON; return None if the text is damaged."""
    try:
        return json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return None
