"""MCP servers as tools: a person first accepts the tools' definitions, and the results are untrusted.

This needs the extra `mcp`, which is loaded only in a child process for each server (`child.py`). The connection to a
server is opened when needed, reopened after it ended, and closed within a time limit. The time from one opening to the
next end is called a *life* of the connection.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, NamedTuple

from mindstream.clock import SystemClock
from mindstream.errors import SettingsError, ToolError
from mindstream.models.model import Call, JsonSchema, ToolSpec
from mindstream.models.providers.address import mask
from mindstream.models.untrusted import without_controls
from mindstream.tools.call import checked_decision
from mindstream.tools.child import child_environment
from mindstream.tools.mcp.pins import Approve, Changes, Definition, Pins, difference, show
from mindstream.tools.mcp.server import MEGABYTES, ODD, OUT_OF_MEMORY, SECONDS, McpServer
from mindstream.tools.tool import Traits, accepted_names, read_arguments

CHILD = "mindstream.tools.mcp.child"
MAX_LINE = 16_000_000
"""Maximum length of a line that the child sends, in bytes."""
LOADING_S = 30.0
"""Seconds for the child to load its modules, in addition to the server's `start_s`."""
REST_S = 5.0
"""Seconds for which a server that could not be opened is not tried again. During this time, the server's last error is
raised."""
CLOSE_S = 8.0
"""Seconds for closing, before the remaining processes are killed."""
MAX_FAULT = 500


class Listing(NamedTuple):
    """The tools that a server offers, by name, and the reasons why other tools are refused."""

    tools: dict[str, Definition]
    refused: dict[str, str]


class Connection:
    """The connection to a server, as a series of child processes. Several calls can run at the same time."""

    def __init__(self, server: McpServer, allow: Collection[str]) -> None:
        self.server, self._allow = server, allow
        self._life: _Life | None = None
        self._lives: set[_Life] = set()
        self._clock = SystemClock()
        self._rests_until, self._fault = 0.0, ""

    async def list_tools(self) -> Listing:
        """Return the tools that the server offered when the connection was opened. Open the connection if needed.

        Raises:
            ToolError: the server is not available.
        """
        return await (await self._ready()).listing

    async def call(self, accepted: Definition, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Call a tool unless it has changed since it was accepted. Return the tool's text, and whether the tool reports
        a failure.

        Raises:
            ToolError: the tool has changed or failed, the server asked for input, or the server is not available.
        """
        server = self.server
        try:
            for _ in range(2):
                life = await self._ready()
                async with asyncio.timeout(server.timeout_s):
                    answer = await life.ask(tool=accepted.name, accepted=accepted.fingerprint, arguments=arguments)
                if not answer.get("unheard"):  # otherwise the server had ended the session: open a new one, once
                    break
        except TimeoutError:
            raise ToolError(f"{server.name} did not answer within {server.timeout_s:g} seconds") from None
        if "fault" in answer:
            raise ToolError(life.describe(answer["fault"]))
        if "changed" not in answer:
            return answer["text"], answer["failed"]
        if answer["changed"] is None:
            raise ToolError(f"{server.name} does not offer {accepted.name} any more")
        lines = "\n".join(difference(accepted, Definition(*answer["changed"])))[:2_000]
        raise ToolError(
            f"{server.name} has changed {accepted.name} since it was accepted, so it is not called:\n{lines}"
        )

    async def _ready(self) -> _Life:
        """Return a child process that accepts calls. If needed, start the process first.

        If the caller is cancelled, the start continues.

        Raises:
            ToolError: the process is not ready in time or fails to start, or the last start failed less than REST_S
                seconds ago.
        """
        life = self._life
        if life is None or life.is_retired or life.task.done():
            if self._clock.elapsed() < self._rests_until:
                raise ToolError(self._fault)
            if life is not None:
                life.retire()
            self._life = life = _Life(self.server, self._allow)
            self._lives = {each for each in self._lives if not each.task.done()} | {life}
        try:
            async with asyncio.timeout(self.server.start_s + LOADING_S):
                await asyncio.shield(life.listing)
        except TimeoutError:
            life.stop()
            raise ToolError(
                f"{self.server.name} was not ready within {self.server.start_s + LOADING_S:g} seconds"
            ) from None
        except ToolError as error:
            self._fault, self._rests_until = str(error), self._clock.elapsed() + REST_S
            life.retire()
            raise
        return life

    async def close(self) -> None:
        """End all child processes. They are killed if they do not end in time."""
        for life in self._lives:
            life.stop()
        tasks = {life.task for life in self._lives}
        for patience_s in (CLOSE_S, 2.0):
            if tasks:
                _, tasks = await asyncio.wait(tasks, timeout=patience_s)
            for task in tasks:
                task.cancel()


class _Life:
    """One life of a connection: a child process, from its start to its end."""

    def __init__(self, server: McpServer, allow: Collection[str]) -> None:
        self.listing: asyncio.Future[Listing] = asyncio.get_running_loop().create_future()
        self._server, self._opening = server, server.opening(allow)
        self._process: Process | None = None
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count()
        self.is_retired = False
        self.task = asyncio.ensure_future(self._live())

    def retire(self) -> None:
        """Accept no more calls, and end after the last running call."""
        self.is_retired = True
        if not self._asked:
            self.stop()

    def stop(self) -> None:
        """Ask the child to end; a child that is not ready yet is ended at once."""
        self.is_retired = True
        if self._process is None:
            self.task.cancel()
        elif not self.listing.done():
            self._signal(signal.SIGTERM)
        elif self._process.stdin:
            self._process.stdin.close()

    async def ask(self, **wish: object) -> dict[str, Any]:
        """Have the child process call a tool, and return the report that it sends about the call."""
        number = next(self._numbers)
        self._asked[number] = answered = asyncio.get_running_loop().create_future()
        try:
            self._send({"id": number, **wish})
            answer: dict[str, Any] = await answered
        except asyncio.CancelledError:
            self._send({"cancel": number})
            raise
        finally:
            del self._asked[number]
            if self.is_retired:
                self.retire()
        return answer

    async def _live(self) -> None:
        fault = "it was stopped"
        command = (sys.executable, "-P", "-m", CHILD)
        try:
            self._process = process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=child_environment(), limit=MAX_LINE
            )
            self._send(self._opening)
            assert process.stdout is not None
            while line := await process.stdout.readline():
                self._hear(json.loads(line))
            self.is_retired = True
            fault = _describe_exit(await process.wait())
        except (OSError, ValueError) as error:
            fault = f"its process fails: {error}"
        finally:
            self.is_retired = True
            self._fail(fault)
            if self._process is not None:  # when the child process ends, it ends the MCP server that it runs
                self._signal(signal.SIGTERM)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._process.wait(), 1.0)
                self._signal(signal.SIGKILL)

    def _send(self, message: Mapping[str, object]) -> None:
        stdin = self._process and self._process.stdin
        if stdin and not stdin.is_closing():
            stdin.write(json.dumps(message).encode() + b"\n")

    def _hear(self, said: Mapping[str, Any]) -> None:
        if "id" in said:
            self.is_retired = self.is_retired or said.get("over", False)
            answered = self._asked.get(said["id"])
            if answered and not answered.done():
                answered.set_result(dict(said))
        elif "fault" in said:
            self._fail(said["fault"])
        else:
            self.listing.set_result(Listing({tool[0]: Definition(*tool) for tool in said["tools"]}, said["refused"]))

    def _fail(self, fault: str) -> None:
        """Report a fault to callers that wait for the opening, and to all running calls."""
        if not self.listing.done():
            where = self._server.misplaced()
            self.listing.set_exception(ToolError(self.describe(fault) + (where and f" ({where})")))
            self.listing.exception()  # marks the exception as retrieved, because no task may be waiting for it
        for answered in self._asked.values():
            if not answered.done():
                answered.set_result({"fault": fault})

    def _signal(self, which: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            if self._process and self._process.returncode is None:
                self._process.send_signal(which)

    def describe(self, fault: str) -> str:
        """Return an error message that begins with the server's name; in the fault, keys are masked and terminal
        control characters removed."""
        words = without_controls(mask(fault))[:MAX_FAULT]
        return f"{self._server.name}: {words or 'the server failed without an error message'}"


def _describe_exit(code: int) -> str:
    """Describe the exit code of a child; a code over 128 is 128 plus the number of a signal."""
    if code == 128 + signal.SIGXCPU:
        return f"the server sent a message that takes more than {SECONDS} seconds to read"
    if code in (OUT_OF_MEMORY, 128 + signal.SIGABRT, 128 + signal.SIGSEGV):
        return f"the server sent a message that takes more than {MEGABYTES} MB to read"
    return f"its process ended with {code}" if code else "its process ended"


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
        text, failed = await self._connection.call(self.accepted, read_arguments(call, self.spec, self._originals))
        if failed:
            raise ToolError(f"{self.spec.name}: {mask(text[:MAX_ERROR]) or 'the tool failed without an error message'}")
        return text


class McpTools(list[McpTool]):
    """The tools that may be called, as a list.

    Attributes:
        refused: reasons by key. `server/tool`: why a tool may not be called; `server/(more)`: why further tools were
            not read; `server`: why a server is not available.
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
    """Open servers and yield their tools. A server that fails does not affect the other servers.

    Args:
        servers: command lines or URLs, or `McpServer`s.
        pins: the definitions that were accepted before. A new or changed tool is not offered until it is accepted.
        allow: hosts that may be used although they are private, on this machine, or not encrypted.
        approve: asks a person about new and changed tools; None: they are refused.
        taken: names of other tools. None of the yielded tools gets such a name.

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
            raise ToolError("no tool can be used:\n" + "\n".join(found.refused.values()))
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
    """Ask about the new and changed tools of a server; return the accepted tools.

    Args:
        approve: asks; None: new and changed tools are not accepted.
        refused: the reasons why other tools may not be called, by tool. Reasons are added.
    """
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
    """Give each tool a unique name.

    A name that is taken, or that several tools have, gets the server's name as a prefix. If the new name is also taken,
    it gets a number.
    """
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
    """Return a schema whose descriptions and titles are readable. Names and values stay as they are.

    A list with neither `items` nor `prefixItems` gets `"items": {}`, because OpenAI and Google refuse the request
    otherwise.
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
    """Return a schema of one object with named properties. A schema without composition at its top is not changed.

    OpenAI and Anthropic refuse a whole request if a tool has `anyOf`, `oneOf`, `allOf`, `not`, `enum` or `$ref` at the
    top of its schema. This function merges the branches, so the model sees all arguments. An argument is required if
    the schema itself, every branch of `anyOf` or `oneOf`, or any branch of `allOf` requires it. The server still checks
    the arguments by its own schema.
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
