"""A tool's schema as model endpoints take it: one object with named properties.

OpenAI and Anthropic refuse a whole request whose tool has `anyOf`, `oneOf`, `allOf`, `not`, `enum` or `$ref` at the top
of its schema. Their branches are merged: the model sees all arguments, and as required those that every branch
requires. The server still checks the arguments by its own schema.
"""

from __future__ import annotations

from typing import Any

JOINED = ("allOf", "anyOf", "oneOf")
REFUSED = {*JOINED, "not", "enum", "const", "if", "then", "else", "$ref"}
MAX_DEPTH = 10


def object_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of an object without composition at its top; one without it is returned as is."""
    if not schema.keys() & REFUSED:
        return schema
    properties, required = _merged(schema, schema, 0)
    kept = {key: value for key, value in schema.items() if key not in REFUSED | {"properties", "required"}}
    return {**kept, "type": "object", "properties": properties, **({"required": required} if required else {})}


def _merged(schema: Any, root: dict[str, Any], depth: int) -> tuple[dict[str, Any], list[str]]:
    """Return the properties of a schema and of its branches, and the names that are always required."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return {}, []
    listed, named = schema.get("required"), schema.get("properties")
    required: list[str] = list(listed) if isinstance(listed, list) else []
    properties, more = _merged(_look_up(schema["$ref"], root), root, depth + 1) if "$ref" in schema else ({}, [])
    required += more
    for word in JOINED:
        branches = schema.get(word)
        parts = [_merged(each, root, depth + 1) for each in branches] if isinstance(branches, list) else []
        for part, _ in parts:
            properties |= part
        if needs := [set(each) for _, each in parts]:
            required += sorted(set.union(*needs) if word == "allOf" else set.intersection(*needs))
    properties |= named if isinstance(named, dict) else {}
    return properties, list(dict.fromkeys(required))


def _look_up(reference: Any, root: dict[str, Any]) -> Any:
    """Return the target of a reference within the schema; None for any other."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found: Any = root
    for key in reference[2:].split("/"):
        found = found.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found
