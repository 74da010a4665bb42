"""`mindstream mcp`: a memory for a program that speaks the Model Context Protocol, on standard input and output."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from mindstream.cli.shell.flags import PLAIN, command, flag
from mindstream.cli.shell.output import warn_if_unpriced
from mindstream.settings import Settings

NOTES = """It is started by the program that uses it, and ends when that closes its input.
Over HTTP the same is at /mcp and /mcp/NAME of `mindstream serve`.

Exit code: 0 when the input has ended; 2 where it cannot begin."""
app = typer.Typer(**PLAIN)


@command(
    app,
    "more_roles model roles fallback patience_s data user pack timezone embedder budget_calls budget_tokens budget_usd"
    " redact",
    "mindstream mcp --user ann",
    "mindstream mcp --tools plan,pool --model openai:gpt-5-mini",
    notes=NOTES,
    model="Who thinks, in all roles [rules].",
)
def mcp(
    settings: Settings,
    tools: Annotated[str, flag("A,B,…", "More tools than the usual: care, plan, pool, town.")] = "",
) -> None:
    """Serve one memory to a program that speaks MCP, on standard input and output."""
    from mindstream.server.asgi import require_server

    require_server()
    from mindstream.server.mcp.stdio import serve_stdio
    from mindstream.server.mcp.tools import checked_sets
    from mindstream.service.operations.runtime import runtime_for

    warn_if_unpriced(settings)
    asyncio.run(serve_stdio(runtime_for(settings.data, settings), settings.user, checked_sets(tools)))
