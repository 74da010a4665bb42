"""A session with an MCP server through the MCP SDK, in the child process, and its reports for the parent."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import httpx2
import jsonschema_rs
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from mindstream.errors import MindstreamError, ToolError
from mindstream.foreign_code import describe
from mindstream.tools.mcp.pins import Definition
from mindstream.tools.mcp.raw_results import RAW, RawStream, mended_schema, read_tool, readable, result_text
from mindstream.tools.mcp.server import MAX_BYTES
from mindstream.tools.mcp.stdio import Ending, stdio_transport
from mindstream.tools.web import PublicTransport

CONNECT_S = 10.0
FAILED, SESSION_ENDED = -31_999, -31_998
"""Codes of errors that this client makes itself. FAILED: the request failed, for example because the server cannot be
reached. SESSION_ENDED: the server had ended the session before the request."""
MAX_REFUSAL = 10_000
"""Maximum length in bytes of a refusal's body. A longer body is not read. A refusal is a response with a status of 400
or more; its body is quoted, and searched for the word "session"."""


class GuardedTransport(PublicTransport):
    """Connects to public addresses, and to hosts that are allowed by name; turns a failure into an MCP error message.

    Redirects are not followed. No event stream (GET) is opened, because requests from the server are not answered.
    """

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(405)
        host = request.url.host
        try:
            response = await super().handle_async_request(request)
            await _read_refusal(response)
        except (httpx2.HTTPError, OSError, ValueError) as error:
            return _failure(f"{host} cannot be reached: {str(error) or type(error).__name__}")
        ended = _ended_session(request, response)
        if fault := "has ended the session" if ended else _response_fault(response):
            await response.aclose()
            return _failure(f"{host} {fault}", SESSION_ENDED if ended else FAILED)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=_Bounded(response), extensions=response.extensions
        )


class _Bounded(httpx2.AsyncByteStream):
    """A response's body, with invalid parts replaced (see `readable`).

    A body of more than MAX_BYTES, or a broken connection, raises an error that the client library expects.
    """

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._response.is_stream_consumed:
            yield readable(self._response.content)
            return
        taken, rest = 0, bytearray()
        try:
            async for part in self._response.aiter_raw():
                taken += len(part)
                if taken > MAX_BYTES:
                    raise httpx2.StreamError(f"the answer has more than {MAX_BYTES:,} bytes")
                whole, end, begun = part.rpartition(b"\n")
                if end:
                    yield readable(bytes(rest) + whole + end)
                    rest.clear()
                rest += begun
        except httpx2.HTTPError as error:
            raise httpx2.StreamError(f"the answer broke off: {str(error) or type(error).__name__}") from None
        is_stream = self._response.headers.get("content-type", "").lower().startswith("text/event-stream")
        yield readable(bytes(rest)) + (b"\n\n" if is_stream else b"")  # some servers do not end their last event

    async def aclose(self) -> None:
        await self._response.aclose()


def _response_fault(response: httpx2.Response) -> str:
    """Return the reason why a response is refused; "" if it is accepted."""
    status, kind = response.status_code, response.headers.get("content-type", "").lower()
    if 300 <= status < 400:
        return f"leads to {response.headers.get('location', 'nowhere')[:200]!r}, which is not followed"
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return "sent a compressed answer, although an uncompressed one was requested"
    if status in (401, 403):
        return f"refuses these headers (HTTP {status})"
    said = response.content if response.is_stream_consumed else b""
    if status < 400 or (kind.startswith("application/json") and (not said or b'"jsonrpc"' in said)):
        return ""
    expected = ": expected the URL of an MCP endpoint (streamable HTTP, often ending in /mcp)"
    words = "" if "html" in kind else " ".join(said.decode("utf-8", "replace").split())[:300]
    return f"answers HTTP {status}" + (expected if status in (404, 405) else f": {words}" if words else "")


async def _read_refusal(response: httpx2.Response) -> None:
    """Read the body of an error response if the header says that it has at most MAX_REFUSAL bytes; else leave it
    unread."""
    length = response.headers.get("content-length", "")
    if response.status_code >= 400 and length.isdecimal() and int(length) <= MAX_REFUSAL:
        await response.aread()


def _ended_session(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Return whether a server refuses a request because it no longer knows the session.

    The protocol's status for this is 404. After a restart, many servers answer 400 with a body that names the session.
    """
    if "mcp-session-id" not in request.headers or response.status_code not in (400, 404, 410):
        return False
    return response.status_code != 400 or (response.is_stream_consumed and b"session" in response.content.lower())


def _failure(words: str, code: int = FAILED) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": words}}
    return httpx2.Response(502, headers={"content-type": "application/json"}, content=json.dumps(body).encode())


logging.getLogger("mcp").addHandler(logging.NullHandler())

MAX_PAGES, MAX_TOOLS, MAX_LIST = 50, 500, 2_000_000
MAX_NAME, MAX_DESCRIPTION, MAX_SCHEMA, MAX_HINTS = 200, 8_000, 40_000, 4_000
MAX_PATTERNS, MAX_DEPTH = 30, 100
"""Limits of one schema. MAX_PATTERNS: number of regular expressions; a short one can take ten megabytes. MAX_DEPTH:
depth of nesting."""
MORE = "(more)"
"""Key among the refused tools. It stands for the rest of the server's list of tools if the list was not read to its
end."""
UNREADABLE = "its schema cannot be read"
MAX_FAULT = 2_000

_ANSWER = TypeAdapter[types.CallToolResult | types.InputRequiredResult](
    types.CallToolResult | types.InputRequiredResult
)
Report = dict[str, object]


class Session:
    """One connection to a server, from its opening to its end; several calls can run at the same time.

    Attributes:
        over: is set when the session could not be opened, or when the server's process has ended.
    """

    def __init__(self, opening: Mapping[str, Any], process: asyncio.subprocess.Process | None) -> None:
        self._opening, self._process = opening, process
        self._ending = Ending()
        self.over = self._ending.over
        self._client: Client
        self._stack = AsyncExitStack()
        self._tools: dict[str, Definition] = {}
        self._is_stale = False
        self._listing = asyncio.Lock()

    async def open(self) -> Report:
        """Begin the session; report the tools, or the reason why there is no session."""
        server = self._opening
        client = Client(
            _raw(stdio_transport(self._process, self._ending) if self._process else _http_transport(server)),
            cache=None,
            client_info=types.Implementation(name="mindstream", version="1"),
            read_timeout_seconds=max(server["start_s"], server["timeout_s"]),
            message_handler=self._hear,
        )
        try:
            async with asyncio.timeout(server["start_s"]):
                self._client = await self._stack.enter_async_context(client)
                self._tools, refused = await _list_tools(self._client)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 (the outermost edge: any failure of the SDK is reported)
            self.over.set()
            return {"fault": self._describe(error)}
        shown = [[tool.name, tool.description, tool.parameters, tool.hints] for tool in self._tools.values()]
        return {"tools": shown, "refused": refused}

    async def call(self, tool: str, accepted: str, arguments: Mapping[str, Any]) -> Report:
        """Call a tool unless it has changed since it was accepted; `accepted` is its fingerprint."""
        try:
            async with self._listing:
                if self._is_stale:
                    self._is_stale = False
                    self._tools, _ = await _list_tools(self._client)
            now = self._tools.get(tool)
            if now is None or now.fingerprint != accepted:
                return {"changed": now and [now.name, now.description, now.parameters, now.hints]}
            params = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
            # not `call_tool`: it validates results by the server's schema with `re`, which a hostile pattern can hang
            answer = await self._client.session.send_request(types.CallToolRequest(params=params), _ANSWER)
            if isinstance(answer, types.InputRequiredResult):
                return {"fault": "the server asks for input before it answers, which is not supported"}
            raw = (answer.meta or {}).get(RAW, {})
            return {"text": result_text(raw), "failed": raw.get("isError") in (True, "true")}
        except MCPError as error:
            over = error.code in (FAILED, SESSION_ENDED) or self._ending.is_over
            return {"fault": self._describe(error), "over": over, "unheard": error.code == SESSION_ENDED}
        except (MindstreamError, ValueError, RuntimeError, anyio.ClosedResourceError) as error:
            return {"fault": f"the server's answer is not valid: {self._describe(error)}"[:MAX_FAULT]}

    async def close(self) -> None:
        """End the session and the server's process."""
        await self._stack.aclose()

    async def _hear(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._is_stale = True

    def _describe(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        match error:
            case MCPError() if error.code == types.CONNECTION_CLOSED and self._process:
                return str(self._ending)
            case MCPError():
                data = error.data if isinstance(error.data, str) else json.dumps(error.data, ensure_ascii=False)
                more = "" if error.data is None or data in error.message else f": {data}"
                return (error.message + more)[:MAX_FAULT]
            case TimeoutError():
                return f"the server was not ready within {self._opening['start_s']:g} seconds{self._ending.written}"
            case ValidationError():
                fault = error.errors()[0]
                where = ".".join(map(str, fault["loc"]))
                return f"the answer does not follow the protocol: {where}: {fault['msg']}"[:MAX_FAULT]
        return (str(error) if isinstance(error, MindstreamError) else describe(error))[:MAX_FAULT]


@asynccontextmanager
async def _raw(transport: Any) -> AsyncIterator[Any]:
    """Open a transport that keeps the server's original results (see raw_results)."""
    async with transport as (read, write, *_):
        yield RawStream(read), write


@asynccontextmanager
async def _http_transport(server: Mapping[str, Any]) -> AsyncIterator[Any]:
    headers = {**server["headers"], "accept-encoding": "identity"}
    timeout = httpx2.Timeout(server["timeout_s"], connect=CONNECT_S)
    guarded = GuardedTransport(server["allow"])
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, transport=guarded, trust_env=False) as client,
        streamable_http_client(server["url"], http_client=client) as streams,
    ):
        yield streams


async def _list_tools(client: Client) -> tuple[dict[str, Definition], dict[str, str]]:
    """Return the server's tools by name, and the reasons why some are refused.

    If there are more than MAX_TOOLS tools or MAX_PAGES pages, the tools read so far are used. An empty text as the
    cursor of the next page is followed like any other.

    Raises:
        ToolError: the list has more than MAX_LIST characters.
    """
    tools: dict[str, Definition] = {}
    refused: dict[str, str] = {}
    cursor, length = None, 0
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        page: dict[str, Any] = ((await client.list_tools(cursor=cursor)).meta or {}).get(RAW, {})
        before = len(tools) + len(refused)
        for given in page["tools"] if isinstance(page.get("tools"), list) else ():
            if len(tools) + len(refused) >= MAX_TOOLS:
                refused[MORE] = f"the server offers more than {MAX_TOOLS} tools; the rest is not read"
                return tools, refused
            length += _take(given, tools, refused)
            if length > MAX_LIST:
                raise ToolError(f"its list of tools has more than {MAX_LIST:,} characters")
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or (cursor in seen and len(tools) + len(refused) == before):  # a repeated page
            return tools, refused
        seen.add(cursor)
    refused[MORE] = f"the list of tools has more than {MAX_PAGES} pages; the rest is not read"
    return tools, refused


def _take(given: Any, tools: dict[str, Definition], refused: dict[str, str]) -> int:
    """Add a tool to `tools`. If the tool is refused, add the reason to `refused` instead.

    Return the number of characters added; 0 for a repetition.
    """
    full_name, found = read_tool(given)
    name = full_name[:MAX_NAME]
    fault = found if isinstance(found, str) else _fault(found)
    if isinstance(found, Definition) and fault.startswith(UNREADABLE):
        mended = replace(found, parameters=mended_schema(found.parameters))
        if not _fault(mended):
            found, fault = mended, ""
    if name in refused or tools.get(name) == found:
        return 0
    if name in tools:
        del tools[name]
        fault = "two different tools have this name; which of them would be called is not known"
    if isinstance(found, str) or fault:
        refused[name] = fault
        return len(fault)
    tools[name] = found
    return len(found.description) + len(json.dumps(found.parameters))


def _fault(tool: Definition) -> str:
    """Return the reason why a tool cannot be used; "" if it can."""
    if len(tool.name) > MAX_NAME:
        return f"its name has more than {MAX_NAME} characters"
    if len(tool.description) > MAX_DESCRIPTION:
        return f"its description has more than {MAX_DESCRIPTION:,} characters"
    try:
        if len(json.dumps(tool.hints)) > MAX_HINTS:
            return f"its annotations have more than {MAX_HINTS:,} characters"
        if len(json.dumps(tool.parameters)) > MAX_SCHEMA:
            return f"its schema has more than {MAX_SCHEMA:,} characters"
        if sum(_patterns(tool.parameters)) > MAX_PATTERNS:
            return f"its schema has more than {MAX_PATTERNS} patterns"
        jsonschema_rs.validator_for(tool.parameters, offline=True)
    except (ValueError, RecursionError) as error:
        return f"{UNREADABLE}: {str(error).partition(chr(10))[0][:200]}"
    return ""


def _patterns(value: Any, depth: int = 0) -> Iterator[int]:
    """Yield numbers whose sum is the number of regular expressions in a schema.

    Raises:
        ValueError: the schema is nested too deep.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, dict):
        yield isinstance(value.get("pattern"), str)
        named = value.get("patternProperties")
        yield len(named) if isinstance(named, dict) else 0
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _patterns(inner, depth + 1)
