"""A connection to an MCP server: opened, asked, opened again after it ended, closed without waiting for anybody."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
import httpx2
import jsonschema_rs
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from pydantic import TypeAdapter, ValidationError

from mindstream.clock import SystemClock
from mindstream.errors import MindstreamError, ToolError
from mindstream.isolation import describe
from mindstream.models.providers.secrets import mask
from mindstream.models.reply import without_controls
from mindstream.tools.mcp.http import CONNECT_S, FAILED, GuardedTransport, check_url
from mindstream.tools.mcp.pins import Definition, difference
from mindstream.tools.mcp.server import McpServer
from mindstream.tools.mcp.stdio import LastWords, stdio_transport

logging.getLogger("mcp").addHandler(logging.NullHandler())  # else what servers send is printed on the terminal

T = TypeVar("T")

MOST_PAGES, MOST_TOOLS = 50, 500
LONGEST_DESCRIPTION, LONGEST_SCHEMA = 8_000, 40_000
REST_S = 5.0
"""How long a server that could not be opened is left alone."""
CLOSE_S = 8.0
"""How long closing may take, before what is left is cancelled."""
QUOTED = 500

_ANSWER = TypeAdapter[types.CallToolResult | types.InputRequiredResult](
    types.CallToolResult | types.InputRequiredResult
)


@dataclass
class Listing:
    """What a server offers, by name, and why some of it is not taken."""

    tools: dict[str, Definition] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


class Connection:
    """A server, in one life after another; its calls go side by side.

    Each life runs in a task of its own: whatever happens there, whoever calls gets an answer or a ToolError.
    """

    def __init__(self, server: McpServer, allow: Collection[str]) -> None:
        self.server = server
        self._allow = allow
        self._life: _Life | None = None
        self._lives: set[_Life] = set()
        self._clock = SystemClock()
        self._rests_until = 0.0
        self._fault = ""

    async def list_tools(self) -> Listing:
        """Return what the server offers; start it where it does not run.

        Raises:
            ToolError: it cannot be had.
        """
        return (await self._ready())[1]

    async def call(self, accepted: Definition, arguments: Mapping[str, Any]) -> types.CallToolResult:
        """Call a tool that is still what was accepted.

        Raises:
            ToolError: it has changed, it failed, it wants something of us, or the server cannot be had.
        """
        name = self.server.name
        try:
            async with asyncio.timeout(self.server.timeout_s):
                life, listing = await self._ready()
                now = listing.tools.get(accepted.name)
                if now != accepted:
                    raise ToolError(_changed(name, accepted, now))
                return await life.call(accepted.name, arguments)
        except TimeoutError:
            raise ToolError(f"{name} did not answer within {self.server.timeout_s:g} seconds") from None

    async def _ready(self) -> tuple[_Life, Listing]:
        """Return a life that takes calls, and what is offered in it; whoever stops waiting does not stop it."""
        life = self._life
        if life is None or life.is_over():
            if self._clock.elapsed() < self._rests_until:
                raise ToolError(self._fault)
            if life is not None:
                life.retire()
            self._life = life = _Life(self.server, self._allow)
            self._lives = {each for each in self._lives if not each.task.done()} | {life}
        elif life.is_stale and life.listing.done():
            life.list_again()
        try:
            return life, await asyncio.shield(life.listing)
        except ToolError as error:
            self._fault, self._rests_until = str(error), self._clock.elapsed() + REST_S
            life.retire()
            raise

    async def close(self) -> None:
        """End it; what does not end is left behind."""
        for life in self._lives:
            life.stop.set()
        tasks = {life.task for life in self._lives}
        for patience_s in (CLOSE_S, 2.0):
            if tasks:
                _, tasks = await asyncio.wait(tasks, timeout=patience_s)
            for task in tasks:
                task.cancel()


class _Life:
    """One life of a connection, from its start to its end."""

    def __init__(self, server: McpServer, allow: Collection[str]) -> None:
        self.stop = asyncio.Event()
        self.is_stale = False
        self.listing: asyncio.Future[Listing] = asyncio.get_running_loop().create_future()
        self._server, self._allow = server, allow
        self._last = LastWords()
        self._client: Client | None = None
        self._calls = 0
        self._is_retired = False
        self.task = asyncio.ensure_future(self._live())

    def is_over(self) -> bool:
        """Tell whether the next call needs another life."""
        return self._is_retired or self._last.is_over or self.stop.is_set() or self.task.done()

    def retire(self) -> None:
        """Take no more calls, and end with the last of those that are going on."""
        self._is_retired = True
        if not self._calls:
            self.stop.set()

    def list_again(self) -> None:
        """Ask what is offered, since the server says that it is something else now."""
        assert self._client is not None
        self.is_stale = False
        self.listing = asyncio.ensure_future(self._answered(_list_tools(self._client)))
        self.listing.add_done_callback(lambda done: done.cancelled() or done.exception())  # perhaps nobody waits

    async def call(self, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        assert self._client is not None
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=name, arguments=dict(arguments)))
        self._calls += 1
        try:
            # not `call_tool`: it runs the server's patterns over what the server says, in Python's own engine
            answer = await self._answered(self._client.session.send_request(request, _ANSWER))
        finally:
            self._calls -= 1
            if self._is_retired:
                self.retire()
        if isinstance(answer, types.InputRequiredResult):
            raise ToolError(f"{self._server.name} asks for something before it answers, and is given nothing")
        return answer

    async def _answered(self, asking: Awaitable[T]) -> T:
        try:
            return await asking
        except MCPError as error:
            self._is_retired = self._is_retired or error.code == FAILED or self._last.is_over
            raise ToolError(self._say(error)) from None
        except (ValueError, RuntimeError, anyio.ClosedResourceError) as error:
            raise ToolError(f"{self._server.name} gave no answer that can be read: {_short(error)}") from None

    async def _live(self) -> None:
        """Live until `stop`, or until it goes wrong."""
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._server.start_s):
                    self._client = await stack.enter_async_context(self._connect())
                    listing = await _list_tools(self._client)
                self.listing.set_result(listing)
                await self.stop.wait()
        except BaseException as error:
            if not self.listing.done():
                self.listing.set_exception(ToolError(self._say(error)))
                self.listing.exception()  # nobody may be waiting any more
            if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
                raise
        finally:
            self.stop.set()

    def _connect(self) -> Client:
        server = self._server
        stdio = server.command and stdio_transport(server.command, server.env, server.folder, self._last)
        return Client(
            stdio or _http_transport(server, self._allow),
            cache=None,
            client_info=types.Implementation(name="mindstream", version="1"),
            read_timeout_seconds=max(server.start_s, server.timeout_s),
            message_handler=self._hear,
        )

    async def _hear(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.is_stale = True

    def _say(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED and self._server.command:
            words = str(self._last)
        elif isinstance(error, MCPError):
            words = error.message
        elif isinstance(error, TimeoutError):
            words = f"it was not ready within {self._server.start_s:g} seconds"
        else:
            words = _short(error)
        words = without_controls(mask(words[: 4 * QUOTED]))[:QUOTED]
        return f"{self._server.name}: {words or 'it failed, and does not say why'}"


@asynccontextmanager
async def _http_transport(server: McpServer, allow: Collection[str]) -> AsyncIterator[Any]:
    url = check_url(server.address, allow)
    headers = {**server.expanded_headers(), "accept-encoding": "identity"}
    timeout = httpx2.Timeout(server.timeout_s, connect=CONNECT_S)
    async with (
        httpx2.AsyncClient(
            headers=headers, timeout=timeout, transport=GuardedTransport(allow), trust_env=False
        ) as client,
        streamable_http_client(str(url), http_client=client) as streams,
    ):
        yield streams


async def _list_tools(client: Client) -> Listing:
    listing, cursor = Listing(), None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            _take(tool, listing)
        cursor = page.next_cursor
        if cursor is None:
            return listing
    raise ToolError(f"its list of tools has more than {MOST_PAGES} pages")


def _take(tool: types.Tool, listing: Listing) -> None:
    """Put a tool on the list, or say why not."""
    name = tool.name[:200]
    if len(listing.tools) + len(listing.refused) >= MOST_TOOLS:
        raise ToolError(f"it offers more than {MOST_TOOLS} tools")
    if name in listing.tools or name in listing.refused:
        listing.tools.pop(name, None)
        listing.refused[name] = "it is offered twice: which would be called?"
        return
    hints = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
    schema = {"type": "object", **tool.input_schema}
    if fault := _fault(tool, schema):
        listing.refused[name] = fault
    else:
        listing.tools[name] = Definition(name, tool.description or "", schema, hints)


def _fault(tool: types.Tool, schema: dict[str, Any]) -> str:
    """Say why a tool cannot be used at all; "" where it can."""
    if not tool.name or len(tool.name) > 200:
        return "its name is empty or too long"
    if len(tool.description or "") > LONGEST_DESCRIPTION:
        return f"its description has more than {LONGEST_DESCRIPTION:,} characters"
    try:
        if len(json.dumps(schema)) > LONGEST_SCHEMA:
            return f"its schema has more than {LONGEST_SCHEMA:,} characters"
        jsonschema_rs.validator_for(schema, offline=True)
    except (ValueError, RecursionError) as error:
        return f"its schema cannot be read: {str(error)[:200]}"
    return ""


def _changed(name: str, accepted: Definition, now: Definition | None) -> str:
    if now is None:
        return f"{name} does not offer {accepted.name} any more"
    lines = "\n".join(difference(accepted, now))[:2_000]
    return f"{name} has changed {accepted.name} since it was accepted, so it is not called:\n{lines}"


def _short(error: BaseException) -> str:
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        return f"it does not fit the protocol: {'.'.join(map(str, fault['loc']))}: {fault['msg']}"
    return str(error) if isinstance(error, MindstreamError) else describe(error)
