"""Repair of a server's results before the SDK validates them: one invalid tool or block must not cost all others.

The SDK validates a result as a whole. What it would refuse is replaced here: an invalid tool by a marked one, which
`Session` then reports as refused with its reason, and an invalid block of a tool's result by its JSON as text.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from mcp_types import JSONRPCResponse, ToolAnnotations
from pydantic import ValidationError

FAULT = "mindstream/fault"
"""Key in a tool's `_meta` under which the reason stands why it cannot be used."""
SCHEMA = "mindstream/schema"
"""Key in a tool's `_meta` for JSON Schema that the SDK refuses, as `{"properties": {"x": true}}`."""
MOST_BLOCKS = 10_000
"""Maximum number of content blocks that are repaired; a longer result is left for the SDK to judge."""
UNNAMED = "(a tool without a name)"
_FIELDS = {
    "text": {"text": str},
    "image": {"data": str, "mimeType": str},
    "audio": {"data": str, "mimeType": str},
    "resource_link": {"uri": str, "name": str},
}
"""The required fields of a content block, by its type."""


class RepairedStream:
    """A transport's incoming messages, with results repaired."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return _repaired(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> RepairedStream:
        return self

    async def __anext__(self) -> Any:
        return _repaired(await self._stream.__anext__())

    async def __aenter__(self) -> RepairedStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)


def _repaired(item: Any) -> Any:
    message = getattr(item, "message", None)
    if not isinstance(message, JSONRPCResponse):
        return item
    return dataclasses.replace(item, message=message.model_copy(update={"result": repair_result(message.result)}))


def repair_result(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result of `tools/list` or `tools/call` with its invalid parts replaced; others are returned as is."""
    if "tools" in result:
        tools, cursor = result["tools"], result.get("nextCursor")
        whole = {key: value for key, value in result.items() if key != "nextCursor"}
        found = [_tool(each) for each in tools] if isinstance(tools, list) else []
        return {**whole, "tools": found, **({"nextCursor": cursor} if isinstance(cursor, str) else {})}
    if result.keys() & {"content", "structuredContent", "isError"}:
        return _call_result(result)
    return result


# The list of tools.


def _tool(given: Any) -> dict[str, Any]:
    """Return a valid tool: what is used of the given one, or one that is marked with its fault."""
    if not isinstance(given, dict):
        return _marked(UNNAMED, f"it is no tool: expected an object, found {_kind(given)}")
    name = given.get("name")
    if not isinstance(name, str) or not name:
        return _marked(UNNAMED, "its name is missing or no text")
    try:
        schema = _schema(given.get("inputSchema"))
    except ValueError as error:
        return _marked(name, str(error))
    tool: dict[str, Any] = {"name": name, "inputSchema": schema}
    if not _is_plain(schema):
        tool |= {"inputSchema": {"type": "object"}, "_meta": {SCHEMA: schema}}
    if isinstance(description := given.get("description"), str):
        tool["description"] = description
    try:
        ToolAnnotations.model_validate(given.get("annotations"))
        tool["annotations"] = given["annotations"]
    except ValidationError:  # without hints it counts as a tool that changes something
        pass
    return tool


def _marked(name: str, fault: str) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, "_meta": {FAULT: fault}}


def _schema(given: Any) -> dict[str, Any]:
    """Return a tool's schema as one of an object; a tool without one takes no arguments that are known.

    Raises:
        ValueError: it describes something else than an object.
    """
    if given is None or given is True:
        return {"type": "object"}
    if not isinstance(given, dict):
        raise ValueError(f"its schema is no object but {_kind(given)}")
    kind = given.get("type")
    if kind is not None and kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise ValueError(f"its schema describes {kind!r}"[:200] + "; the arguments of a tool are an object")
    empty = {key for key in ("properties", "required", "$defs", "definitions") if given.get(key, ...) is None}
    return {"type": "object", **{key: value for key, value in given.items() if key not in empty | {"type"}}}


def _is_plain(schema: dict[str, Any]) -> bool:
    """Tell whether a schema is what the SDK takes of all versions of the protocol."""
    named, required = schema.get("properties", {}), schema.get("required", [])
    return (
        isinstance(named, dict)
        and all(isinstance(each, dict) for each in named.values())
        and isinstance(required, list)
        and all(isinstance(each, str) for each in required)
        and isinstance(schema.get("$schema", ""), str)
    )


# The result of a call.


def _call_result(result: dict[str, Any]) -> dict[str, Any]:
    content = result.get("content")
    blocks = content if isinstance(content, list) else [] if content is None else [content]
    if len(blocks) <= MOST_BLOCKS:
        blocks = [_block(each) for each in blocks]
    repaired = {**result, "content": blocks, "isError": result.get("isError") in (True, "true")}
    structured = repaired.pop("structuredContent", None)
    if isinstance(structured, dict):
        repaired["structuredContent"] = structured
    elif structured is not None and (words := _as_json(structured)) not in [each.get("text") for each in blocks]:
        repaired["content"] = [*blocks, {"type": "text", "text": words}]
    return repaired


def _block(given: Any) -> Any:
    """Return a content block with its required fields alone; the JSON of another as text."""
    if isinstance(given, dict) and isinstance(kind := given.get("type"), str):
        if kind == "resource" and _is_resource(given.get("resource")):
            held = given["resource"]
            kept = {key: held[key] for key in ("uri", "mimeType", "text", "blob") if isinstance(held.get(key), str)}
            return {"type": kind, "resource": kept}
        fields = _FIELDS.get(kind)
        if fields and all(isinstance(given.get(name), field) for name, field in fields.items()):
            return {"type": kind, **{name: given[name] for name in fields}}
    return {"type": "text", "text": given if isinstance(given, str) else _as_json(given)}


def _is_resource(held: Any) -> bool:
    return (
        isinstance(held, dict)
        and isinstance(held.get("uri"), str)
        and (isinstance(held.get("text"), str) or isinstance(held.get("blob"), str))
    )


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _kind(value: Any) -> str:
    names = {str: "a text", list: "a list", dict: "an object", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
