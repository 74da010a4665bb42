"""What is wrong with a pack as it was read, each fault with the place where it stands, in plain words."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from mindstream.packs.pack import Alarm, Field_, Pack, Phase, Resource, Step, Topic

Where = tuple[str | int, ...]
Fault = tuple[Where, str]

PARTS: dict[str, type[BaseModel]] = {
    "phases": Phase, "fields": Field_, "topics": Topic, "steps": Step, "resources": Resource, "alarms": Alarm,
}  # fmt: skip
"""What the lists and mappings of a pack hold."""
PLAIN = {
    "missing": "is missing",
    "string_type": "should be a text",
    "list_type": "should be a list (lines that start with '- ', or [a, b])",
    "tuple_type": "should be a list (lines that start with '- ', or [a, b])",
    "dict_type": "should be a mapping (name: …)",
    "model_type": "should be a mapping (name: …)",
    "bool_type": "should be true or false",
    "bool_parsing": "should be true or false",
}


def faults(data: Any) -> tuple[Pack | None, list[Fault]]:
    """Read a pack from what its files hold; return it, or what is wrong with it."""
    unknown = list(dangling(data))
    try:
        pack = Pack.model_validate(data)
    except ValidationError as error:
        found = [_told(each) for each in error.errors() if each["loc"] or not unknown]
        return None, [*found, *unknown]
    return (None, unknown) if unknown else (pack, [])


def dangling(data: Any) -> Iterator[Fault]:
    """Name what names something that is not there: a field, a topic."""
    if not isinstance(data, dict):
        return
    fields = set(data.get("fields") or ()) if isinstance(data.get("fields"), dict) else set()
    topics = {str(topic.get("id")) for topic in _mappings(data, "topics")}
    for at, phase in enumerate(_mappings(data, "phases")):
        for key in ("fields", "needs"):
            yield from _missing(("phases", at, key), phase.get(key), fields, "the field", "`fields`")
    for at, topic in enumerate(_mappings(data, "topics")):
        yield from _missing(("topics", at, "field"), [topic.get("field") or ""], fields | {""}, "the field", "`fields`")
    for name in ("steps", "resources"):
        for at, item in enumerate(_mappings(data, name)):
            for key in ("topics", "not_for"):
                yield from _missing((name, at, key), item.get(key), topics, "the topic", "topics.yaml")


def _mappings(data: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    items = data.get(name)
    return [item if isinstance(item, dict) else {} for item in items] if isinstance(items, list) else []


def _missing(where: Where, named: Any, known: set[str], what: str, of: str) -> Iterator[Fault]:
    for name in named if isinstance(named, list) else ():
        if isinstance(name, str) and name not in known:
            yield where, f"names {what} {name!r}, which {of} does not have{_meant(name, known)}"


def _told(error: ErrorDetails) -> Fault:
    where = tuple(part for part in error["loc"] if part != "[key]")
    if error["type"] == "extra_forbidden":
        model = PARTS.get(str(where[0]), Pack) if len(where) > 1 else Pack
        return where, f"is not known here{_meant(str(where[-1]), set(model.model_fields))}"
    return where, PLAIN.get(error["type"]) or error["msg"].removeprefix("Value error, ")


def _meant(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, sorted(map(str, known)), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
