"""A session with an MCP server by the SDK, as the child process holds it: what is handed on, and in what words."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx2
import jsonschema_rs
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from pydantic import TypeAdapter, ValidationError

from mindstream.errors import MindstreamError, ToolError
from mindstream.foreign_code import describe
from mindstream.models.legible import without_controls
from mindstream.tools.mcp.http import CONNECT_S, FAILED, SESSION_ENDED, GuardedTransport
from mindstream.tools.mcp.pins import Definition
from mindstream.tools.mcp.repair import FAULT, SCHEMA, RepairedStream
from mindstream.tools.mcp.stdio import LastWords, stdio_transport

logging.getLogger("mcp").addHandler(logging.NullHandler())

MOST_PAGES, MOST_TOOLS, LONGEST_LIST = 50, 500, 2_000_000
LONGEST_NAME, LONGEST_DESCRIPTION, LONGEST_SCHEMA, LONGEST_HINTS = 200, 8_000, 40_000, 4_000
MOST_PATTERNS, DEEPEST = 30, 100
"""In one schema: a pattern of a few characters can take ten megabytes."""
MORE = "(more)"
"""Key among the refused tools under which it stands that the list was not read to its end."""
LONGEST_TEXT = 1_000_000
"""So much is handed on of a result."""
LONGEST_FAULT, QUOTED = 2_000, 200

_ANSWER = TypeAdapter[types.CallToolResult | types.InputRequiredResult](
    types.CallToolResult | types.InputRequiredResult
)
_Said = dict[str, object]


class Session:
    """One life of a server, from its opening to its end; its calls go side by side.

    Attributes:
        over: is set when the server has ended.
    """

    def __init__(self, opening: Mapping[str, Any], process: asyncio.subprocess.Process | None) -> None:
        self._opening, self._process = opening, process
        self._last = LastWords()
        self.over = self._last.over
        self._client: Client
        self._stack = AsyncExitStack()
        self._tools: dict[str, Definition] = {}
        self._is_stale = False
        self._listing = asyncio.Lock()

    async def open(self) -> _Said:
        """Begin the session; return what is offered, or why there is none."""
        server = self._opening
        client = Client(
            _repaired(stdio_transport(self._process, self._last) if self._process else _http_transport(server)),
            cache=None,
            client_info=types.Implementation(name="mindstream", version="1"),
            read_timeout_seconds=max(server["start_s"], server["timeout_s"]),
            message_handler=self._hear,
        )
        try:
            async with asyncio.timeout(server["start_s"]):
                self._client = await self._stack.enter_async_context(client)
                refused = await self._list()
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 (whatever the SDK makes of a server is told)
            self.over.set()
            return {"fault": self._say(error)}
        shown = [[tool.name, tool.description, tool.parameters, tool.hints] for tool in self._tools.values()]
        return {"tools": shown, "refused": refused}

    async def call(self, tool: str, accepted: str, arguments: Mapping[str, Any]) -> _Said:
        """Call a tool that is still what was accepted; `accepted` is its fingerprint."""
        try:
            async with self._listing:
                if self._is_stale:
                    self._is_stale = False
                    await self._list()
            now = self._tools.get(tool)
            if now is None or now.fingerprint != accepted:
                return {"changed": now and [now.name, now.description, now.parameters, now.hints]}
            params = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
            # not `call_tool`: it runs the server's patterns over what the server says, in Python's own engine
            answer = await self._client.session.send_request(types.CallToolRequest(params=params), _ANSWER)
            if isinstance(answer, types.InputRequiredResult):
                return {"fault": "it asks for something before it answers, and is given nothing"}
            return {"text": result_text(answer), "failed": bool(answer.is_error)}
        except MCPError as error:
            over = error.code in (FAILED, SESSION_ENDED) or self._last.is_over
            return {"fault": self._say(error), "over": over, "unheard": error.code == SESSION_ENDED}
        except (MindstreamError, ValueError, RuntimeError, anyio.ClosedResourceError) as error:
            return {"fault": f"it gave no answer that can be read: {_short(error)}"[:LONGEST_FAULT]}

    async def close(self) -> None:
        """End it, and the process with it."""
        await self._stack.aclose()

    async def _hear(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._is_stale = True

    async def _list(self) -> dict[str, str]:
        """Ask what is offered; return why some of it is not taken."""
        tools, refused = await _list_tools(self._client)
        self._tools = tools
        return refused

    def _say(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED and self._process:
            return str(self._last)
        if isinstance(error, MCPError):
            return error.message[:LONGEST_FAULT]
        if isinstance(error, TimeoutError):
            return f"it was not ready within {self._opening['start_s']:g} seconds"
        return _short(error)[:LONGEST_FAULT]


@asynccontextmanager
async def _repaired(transport: Any) -> AsyncIterator[Any]:
    """Open a transport whose results are repaired before the SDK validates them."""
    async with transport as (read, write, *_):
        yield RepairedStream(read), write


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


# What it offers.


async def _list_tools(client: Client) -> tuple[dict[str, Definition], dict[str, str]]:
    """Return the tools by name, and why some are not taken.

    Where the list does not end, what came until then is kept. An empty cursor is one like any other.
    """
    tools: dict[str, Definition] = {}
    refused: dict[str, str] = {}
    cursor, length = None, 0
    seen: set[str] = set()
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        before = len(tools) + len(refused)
        for tool in page.tools:
            if len(tools) + len(refused) >= MOST_TOOLS:
                refused[MORE] = f"the server offers more than {MOST_TOOLS} tools; the rest is not read"
                return tools, refused
            length += _take(tool, tools, refused)
            if length > LONGEST_LIST:
                raise ToolError(f"its list of tools has more than {LONGEST_LIST:,} characters")
        cursor = page.next_cursor
        if cursor is None or (cursor in seen and len(tools) + len(refused) == before):  # the same page again
            return tools, refused
        seen.add(cursor)
    refused[MORE] = f"the list of tools has more than {MOST_PAGES} pages; the rest is not read"
    return tools, refused


def _take(tool: types.Tool, tools: dict[str, Definition], refused: dict[str, str]) -> int:
    """Put a tool on the list, or say why not; return how much it takes there."""
    name = tool.name[:LONGEST_NAME]
    hints = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
    meta = tool.meta or {}
    schema: Any = meta.get(SCHEMA, tool.input_schema)
    found = Definition(tool.name, tool.description or "", {"type": "object", **schema}, hints)
    fault = str(meta.get(FAULT, "")) or _fault(found)
    if name in refused or tools.get(name) == found:
        return 0
    if name in tools:
        del tools[name]
        fault = "two different tools have this name; which of them would be called is not known"
    if fault:
        refused[name] = fault
        return len(fault)
    tools[name] = found
    return len(found.description) + len(json.dumps(found.parameters))


def _fault(tool: Definition) -> str:
    """Say why a tool cannot be used at all; "" where it can."""
    if not tool.name or len(tool.name) > LONGEST_NAME:
        return "its name is empty or too long"
    if len(tool.description) > LONGEST_DESCRIPTION:
        return f"its description has more than {LONGEST_DESCRIPTION:,} characters"
    try:
        if len(json.dumps(tool.hints)) > LONGEST_HINTS:
            return f"its annotations have more than {LONGEST_HINTS:,} characters"
        if len(json.dumps(tool.parameters)) > LONGEST_SCHEMA:
            return f"its schema has more than {LONGEST_SCHEMA:,} characters"
        if sum(_patterns(tool.parameters)) > MOST_PATTERNS:
            return f"its schema has more than {MOST_PATTERNS} patterns"
        jsonschema_rs.validator_for(tool.parameters, offline=True)
    except (ValueError, RecursionError) as error:
        return f"its schema cannot be read: {str(error)[:200]}"
    return ""


def _patterns(value: Any, depth: int = 0) -> Iterator[int]:
    """Count the patterns in a schema.

    Raises:
        ValueError: it is nested too deep.
    """
    if depth > DEEPEST:
        raise ValueError(f"it is nested more than {DEEPEST} deep")
    if isinstance(value, dict):
        yield isinstance(value.get("pattern"), str)
        named = value.get("patternProperties")
        yield len(named) if isinstance(named, dict) else 0
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _patterns(inner, depth + 1)


# What came of a call.


def result_text(result: types.CallToolResult) -> str:
    """Write a result as text: texts as they are, structured data unless the texts repeat it; the rest is named."""
    parts = [_block_text(block) for block in result.content]
    texts = [block.text for block in result.content if block.type == "text"]
    if result.structured_content is not None and not _repeat(texts, result.structured_content):
        parts.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1))
    text = "\n".join(parts)
    more = len(text) - LONGEST_TEXT
    return without_controls(text[:LONGEST_TEXT]) + (f"\n… ({more:,} characters cut)" if more > 0 else "")


def _repeat(texts: list[str], structured: Any) -> bool:
    """Tell whether texts say the same as structured data, as the protocol recommends; `{"result": …}` is its value."""
    if not texts or sum(map(len, texts)) > LONGEST_TEXT:
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


def _block_text(block: Any) -> str:
    """Write a part of a result; what is no text is only named."""
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"({block.type}, {block.mime_type[:QUOTED]}, {len(block.data) * 3 // 4:,} bytes: not shown)"
        case "resource_link":
            return f"(a resource, {block.name[:QUOTED]!r}, at {str(block.uri)[:QUOTED]}: not fetched)"
        case _:
            held = block.resource
            if text := getattr(held, "text", ""):
                return f"(the resource {str(held.uri)[:QUOTED]})\n{text}"
            return f"(the resource {str(held.uri)[:QUOTED]}, {held.mime_type or 'of no known kind'}: not shown)"


def _short(error: BaseException) -> str:
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        return f"it does not fit the protocol: {'.'.join(map(str, fault['loc']))}: {fault['msg']}"
    return str(error) if isinstance(error, MindstreamError) else describe(error)
