"""`mindstream log`: everything that happened to a mind."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator

from rich.console import Console
from rich.text import Text

from mindstream.cli.asides import aside, brief, describe_call
from mindstream.cli.clean import clean, short
from mindstream.cli.json_lines import print_json
from mindstream.clock import format_iso
from mindstream.log.events import Logged, ModelCalled
from mindstream.service.memory import events, following, memory
from mindstream.settings import Settings


def print_log(settings: Settings, follow: bool, after: int, last: int | None, everybody: bool, json: bool) -> int:
    """Print the rows after a seq, or only the last ones; then go on where `follow` says so."""

    async def run() -> None:
        console = Console(highlight=False)
        async with memory(settings) as opened:
            known = (
                opened if follow or everybody else await opened.require_known()
            )  # to follow is to wait for what is to come
            user = None if everybody else known.user
            rows, upto = events(opened.store, user, after), after
            async for logged in _last(rows, last) if last else rows:
                upto = logged.seq
                _print(console, logged, everybody, json)
            if not follow:
                return
            async for logged in following(opened.store, opened.clock, user, upto):
                _print(console, logged, everybody, json)

    try:
        asyncio.run(run())
    except KeyboardInterrupt:
        if not follow:
            raise
    return 0


async def _last(rows: AsyncIterator[Logged], n: int) -> AsyncIterator[Logged]:
    kept = deque[Logged](maxlen=n)
    async for logged in rows:
        kept.append(logged)
    for logged in kept:
        yield logged


def _print(console: Console, logged: Logged, everybody: bool, json: bool) -> None:
    if json:
        print_json(logged.row() | ({"mind": logged.mind} if everybody else {}))
    else:
        event = logged.event
        told = describe_call(event) if isinstance(event, ModelCalled) else aside(event) or brief(event)
        line = Text(f"{logged.seq:6d} {format_iso(logged.at)[:19].replace('T', ' ')} ", "dim")
        line.append(f"{clean(logged.mind) + ' ' if everybody else ''}{clean(event.kind)} ")
        line.append(f"{short(logged.by)}: ", "dim")
        line.append(clean(told))
        console.print(line, soft_wrap=True)
    sys.stdout.flush()
