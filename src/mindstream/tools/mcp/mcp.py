"""MCP servers as tools: their words are shown and accepted first, what they do is held at arm's length.

Needs the extra `mcp`, which is loaded in a process beside each server (`child.py`), never in this one.
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
from mindstream.models.model import Call, ToolSpec
from mindstream.models.providers.secrets import mask
from mindstream.tools.mcp.connection import Connection
from mindstream.tools.mcp.object_schema import object_schema
from mindstream.tools.mcp.pins import Approve, Changes, Definition, Pins, difference, show
from mindstream.tools.mcp.server import ODD, McpServer
from mindstream.tools.tool import Traits, read_arguments

LONGEST_NAME, LONGEST_ERROR = 64, 2_000


@dataclass(frozen=True)
class McpTool:
    """A tool of a server.

    Attributes:
        spec: what a model is told: the accepted words, under a name that endpoints take.
        accepted: what the server calls it and says of it.
        server: whose it is.
    """

    spec: ToolSpec
    accepted: Definition
    server: McpServer
    traits: Traits
    _connection: Connection

    async def __call__(self, call: Call) -> str:
        given = read_arguments(call, self.spec)
        text, failed = await self._connection.call(self.accepted, given)
        if failed:
            raise ToolError(f"{self.spec.name}: {mask(text[:LONGEST_ERROR]) or 'it failed, and does not say why'}")
        return text


class McpTools(list[McpTool]):
    """The tools that may be called.

    Attributes:
        refused: why others may not, or why a server is not there, by `server` or `server/tool`.
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
    """Open servers and give their tools; a server that fails takes nobody with it.

    Args:
        servers: command lines or URLs, or what says more of them.
        pins: what was accepted before. A tool that is new or has changed since is not offered until it is accepted.
        allow: hosts that may be asked although they are private, of this machine, or not encrypted.
        approve: asks a person about what is new or has changed; None: it is refused.
        taken: names that other tools have.

    Raises:
        SettingsError: a server cannot be meant so, or the extra `mcp` is not installed.
        ToolError: there is no tool at all that may be called; the message says why.
    """
    if find_spec("mcp") is None:
        raise SettingsError("an MCP server needs a package that is not installed: pip install 'mindstream[mcp]'")
    wanted = _checked([McpServer(each) if isinstance(each, str) else each for each in servers], allow)
    connections = [Connection(each, allow) for each in wanted]
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


def _checked(servers: list[McpServer], allow: Collection[str]) -> list[McpServer]:
    """Return servers that can be opened, no two of them with one name.

    Raises:
        SettingsError: see `mcp_tools`.
    """
    names: Counter[str] = Counter()
    checked = []
    for server in servers:
        server.check(allow)
        names[server.name] += 1
        number = names[server.name]
        checked.append(server if number == 1 else replace(server, name=f"{server.name[:26]}_{number}"))
    return checked


# What is accepted.


async def _accepted(
    connection: Connection,
    offered: Mapping[str, Definition],
    pins: Pins,
    approve: Approve | None,
    refused: dict[str, str],
) -> list[McpTool]:
    """Return the tools of a server that were accepted or are now; say of the others why not."""
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
    if await answer if inspect.isawaitable(answer) else answer:
        pins.accept(server.identity, (*changes.new, *(now for _, now in changes.changed)))
        same = list(offered.values())
    else:
        refused.update(_refusals(changes))
    unasked = pins.unasked(server.identity) | server.reads
    return [_tool(connection, tool, reads=tool.name in unasked) for tool in same]


def _refusals(changes: Changes) -> dict[str, str]:
    """Say of each tool that was not accepted why it may not be called, and how it is accepted."""
    how = "look at it, and accept it with --trust"
    words = {tool.name: f"has a tool that nobody has accepted: {show(tool.name)}; {how}" for tool in changes.new}
    for before, now in changes.changed:
        diff = "\n".join(difference(before, now))[:LONGEST_ERROR]
        words[now.name] = f"has changed {show(now.name)} since it was accepted; {how}:\n{diff}"
    return {f"{changes.server}/{show(name)}": f"{changes.server} {text}" for name, text in words.items()}


# What a model is told.


def _tool(connection: Connection, accepted: Definition, *, reads: bool) -> McpTool:
    server = connection.server
    description = _readable(accepted.description).strip() or f"A tool of {server.name}, without a description."
    name = ODD.sub("_", accepted.name).strip("_")[:LONGEST_NAME] or "tool"
    spec = ToolSpec(name, description, _readable_schema(object_schema(accepted.parameters)))
    traits = Traits(changes=not reads, foreign=True, timeout_s=server.timeout_s)
    return McpTool(spec, accepted, server, traits, connection)


def _named(tools: list[McpTool], taken: Collection[str]) -> list[McpTool]:
    """Give each tool a name of its own: where two want the same, or one that is taken, with its server's before it."""
    wanted = Counter([*taken, *(tool.spec.name for tool in tools)])
    used = set(taken)
    named = []
    for tool in tools:
        name = tool.spec.name
        if wanted[name] > 1:
            name = f"{tool.server.name}_{name}"[:LONGEST_NAME]
        stem, number = name, 1
        while name in used:
            number += 1
            name = f"{stem[: LONGEST_NAME - 5]}_{number}"
        used.add(name)
        named.append(replace(tool, spec=replace(tool.spec, name=name)))
    return named


def _readable(text: str) -> str:
    """Return a text without what nobody can see: a model would read it."""
    return "".join(c if c.isprintable() or c in "\n\t" else " " * c.isspace() for c in text)


def _readable_schema(value: Any, key: str = "") -> Any:
    """Return a schema whose words for a model are readable; names and values stay as they are."""
    if isinstance(value, dict):
        return {name: _readable_schema(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_readable_schema(each) for each in value]
    return _readable(value) if isinstance(value, str) and key in ("description", "title") else value
