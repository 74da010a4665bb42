"""`mindstream town talk`: a person talks with a resident, in a terminal or line by line."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing

from mindstream.cli.clean import clean, complain
from mindstream.cli.json_lines import print_json
from mindstream.cli.lines import Lines
from mindstream.cli.stopping import Stopping
from mindstream.cli.town import RESTED
from mindstream.errors import InputError, ModelError
from mindstream.log.events import Piece
from mindstream.minds.mind import Mind
from mindstream.service import town as towns
from mindstream.settings import Settings
from mindstream.town.lookup import find_resident
from mindstream.town.visiting import visit


def talk(settings: Settings, name: str, text: str | None, by: str, json: bool) -> int:
    """Talk with somebody: one utterance, or one a line of standard input; return the exit code.

    Raises:
        InputError: an utterance without a word.
    """
    if text is not None and not text.strip():
        raise InputError("TEXT is empty: say something, or leave it out to type line by line")
    stopping = Stopping()
    try:
        asyncio.run(_talk(settings, name, text or "", by, json, stopping))
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        if stopping.signal is None and not isinstance(error, KeyboardInterrupt):
            raise
        complain("stopped; what was heard is kept, and thought about before the town goes on")
        return stopping.code
    except ModelError as error:
        complain(f"{error}; what was heard is kept, and thought about before the town goes on")
        return RESTED
    return 0


async def _talk(settings: Settings, name: str, text: str, by: str, json: bool, stopping: Stopping) -> None:
    stopping.heed(interrupt=True)
    async with towns.open_town(settings) as town, visit(town, find_resident(town.setting, name), by) as mind:
        lines, is_prompted = Lines(), not text and not json and sys.stdin.isatty()
        if is_prompted:
            complain(f"you talk with {mind.speaker.title}; an empty line or Ctrl-D ends it")
        while line := text or await _next_line(lines, f"{by}: " if is_prompted else ""):
            if json:
                print_json({"resident": mind.speaker.title, "said": line.strip(), "answer": await mind.say(line)})
            else:
                await _answer(mind, line)
            if text:
                break
        await mind.settled()


async def _next_line(lines: Lines, prompt: str) -> str:
    """Return the next utterance; "" where there is none."""
    if prompt:
        print(prompt, end="", file=sys.stderr, flush=True)
    found = await lines.next()
    return found.text if found else ""


async def _answer(mind: Mind, text: str) -> None:
    """Print an answer as it comes."""
    name = f"{clean(mind.speaker.title)}: "
    async with aclosing(mind.hear(text)) as events:
        async for row in events:
            if isinstance(row.event, Piece):
                print(f"{name}{clean(row.event.text)}", end="", flush=True)
                name = ""
    print()
