"""MCP servers as tools: a person first accepts the tools' definitions, and the results are untrusted.

This needs the extra `mcp`, which is loaded only in a child process for each server (`child.py`).
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from mindstream.errors import SettingsError, ToolError
from mindstream.models.model import Call, JsonSchema, ToolSpec
from mindstream.models.providers.address import mask
from mindstream.tools.approval import checked_decision
from mindstream.tools.mcp.connection import Connection
from mindstream.tools.mcp.pins import Approve, Changes, Definition, Pins, difference, show
from mindstream.tools.mcp.server import ODD, McpServer
from mindstream.tools.tool import Traits, accepted_names, read_arguments

MAX_NAME, MAX_ERROR = 64, 2_000


@dataclass(frozen=True)
class McpTool:
    """A tool of a server.

    Attributes:
        spec: the description for models: made from the accepted definition, with a name that model endpoints accept.
        accepted: the server's definition that was accepted.
    """

    spec: ToolSpec
    accepted: Definition
    server: McpServer
    traits: Traits
    _connection: Connection
    _originals: Mapping[str, str]

    async def __call__(self, call: Call) -> str:
        given = read_arguments(call, self.spec, self._originals)
        text, failed = await self._connection.call(self.accepted, given)
        if failed:
            raise ToolError(f"{self.spec.name}: {mask(text[:MAX_ERROR]) or 'the tool failed without an error message'}")
        return text


class McpTools(list[McpTool]):
    """The tools that may be called, as a list.

    Attributes:
        refused: reasons why a tool may not be called (key `server/tool`), or why a server is not available (key
        `server`).
    """

    def __init__(self, tools: Iterable[McpTool] = (), refused: Mapping[str, str] | None = None) -> None:
        super().__init__(tools)
        self.refused = dict(refused or {})


@asynccontextmanager
async def mcp_tools(
    *servers: McpServer | str,
    pins: Pins,
    allow: Collection[str] = (),
    approve: Approve | None = None,
    taken: Collection[str] = (),
) -> AsyncIterator[McpTools]:
    """Open servers and yield their tools; a server that fails does not affect the others.

    Args:
        servers: command lines or URLs, or `McpServer`s.
        pins: the definitions that were accepted before. A new or changed tool is not offered until it is accepted.
        allow: hosts that may be used although they are private, on this machine, or not encrypted.
        approve: asks a person about new and changed tools; None: they are refused.
        taken: names of other tools, which these tools do not get.

    Raises:
        SettingsError: an address is invalid, or the extra `mcp` is not installed.
        ToolError: no tool of any server may be called; the message gives the reasons.
    """
    if find_spec("mcp") is None:
        raise SettingsError("an MCP server needs a package that is not installed: pip install 'mindstream[mcp]'")
    names: Counter[str] = Counter()
    connections: list[Connection] = []
    for server in (McpServer(each) if isinstance(each, str) else each for each in servers):
        server.check(allow)
        names[server.name] += 1
        if (number := names[server.name]) > 1:
            server = replace(server, name=f"{server.name[:26]}_{number}")
        connections.append(Connection(server, allow))
    try:
        found = McpTools()
        listings = await asyncio.gather(*(each.list_tools() for each in connections), return_exceptions=True)
        for connection, listing in zip(connections, listings, strict=True):
            name = connection.server.name
            if isinstance(listing, ToolError):
                found.refused[name] = str(listing)
            elif isinstance(listing, BaseException):
                raise listing
            else:
                found.refused.update({f"{name}/{show(tool)}": why for tool, why in listing.refused.items()})
                found.extend(await _accepted(connection, listing.tools, pins, approve, found.refused))
        if not found and found.refused:
            raise ToolError("no tool may be called.\n" + "\n".join(found.refused.values()))
        yield McpTools(_named(found, taken), found.refused)
    finally:
        await asyncio.gather(*(each.close() for each in connections))


async def _accepted(
    connection: Connection,
    offered: Mapping[str, Definition],
    pins: Pins,
    approve: Approve | None,
    refused: dict[str, str],
) -> list[McpTool]:
    """Return the accepted tools of a server, after asking about new and changed ones; add to `refused` the reasons why
    other tools may not be called."""
    server = connection.server
    known = pins.accepted(server.identity)
    same = [tool for tool in offered.values() if known.get(tool.name) == tool]
    changes = Changes(
        server.name,
        server.shown,
        tuple(tool for tool in offered.values() if tool.name not in known),
        tuple((known[tool.name], tool) for tool in offered.values() if known.get(tool.name, tool) != tool),
    )
    answer = approve(changes) if changes and approve else False
    if checked_decision(await answer if inspect.isawaitable(answer) else answer, server.name):
        pins.accept(server.identity, (*changes.new, *(now for _, now in changes.changed)))
        same = list(offered.values())
    else:
        how = "review it, and accept it with --trust"
        words = {tool.name: f"has a tool that has not been accepted: {show(tool.name)}; {how}" for tool in changes.new}
        for before, now in changes.changed:
            diff = "\n".join(difference(before, now))[:MAX_ERROR]
            words[now.name] = f"has changed {show(now.name)} since it was accepted; {how}:\n{diff}"
        refused.update({f"{server.name}/{show(name)}": f"{server.name} {text}" for name, text in words.items()})
    unasked = pins.unasked(server.identity) | server.reads
    return [_tool(connection, tool, reads=tool.name in unasked) for tool in same]


def _tool(connection: Connection, accepted: Definition, *, reads: bool) -> McpTool:
    server = connection.server
    description = _readable(accepted.description).strip()
    description = description or f"{_readable(accepted.name)}: a tool of {server.name}, without a description."
    name = ODD.sub("_", accepted.name).strip("_")[:MAX_NAME] or "tool"
    schema, originals = accepted_names(object_schema(accepted.parameters))
    spec = ToolSpec(name, description, _readable_schema(schema))
    traits = Traits(changes=not reads, untrusted=True, timeout_s=server.timeout_s)
    return McpTool(spec, accepted, server, traits, connection, originals)


def _named(tools: list[McpTool], taken: Collection[str]) -> list[McpTool]:
    """Give each tool a unique name: a name that is taken, or that several tools have, gets the server's name as a
    prefix."""
    wanted = Counter([*taken, *(tool.spec.name for tool in tools)])
    used = set(taken)
    named = []
    for tool in tools:
        name = tool.spec.name
        if wanted[name] > 1:
            name = f"{tool.server.name}_{name}"[:MAX_NAME]
        stem, number = name, 1
        while name in used:
            number += 1
            name = f"{stem[: MAX_NAME - 5]}_{number}"
        used.add(name)
        named.append(replace(tool, spec=replace(tool.spec, name=name)))
    return named


def _readable(text: str) -> str:
    """Return a text without invisible characters, which a model would read but a person would not see."""
    return "".join(c if c.isprintable() or c in "\n\t" else " " * c.isspace() for c in text)


def _readable_schema(value: Any, key: str = "") -> Any:
    """Return a schema whose descriptions and titles are readable; names and values stay as they are.

    A list without `items` gets `{}`, because OpenAI and Google refuse the request otherwise.
    """
    if isinstance(value, dict):
        is_open = value.get("type") == "array" and value.keys().isdisjoint(("items", "prefixItems"))
        items: JsonSchema = {"items": {}} if is_open else {}
        return {name: _readable_schema(each, name) for name, each in value.items()} | items
    if isinstance(value, list):
        return [_readable_schema(each) for each in value]
    return _readable(value) if isinstance(value, str) and key in ("description", "title") else value


JOINED = ("allOf", "anyOf", "oneOf")
REFUSED = {*JOINED, "not", "enum", "const", "if", "then", "else", "$ref"}
MAX_DEPTH = 10


def object_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of one object with named properties; a schema without composition at its top is not changed.

    OpenAI and Anthropic refuse a whole request if a tool has `anyOf`, `oneOf`, `allOf`, `not`, `enum` or `$ref` at the
    top of its schema. This function merges the branches: the model sees all arguments; required are those that the
    schema itself, every branch of `anyOf` or `oneOf`, or a branch of `allOf` requires. The server still checks the
    arguments by its own schema.
    """
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
    """Return the target of a reference within the schema; None if the reference leads elsewhere."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found: Any = root
    for key in reference[2:].split("/"):
        found = found.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found
