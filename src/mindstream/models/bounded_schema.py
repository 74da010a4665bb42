"""Limit a schema so that its longest reply fits a number of characters: a grammar then ends replies in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mindstream.models.model import JsonSchema

MIN_TEXT, MIN_ITEM = 24, 90
"""Characters that every text may have at least, and that must be left for each further item of a list."""
MAX_ITEMS, MAX_KEYS, MAX_DEPTH = 8, 3, 8
MAX_NUMBER = 999_999
WEIGHTS = {"array": 3, "object": 3, "string": 2}
DROPPED = ("title", "description", "default", "examples", "items", "properties", "additionalProperties", "$defs")


def bound_schema(schema: JsonSchema, characters: int) -> JsonSchema:
    """Return the schema with limits on texts, lists, numbers, and untyped values.

    The characters of an object are divided among its fields; narrower limits of the schema stay.
    """
    limited = _limit(schema, characters, schema.get("$defs", {}), 0)
    return {key: value for key, value in limited.items() if key != "$defs"}


def _limit(node: Any, room: int, shared: Mapping[str, JsonSchema], depth: int) -> JsonSchema:
    node = _resolved(node, shared)
    if depth > MAX_DEPTH:
        return {"type": "null"}
    if alternatives := node.get("anyOf", node.get("oneOf")):
        return {"anyOf": [_limit(each, room, shared, depth + 1) for each in alternatives]}
    if fixed := {key: node[key] for key in ("enum", "const") if key in node}:
        return fixed
    plain = {key: value for key, value in node.items() if key not in DROPPED}
    match node.get("type"):
        case "string":
            return _limit_text(plain, max(MIN_TEXT, room))
        case "integer" | "number":
            exclusive = {"exclusiveMinimum", "exclusiveMaximum"} & node.keys()
            return plain if exclusive else {"minimum": -MAX_NUMBER, "maximum": MAX_NUMBER, **plain}
        case "array":
            items = max(1, node.get("minItems", 0), min(node.get("maxItems", MAX_ITEMS), room // MIN_ITEM))
            inner = _limit(node.get("items", {}), room // items, shared, depth + 1)
            return {**plain, "items": inner, "maxItems": items}
        case "object":
            return plain | _limit_object(node, room, shared, depth)
        case "boolean" | "null" as kind:
            return {"type": kind}
    return {"anyOf": [_limit_text({}, max(MIN_TEXT, room)), {"type": "boolean"}, {"type": "null"}]}


def _limit_text(plain: JsonSchema, longest: int) -> JsonSchema:
    """Limit a text's length, and exclude the prompt's tags, which small models tend to repeat."""
    longest = min(plain.get("maxLength", longest), longest)
    if "pattern" in plain or "format" in plain:
        return {**plain, "maxLength": longest}
    return {"type": "string", "pattern": f"^[^<]{{{min(plain.get('minLength', 0), longest)},{longest}}}$"}


def _limit_object(node: JsonSchema, room: int, shared: Mapping[str, JsonSchema], depth: int) -> JsonSchema:
    """Return the limited properties of an object, by the weights of their types."""
    fields: dict[str, JsonSchema] = node.get("properties", {})
    others = node.get("additionalProperties")
    if fields:
        weights = {name: _weight(each, shared) for name, each in fields.items()}
        share = max(0, room - sum(len(name) + 6 for name in fields)) / sum(weights.values())
        limited = {n: _limit(each, int(weights[n] * share), shared, depth + 1) for n, each in fields.items()}
        return {"properties": limited, "additionalProperties": False}
    if others is False:
        return {}
    value = _limit(others if isinstance(others, dict) else {}, room // MAX_KEYS // 2, shared, depth + 1)
    return {"additionalProperties": value, "maxProperties": MAX_KEYS}


def _weight(node: JsonSchema, shared: Mapping[str, JsonSchema]) -> int:
    node = _resolved(node, shared)
    if "anyOf" in node:
        return max(_weight(each, shared) for each in node["anyOf"])
    return 1 if "enum" in node else WEIGHTS.get(str(node.get("type")), 1)


def _resolved(node: JsonSchema, shared: Mapping[str, JsonSchema]) -> JsonSchema:
    return shared.get(str(node["$ref"]).rpartition("/")[2], {}) if "$ref" in node else node
