"""Carries a server's original results past the SDK's validation, and reads them leniently.

The SDK validates a result as a whole, so one invalid tool or content block would make all others unusable. Therefore
the SDK gets an empty result whose `_meta` has the original; `read_tool` and `result_text` read the original.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from mcp_types import JSONRPCResponse, ToolAnnotations
from pydantic import ValidationError

from mindstream.encodings import whole_json_text
from mindstream.models.untrusted import without_controls
from mindstream.tools.mcp.pins import Definition

RAW = "mindstream/raw"
MAX_BLOCKS = 10_000
"""Maximum number of content blocks of a result that bypasses the SDK's validation; a longer one is passed to the SDK
unchanged."""
RESULT = frozenset(("content", "structuredContent", "isError", "toolResult"))
"""Keys of the result of a call; `toolResult` is the key in the protocol of 2024."""
UNNAMED = "(a tool without a name)"
EMPTY = frozenset(("properties", "patternProperties", "required", "items", "$defs", "definitions"))
"""Keywords of a schema that some servers write without a usable value."""
DIALECTS = ("http://json-schema.org/", "https://json-schema.org/")
"""Beginnings of the values of `$schema` that are kept; the validator refuses others."""
MAX_TEXT, MAX_QUOTED = 1_000_000, 200
"""Maximum characters of a result's text, and of a name or an address in it."""


def readable(line: bytes) -> bytes:
    """Return a line of JSON without a byte order mark, halves of surrogate pairs and bytes that are no UTF-8.

    The SDK would refuse a message that contains any of these.
    """
    line = whole_json_text(line)
    return line if line.isascii() else line.decode("utf-8", "replace").encode()


class RawStream:
    """A transport's incoming messages. Results of `tools/list` and `tools/call` are moved into `_meta`, unvalidated; an
    incomplete result of `initialize` is completed."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return _carried(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> RawStream:
        return self

    async def __anext__(self) -> Any:
        return _carried(await self._stream.__anext__())

    async def __aenter__(self) -> RawStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)


def _carried(item: Any) -> Any:
    message = getattr(item, "message", None)
    if not isinstance(message, JSONRPCResponse):
        return item
    given, empty = message.result, dict[str, Any]()
    if "protocolVersion" in given:  # the reply to `initialize`, which some servers send incomplete
        said = given.get("serverInfo")
        info = {"name": "unknown", "version": "unknown", **(said if isinstance(said, dict) else {})}
        whole = {**given, "serverInfo": info, "capabilities": given.get("capabilities") or {}}
        return dataclasses.replace(item, message=message.model_copy(update={"result": whole}))
    if "tools" in given:
        empty = {"tools": []}
    elif (not given or given.keys() & RESULT) and len(_blocks(given)) <= MAX_BLOCKS:
        empty = {"content": []}
    else:
        return item
    replaced = ("tools", "nextCursor", "content", "structuredContent", "isError")
    kept = {key: value for key, value in given.items() if key not in replaced}
    result = {**kept, **empty, "_meta": {RAW: given}}
    return dataclasses.replace(item, message=message.model_copy(update={"result": result}))


def read_tool(given: Any) -> tuple[str, Definition | str]:
    """Return a tool's name, and either its definition or the reason why the tool cannot be used."""
    if not isinstance(given, dict):
        return UNNAMED, f"this is not a tool: expected an object, found {_kind(given)}"
    name, schema = given.get("name"), given.get("inputSchema")
    if not isinstance(name, str) or not name:
        return UNNAMED, "its name is missing, empty or not a text"
    schema = {} if schema is None or schema is True or schema == [] else schema  # no arguments are known
    if not isinstance(schema, dict):
        return name, f"expected an object as its schema, found {_kind(schema)}"
    kind = schema.get("type", "object")
    if kind is not None and kind != "object" and not (isinstance(kind, list) and "object" in kind):
        return name, f"its schema describes {kind!r}"[:200] + "; the arguments of a tool are an object"
    empty = {key for key in ("properties", "required", "$defs", "definitions") if schema.get(key, ...) is None}
    parameters = {"type": "object", **{key: value for key, value in schema.items() if key not in empty | {"type"}}}
    description = given.get("description")
    try:
        hints = ToolAnnotations.model_validate(given.get("annotations")).model_dump(by_alias=True, exclude_none=True)
    except ValidationError:  # without hints it counts as a tool that changes something
        hints = {}
    return name, Definition(name, description if isinstance(description, str) else "", parameters, hints)


def mended_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an invalid schema without the values that servers write by mistake.

    These are an unknown `$schema`, and keywords of EMPTY with null, `true`, or `[]`, which PHP writes for `{}`.
    """
    unknown = not str(schema.get("$schema")).startswith(DIALECTS)
    mended: dict[str, Any] = _without_empty(schema)
    return {key: value for key, value in mended.items() if not (unknown and key == "$schema")}


def _without_empty(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_empty(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: each for key, each in value.items() if key not in EMPTY or each not in (None, [], True)}
    return {key: _without_empty(each) for key, each in kept.items()}


def result_text(result: Mapping[str, Any]) -> str:
    """Return a call's result as text: the texts, then the structured data (unless the texts already contain the data).
    Images and other blocks without text are only named. The text is cut off after MAX_TEXT characters."""
    blocks = _blocks(result)
    parts = [_block_text(block) for block in blocks]
    texts = [part for part, block in zip(parts, blocks, strict=True) if not _is_named(block)]
    structured = result.get("structuredContent", result.get("toolResult"))
    if structured is not None and not _repeats(texts, structured):
        parts.append(json.dumps(structured, ensure_ascii=False, indent=1 if isinstance(structured, dict) else None))
    text = "\n".join(parts)
    more = len(text) - MAX_TEXT
    return without_controls(text[:MAX_TEXT]) + (f"\n… ({more:,} characters cut)" if more > 0 else "")


def _blocks(result: Mapping[str, Any]) -> list[Any]:
    content = result.get("content")
    return content if isinstance(content, list) else [] if content is None else [content]


def _is_named(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in ("image", "audio", "resource", "resource_link")


def _block_text(block: Any) -> str:
    """Return the text of a content block; other blocks are only named, and invalid ones are written as JSON."""
    match block:
        case str(text) | {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "data": str(data), "mimeType": str(mime)}:
            return f"({kind}, {mime[:MAX_QUOTED]}, {len(data) * 3 // 4:,} bytes: not shown)"
        case {"type": "resource_link", "uri": str(uri), "name": str(name)}:
            return f"(a resource, {name[:MAX_QUOTED]!r}, at {uri[:MAX_QUOTED]}: not fetched)"
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            return f"(the resource {uri[:MAX_QUOTED]})\n{text}"
        case {"type": "resource", "resource": {"uri": str(uri), "blob": str()} as held}:
            return f"(the resource {uri[:MAX_QUOTED]}, {held.get('mimeType') or 'of no known kind'}: not shown)"
    return json.dumps(block, ensure_ascii=False)


def _repeats(texts: list[str], structured: Any) -> bool:
    """Return whether texts repeat structured data, as the protocol recommends; `{"result": …}` stands for its value."""
    if not texts or sum(map(len, texts)) > MAX_TEXT:
        return False
    wanted = [structured]
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        wanted.append(structured["result"])
    said = [_json_or_text(text) for text in texts]
    return any(value in (texts[0], said[0]) if len(texts) == 1 else value in (texts, said) for value in wanted)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _kind(value: Any) -> str:
    names = {str: "a text", list: "a list", dict: "an object", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
