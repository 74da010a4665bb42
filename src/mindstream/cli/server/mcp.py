"""`mindstream mcp`: a memory as an MCP server on standard input and output."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from mindstream.cli.shell.flags import PLAIN, command, flag
from mindstream.cli.shell.output import warn_if_unpriced
from mindstream.settings import Settings

NOTES = """The MCP client starts this command; it ends when the client closes its input.
`mindstream serve` offers the same memory over HTTP, at /mcp and /mcp/NAME.

Exit code: 0 when the input has ended; 2 if it cannot start."""
app = typer.Typer(**PLAIN)


@command(
    app,
    "more_roles model roles fallback patience_s data user pack timezone embedder budget_calls budget_tokens budget_usd"
    " redact",
    "mindstream mcp --user ann",
    "mindstream mcp --tools plan,pool --model openai:gpt-5-mini",
    notes=NOTES,
    model="The model of all roles [rules].",
)
def mcp(
    settings: Settings,
    tools: Annotated[
        str, flag("A,B,…", "Additional sets of tools that the client may call: care, plan, pool, town.")
    ] = "",
) -> None:
    """Serve one memory to an MCP client, on standard input and output."""
    from mindstream.server.asgi import require_server

    require_server()
    from mindstream.server.mcp.stdio import serve_stdio
    from mindstream.server.mcp.tools import checked_sets
    from mindstream.service.operations.runtime import runtime_for

    warn_if_unpriced(settings)
    asyncio.run(serve_stdio(runtime_for(settings.data, settings), settings.user, checked_sets(tools)))
