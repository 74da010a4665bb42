"""Check a call's arguments against its tool's JSON Schema: what models get wrong, not the whole standard."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from mindstream.models.model import Call, JsonSchema, ToolSpec

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def complaint(call: Call, tools: Sequence[ToolSpec]) -> str | None:
    """Say what is wrong with a call, in words for the model, or None."""
    tool = next((tool for tool in tools if tool.name == call.tool), None)
    if tool is None:
        return f"There is no tool {call.tool!r}. There are: {', '.join(tool.name for tool in tools)}."
    try:
        arguments = json.loads(call.arguments or "{}")
    except json.JSONDecodeError as error:
        return f"The arguments of {call.tool!r} are not JSON: {error}."
    if not isinstance(arguments, dict):
        return f"The arguments of {call.tool!r} should be one JSON object."
    found = list(_wrong(arguments, tool.parameters, ""))
    return f"The arguments of {call.tool!r} do not fit: {'; '.join(found[:5])}." if found else None


def _wrong(value: Any, schema: JsonSchema, where: str) -> Iterator[str]:
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield f"{where or 'the whole'} should be {' or '.join(kinds)}, not {json.dumps(value)[:80]}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} should be one of {json.dumps(schema['enum'], ensure_ascii=False)}"
    if isinstance(value, dict):
        yield from _wrong_object(value, schema, where)
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from _wrong(item, schema["items"], f"{where}[{index}]")


def _wrong_object(value: dict[str, Any], schema: JsonSchema, where: str) -> Iterator[str]:
    dot = f"{where}." if where else ""
    properties: dict[str, JsonSchema] = schema.get("properties", {})
    yield from (f"{dot}{key} is missing" for key in schema.get("required", ()) if key not in value)
    if schema.get("additionalProperties") is False:
        yield from (f"{dot}{key} is not known" for key in value if key not in properties)
    for key, inner in properties.items():
        if key in value:
            yield from _wrong(value[key], inner, f"{dot}{key}")


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, float) and kind == "integer":
        return value.is_integer()
    return isinstance(value, _KINDS.get(kind, (object,)))
