"""Tool arguments against any schema: short messages, bounded time."""

from __future__ import annotations

import json
import time
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindstream.models.model import Call, ToolSpec
from mindstream.models.schema import find_faults, lean
from mindstream.models.wrappers.recovery import complaint

ROOM = {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {"Where": ROOM, "Node": {"properties": {"under": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}},
    "properties": {
        "where": {"anyOf": [{"$ref": "#/$defs/Where"}, {"type": "null"}]},
        "k": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "mood": {"const": "glad"},
        "day": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"},
        "many": {"type": "array", "maxItems": 2},
        "tree": {"$ref": "#/$defs/Node"},
        "one": {"oneOf": [{"type": "integer"}, {"minimum": 3}]},
    },
}


@pytest.mark.parametrize(
    ("value", "faults"),
    [
        ({"where": {"room": "hall"}, "k": 3, "mood": "glad", "day": "2026-11", "many": [1], "tree": {"under": []}}, []),
        ({"where": None, "k": None}, []),
        ({"where": {"rom": "hall"}}, ["where.room is missing"]),
        ({"where": {"room": 7}}, ["where.room should be string, not 7"]),
        ({"where": 7}, ["where should be object or null, not 7"]),
        ({"k": "x"}, ['k should be integer or null, not "x"']),
        ({"mood": "sad"}, ['mood: "sad" does not fit const "glad"']),
        ({"day": "today"}, ['day: "today" does not fit pattern "^[0-9]{4}-[0-9]{2}$"']),
        ({"many": [1, 2, 3]}, ["many: [1, 2, 3] does not fit maxItems 2"]),
        ({"tree": {"under": [{"under": 1}]}}, ["tree.under[0].under should be array, not 1"]),
        ({"one": 4}, ["one: 4 does not fit oneOf"]),
    ],
)
def test_references_and_alternatives_are_checked_with_short_messages(value: Any, faults: list[str]) -> None:
    assert find_faults(value, SCHEMA) == faults


def test_many_faults_give_a_short_message() -> None:
    value = {"k": "x" * 10_000, "where": {"room": ["y"] * 10_000}, "day": "z" * 10_000}
    assert len("; ".join(find_faults(value, SCHEMA))) < 600
    assert len(find_faults([1] * 100, {"items": {"type": "string"}})) == 5


def nested(depth: int, inner: Any, name: str = "a") -> Any:
    return reduce(lambda value, _: {name: value}, range(depth), inner)


def doubling(keyword: str, steps: int) -> dict[str, Any]:
    """Return a schema that checks one value 2 ** steps times."""
    parts = {f"a{n}": {keyword: [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(steps)}
    return {"$defs": parts | {f"a{steps}": {"type": "string"}}, "$ref": "#/$defs/a0"}


TWICE = {"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "type": "object"}
HOSTILE: dict[str, tuple[Any, Any]] = {
    "itself twice": ({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, {}),
    "doubled, all of": (doubling("allOf", 40), {}),
    "doubled at each level": (TWICE, nested(40, 1)),
    "a schema without a floor": (nested(5_000, {"type": "string"}, "not"), {}),
    "a value without a floor": ({"items": {"$ref": "#"}}, json.loads("[" * 900 + "]" * 900)),
    "a pattern with loops in loops": ({"pattern": "^(a+)+$"}, "a" * 30_000 + "!"),
    "a pattern that looks back": ({"pattern": r"^(a*)*\1$"}, "a" * 30_000 + "!"),
    "a look-around with loops in loops": ({"pattern": "^(?=(a+)+$)a"}, "a" * 30_000 + "!"),
    "a pattern without an end": ({"pattern": "((a{1,1000}){1,1000}){1,1000}"}, "a" * 300),
    "another host": ({"$ref": "http://127.0.0.1:9/schema.json"}, {}),
    "no schema": ([1], {}),
    "too long": ({"enum": ["x" * 300_000]}, 1),
    "half a character": ({"type": "string"}, "\ud800"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_checks_are_fast_and_safe_for_any_schema_and_value(name: str) -> None:
    schema, value = HOSTILE[name]
    began = time.process_time()
    faults = find_faults(value, schema)
    assert time.process_time() - began < 20, "some checks would take forever"
    assert all(isinstance(fault, str) and len(fault) < 400 for fault in faults)


@pytest.mark.parametrize(
    "arguments", ["[" * 100_000, '{"a":' * 100_000, '{"a": ' + "9" * 5_000 + "}", '{"a": "\\ud800"}']
)
def test_any_arguments_are_accepted_or_reported(arguments: str) -> None:
    tool = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "string"}}})
    found = complaint(Call("add", arguments), (tool,))
    assert found is None or len(found) < 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(value=JSON, schema=JSON)
def test_any_value_is_fitted_to_any_schema_without_errors(value: Any, schema: Any) -> None:
    assert isinstance(find_faults(value, schema), list)


def test_titles_defaults_and_docstrings_are_not_sent_but_properties_with_these_names_are() -> None:
    inner = {
        "title": {"title": "Title", "type": "string"},
        "default": {"type": "string", "default": "", "title": "D"},
        "description": {"type": "string", "description": "In a few words."},
    }
    schema = {
        "title": "Step",
        "description": "The docstring of a class.",
        "$defs": {"title": {"title": "T", "enum": ["title"]}},
        "properties": inner,
        "anyOf": [{}],
    }
    left = {"title": {"type": "string"}, "default": {"type": "string"}, "description": inner["description"]}
    assert lean(schema) == {"$defs": {"title": {"enum": ["title"]}}, "properties": left, "anyOf": [{}]}
    kept: dict[str, Any] = {
        "discriminator": {"propertyName": "kind", "mapping": {"title": "#/$defs/A", "default": "#/$defs/B"}}
    }
    kept |= {"patternProperties": {"default": {}}, "const": {"title": 1, "default": 2}, "enum": [{"title": 3}]}
    assert lean(kept) == kept


def test_a_definition_that_is_used_once_stands_in_its_place() -> None:
    once, twice = {"type": "integer"}, {"type": "string"}
    refers = {"$ref": "#/$defs/Twice"}
    tree = {"properties": {"of": {"items": {"$ref": "#/$defs/Tree"}}}}
    schema = {
        "$defs": {
            "Once": {"properties": {"n": once, "t": refers}},
            "Twice": twice,
            "Tree": tree,
            "Kind": once,
            "Size": {"enum": ["s"]},
        },
        "properties": {
            "a": {"$ref": "#/$defs/Once"},
            "b": refers,
            "tree": {"$ref": "#/$defs/Tree"},
            "size": {"$ref": "#/$defs/Size", "description": "How large."},
            "one": {"oneOf": [{"$ref": "#/$defs/Kind"}], "discriminator": {"mapping": {"k": "#/$defs/Kind"}}},
        },
    }
    sent = lean(schema)
    assert sent["$defs"] == {"Twice": twice, "Tree": tree, "Kind": once}
    assert sent["properties"]["a"] == {"properties": {"n": once, "t": refers}}
    assert sent["properties"]["size"] == {"enum": ["s"], "description": "How large."}
    for value in (
        {"size": "x"},
        {"a": {"n": 1, "t": "x"}, "b": "y"},
        {"a": {"n": "1"}},
        {"b": 2},
        {"tree": {"of": [{"of": 1}]}},
    ):
        assert bool(find_faults(value, sent)) == bool(find_faults(value, schema))
