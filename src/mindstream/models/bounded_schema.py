"""A schema whose longest reply fits into so many characters: a grammar then ends every reply before it is cut off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mindstream.models.model import JsonSchema

SHORTEST_TEXT, SHORTEST_ITEM = 24, 90
"""So many characters a text has room for at least; so many make a further item of a list worth while."""
MOST_ITEMS, MOST_KEYS = 8, 3
GREATEST = 999_999
DEEPEST = 8
WEIGHTS = {"array": 3, "object": 3, "string": 2}


def bound_schema(schema: JsonSchema, characters: int) -> JsonSchema:
    """Return a schema that says the same within limits: of texts, lists, numbers, and of what may be anything.

    What a level has room for is shared out among its fields; limits that are narrower already stay.
    """
    limited = _limit(schema, characters, schema.get("$defs", {}), 0)
    return {key: value for key, value in limited.items() if key != "$defs"}


def _limit(node: Any, room: int, shared: Mapping[str, JsonSchema], depth: int) -> JsonSchema:
    if "$ref" in node:
        node = shared.get(str(node["$ref"]).rpartition("/")[2], {})
    if depth > DEEPEST:
        return {"type": "null"}
    for alternatives in ("anyOf", "oneOf"):
        if alternatives in node:
            return {"anyOf": [_limit(each, room, shared, depth + 1) for each in node[alternatives]]}
    if "enum" in node or "const" in node:
        return {key: node[key] for key in ("enum", "const") if key in node}
    match node.get("type"):
        case "string":
            return _limit_text(node, max(SHORTEST_TEXT, room))
        case "integer" | "number":
            exclusive = {"exclusiveMinimum", "exclusiveMaximum"} & node.keys()
            return _plain(node) if exclusive else {"minimum": -GREATEST, "maximum": GREATEST, **_plain(node)}
        case "array":
            return _limit_list(node, room, shared, depth)
        case "object":
            return _limit_object(node, room, shared, depth)
        case "boolean" | "null":
            return {"type": node["type"]}
    text = _limit_text({"type": "string"}, max(SHORTEST_TEXT, room))
    return {"anyOf": [text, {"type": "boolean"}, {"type": "null"}]}


def _limit_text(node: JsonSchema, longest: int) -> JsonSchema:
    """Limit a text's length, and keep the prompt's tags out of it, which small models say after it."""
    longest = min(node.get("maxLength", longest), longest)
    if "pattern" in node or "format" in node:
        return {**_plain(node), "maxLength": longest}
    shortest = min(node.get("minLength", 0), longest)
    return {"type": "string", "pattern": f"^[^<]{{{shortest},{longest}}}$"}


def _limit_list(node: JsonSchema, room: int, shared: Mapping[str, JsonSchema], depth: int) -> JsonSchema:
    items = max(1, node.get("minItems", 0), min(node.get("maxItems", MOST_ITEMS), room // SHORTEST_ITEM))
    return {**_plain(node), "items": _limit(node.get("items", {}), room // items, shared, depth + 1), "maxItems": items}


def _limit_object(node: JsonSchema, room: int, shared: Mapping[str, JsonSchema], depth: int) -> JsonSchema:
    fields: dict[str, JsonSchema] = node.get("properties", {})
    limited = _plain(node)
    if fields:
        room -= sum(len(name) + 6 for name in fields)
        weights = {name: _weight(each, shared) for name, each in fields.items()}
        share = max(0, room) / (sum(weights.values()) or 1)
        limited["properties"] = {
            name: _limit(each, int(weights[name] * share), shared, depth + 1) for name, each in fields.items()
        }
        limited["additionalProperties"] = False
    elif node.get("additionalProperties") is not False:
        values = node.get("additionalProperties")
        value = _limit(values if isinstance(values, dict) else {}, room // MOST_KEYS // 2, shared, depth + 1)
        limited |= {"additionalProperties": value, "maxProperties": MOST_KEYS}
    return limited


def _weight(node: JsonSchema, shared: Mapping[str, JsonSchema]) -> int:
    if "$ref" in node:
        node = shared.get(str(node["$ref"]).rpartition("/")[2], {})
    if "anyOf" in node:
        return max(_weight(each, shared) for each in node["anyOf"])
    return 1 if "enum" in node else WEIGHTS.get(str(node.get("type")), 1)


def _plain(node: JsonSchema) -> JsonSchema:
    """Return a schema's limits and its type, without what is said about it."""
    drop = ("title", "description", "default", "examples", "items", "properties", "additionalProperties", "$defs")
    return {key: value for key, value in node.items() if key not in drop}
