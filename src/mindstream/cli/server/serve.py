"""`mindstream serve`: all doors of a data folder, for programs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from mindstream.cli.shell.flags import PLAIN, Docs, Mcp, command, flag, split_names, switch
from mindstream.settings import Settings

NOTES = """From this machine no token is asked for; from any other one always is.
What is named here, models, packs, documents, no request can change.

Exit code: 0 after SIGTERM or Ctrl-C, when answers have ended; 2 where it
cannot begin."""
app = typer.Typer(**PLAIN)


@command(
    app,
    "more_roles model roles fallback patience_s data pack gate timezone deadline_s prompts embedder"
    " budget_calls budget_tokens budget_usd",
    "mindstream serve --model openai:gpt-5-mini",
    "mindstream serve --host 0.0.0.0 --allow-host mind.example.org",
    "curl -d '{\"text\": \"Hello\"}' -H 'content-type: application/json' localhost:8377/api/v1/users/ann/send",
    notes=NOTES,
    model="Who answers, in all roles [rules].",
)
def serve(
    settings: Settings,
    host: Annotated[str, flag("ADDRESS", "Where it listens.")] = "127.0.0.1",
    port: Annotated[int, flag("N", "Its port; 0 takes one that is free.", min=0, max=65_535)] = 8377,
    tokens: Annotated[Path | None, flag("FILE", "The file of tokens [tokens.json in the data folder].")] = None,
    require_token: Annotated[bool, switch("--require-token", "Ask for a token from this machine, too.")] = False,
    allow_host: Annotated[list[str] | None, flag("NAME", "A name that it is called by; repeatable.")] = None,
    tools: Annotated[
        str, flag("A,B", "What plans and lives may call, as for solve [calculator, recall].")
    ] = "calculator,recall",
    docs: Docs = None,
    mcp: Mcp = None,
    town: Annotated[
        list[str] | None, flag("NAME=DIR", "A town that is offered, or TENANT/NAME=DIR; repeatable.")
    ] = None,
    at_once: Annotated[int, flag("N", "So many calls of each model at a time.", min=1, max=10_000)] = 64,
    allow_origin: Annotated[
        list[str] | None, flag("URL", "A page that may call it from a browser; repeatable.")
    ] = None,
) -> None:
    """Serve REST, events, a model for chat pages and MCP, until it is told to end."""
    import gc

    from mindstream.server.missing import require_server

    gc.disable()  # nothing that is loaded is garbage; the server enables it when it listens
    require_server()
    from mindstream.server.doors import app as make
    from mindstream.server.run import serve as run
    from mindstream.service.operations.offered import Offered, read_towns

    doors = make(
        settings.data, tokens=tokens, require_token=require_token, hosts=tuple(allow_host or ()),
        origins=tuple(allow_origin or ()), settings=settings, at_once=at_once,
        offered=Offered(split_names([tools]) or (), tuple(docs or ()), tuple(mcp or ()), read_towns(town or ())),
    )  # fmt: skip
    asyncio.run(run(doors, host, port))
