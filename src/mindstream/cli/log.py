"""`mindstream log`: the events of a mind."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from mindstream.cli.screens.events import aside, brief, describe_call
from mindstream.cli.shell.flags import MAX_ROWS, PLAIN, AsJson, command, flag, switch
from mindstream.cli.shell.output import clean, print_json, short
from mindstream.clock import format_iso
from mindstream.errors import InputError
from mindstream.identifiers import shown_name
from mindstream.log.events import Logged, ModelCalled
from mindstream.memory.store.store import read_log
from mindstream.service.calling import open_user_memory, require_known
from mindstream.service.memory import following
from mindstream.settings import Settings

app = typer.Typer(**PLAIN)


@command(app, "data user", "mindstream log -n 20", "mindstream log --follow --all --json")
def log(
    settings: Settings,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Also print new rows as they are written, until Ctrl-C.")
    ] = False,
    after: Annotated[int, flag("SEQ", "Only rows after the row with this number.", min=0, max=2**53)] = 0,
    limit: Annotated[int | None, flag("N", "Only the last N rows.", "--limit", "-n", min=1, max=MAX_ROWS)] = None,
    everybody: Annotated[bool, switch("--all", "Print the rows of all users.")] = False,
    otlp: Annotated[
        str, flag("URL", "Send the log as OpenTelemetry spans to this collector instead of printing it.")
    ] = "",
    with_content: Annotated[
        bool, switch("--with-content", "With --otlp: include texts (prompts, messages) in the spans.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Print the log: the numbered events of a user's mind."""
    if otlp and (follow or limit):
        raise InputError("--otlp sends complete traces of the current log: it cannot be used with --follow or --limit")
    if with_content and not otlp:
        raise InputError("--with-content applies to spans only: name a collector with --otlp URL")

    async def run() -> None:
        console = Console(highlight=False)
        async with open_user_memory(settings) as opened:
            if not (follow or everybody):  # --follow may wait for the first row
                await require_known(opened)
            user = None if everybody else opened.key
            rows, upto = read_log(opened.store, user, after), after
            if otlp:
                from mindstream.service.traces import replay, send

                sent = await send(replay(rows), otlp, content=with_content)
                print_json({"spans": sent, "to": otlp}) if json else console.print(f"{sent} spans sent to {otlp}")
                return
            shown = deque[Logged](maxlen=limit)
            async for logged in rows:
                upto = logged.seq
                if limit:
                    shown.append(logged)
                else:
                    _print(console, logged, everybody, json)
            for logged in shown:
                _print(console, logged, everybody, json)
            if follow:
                async for logged in following(opened.store, opened.clock, user, upto):
                    _print(console, logged, everybody, json)

    try:
        asyncio.run(run())
    except KeyboardInterrupt:
        if not follow:
            raise


def _print(console: Console, logged: Logged, everybody: bool, json: bool) -> None:
    if json:
        print_json(logged.row() | ({"mind": shown_name(logged.mind)} if everybody else {}))
    else:
        event = logged.event
        message = describe_call(event) if isinstance(event, ModelCalled) else aside(event) or brief(event)
        line = Text(f"{logged.seq:6d} {format_iso(logged.at)[:19].replace('T', ' ')} ", "dim")
        line.append(f"{clean(shown_name(logged.mind)) + ' ' if everybody else ''}{clean(event.kind)} ")
        line.append(f"{short(logged.by)}: ", "dim")
        line.append(clean(message))
        console.print(line, soft_wrap=True)
    sys.stdout.flush()
