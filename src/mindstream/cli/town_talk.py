"""`mindstream town talk`: a person talks with a resident, in a terminal or line by line."""

from __future__ import annotations

import sys
from contextlib import aclosing
from typing import Annotated

from mindstream.cli.clean import clean, complain
from mindstream.cli.flags import AsJson, command, flag, word
from mindstream.cli.json_lines import print_json
from mindstream.cli.lines import Lines
from mindstream.cli.stopping import run_until_stopped
from mindstream.cli.town import RESTED
from mindstream.cli.town_group import MODEL, ROLE, app
from mindstream.errors import InputError, ModelError
from mindstream.log.events import Piece
from mindstream.minds.mind import Mind
from mindstream.service import town as towns
from mindstream.settings import Settings
from mindstream.town.inspect.lookup import find_resident
from mindstream.town.residents.visiting import visit

KEPT = "what was heard is kept, and thought about before the town goes on"


@command(
    app, "model roles town embedder", 'mindstream town talk isabella "Is there a party?" --by Maya',
    "mindstream town talk isabella --by Maya          typed, until Ctrl-D",
    "mindstream town talk isabella < utterances.txt",
    notes="Exit code: 0; 1 where a model failed; 2 a mistake; 130 after Ctrl-C. What was\n"
    "heard is kept in any case, and thought about before the town goes on.",
    model=MODEL, roles=ROLE,
)  # fmt: skip
def talk(
    settings: Settings,
    name: Annotated[str, word("NAME", "With whom; the first name is enough.")],
    text: Annotated[str | None, word("TEXT", "What you say; without it you type, or pipe, line by line.")] = None,
    by: Annotated[str, flag("NAME", "Who you are.", "--by")] = "a visitor",
    json: AsJson = False,
) -> int:
    """Talk with somebody, while the town stands still.

    The resident answers at once and remembers it. Come again with the same --by before the next run, and the talk goes
    on. What you agree on for today comes into the resident's plan.
    """
    if text is not None and not text.strip():
        raise InputError("TEXT is empty: say something, or leave it out to type line by line")
    try:
        return run_until_stopped(_talk(settings, name, text or "", by, json), lambda: f"stopped; {KEPT}")
    except ModelError as error:
        complain(f"{error}; {KEPT}")
        return RESTED


async def _talk(settings: Settings, name: str, text: str, by: str, json: bool) -> int:
    async with towns.open_town(settings) as town, visit(town, find_resident(town.setting, name), by) as mind:
        lines, is_prompted = Lines(), not text and not json and sys.stdin.isatty()
        if is_prompted:
            complain(f"you talk with {mind.responder.title}; an empty line or Ctrl-D ends it")
        while line := text or await _next_line(lines, f"{by}: " if is_prompted else ""):
            if json:
                print_json({"resident": mind.responder.title, "said": line.strip(), "answer": await mind.say(line)})
            else:
                await _answer(mind, line)
            if text:
                break
        await mind.settled()
    return 0


async def _next_line(lines: Lines, prompt: str) -> str:
    """Return the next utterance; "" where there is none."""
    if prompt:
        print(prompt, end="", file=sys.stderr, flush=True)
    found = await lines.next()
    return found.text if found else ""


async def _answer(mind: Mind, text: str) -> None:
    """Print an answer as it comes."""
    name = f"{clean(mind.responder.title)}: "
    async with aclosing(mind.hear(text)) as events:
        async for row in events:
            if isinstance(row.event, Piece):
                print(f"{name}{clean(row.event.text)}", end="", flush=True)
                name = ""
    print()
