"""Official MCP clients for tests, for both generations of the protocol."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

ERAS = ("2026-07-28", "legacy")
"""Values of `Client(mode=…)`: the stateless protocol, or the handshake of 2025."""


def on_stdio(data: Path, *flags: str, mode: str = "auto") -> Client:
    """Return a client that starts `mindstream mcp`."""
    words = ["-m", "mindstream", "mcp", "--data", str(data), *flags]
    return Client(StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ)), mode=mode)


@contextlib.asynccontextmanager
async def over_http(url: str, headers: dict[str, str] | None = None, mode: str = "auto") -> AsyncIterator[Client]:
    """Yield a client of the server at a URL."""
    async with (
        create_mcp_http_client(headers) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    """Call a tool and return its result; an error fails the test."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that returns an error, and return the message."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(getattr(result.content[0], "text", ""))
