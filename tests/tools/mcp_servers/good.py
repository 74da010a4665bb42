"""An MCP server of the SDK, over stdio, or over HTTP if a port is given."""

from __future__ import annotations

import asyncio
import os
import sys

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("good")
here, waiting = asyncio.Condition(), list[int]()


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def meet(count: int) -> str:
    """Wait until a number of calls run at once."""
    async with here:
        waiting.append(count)
        here.notify_all()
        await here.wait_for(lambda: len(waiting) >= count)
    return f"met {count}"


@server.tool()
def variable(name: str) -> str:
    """Tell a variable of the environment."""
    return os.environ.get(name, "not set")


@server.tool()
def fails() -> str:
    """Fail."""
    raise ValueError("there is no paper left")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
