"""Commands of `mindstream town` that talk with a resident or change a town from outside."""

from __future__ import annotations

import sys
from contextlib import aclosing
from typing import Annotated

from mindstream.cli.shell.files import Lines
from mindstream.cli.shell.flags import AsJson, command, flag, group, switch, word
from mindstream.cli.shell.output import clean, complain, print_json, tell
from mindstream.cli.shell.stopping import run_until_stopped
from mindstream.errors import InputError, ModelError
from mindstream.log.events import Piece
from mindstream.minds.mind import Mind
from mindstream.settings import Settings
from mindstream_town import opened as towns
from mindstream_town.commands.group import MODEL, ROLE, Name
from mindstream_town.commands.run import RESTED
from mindstream_town.inspect.lookup import find_object, find_resident
from mindstream_town.residents.visiting import visit

app = group()
KEPT = "the visit is stored, and the resident reflects on it before the town continues"


@command(
    app,
    "model roles town embedder",
    'mindstream town talk isabella "Is there a party?" --by Maya',
    "mindstream town talk isabella --by Maya          typed, until Ctrl-D",
    "mindstream town talk isabella < utterances.txt",
    notes="Exit code: 0; 1 after a model error; 2 after a mistake; 130 after Ctrl-C. The\n"
    "visit is always stored, and the resident remembers it before the town continues.",
    model=MODEL,
    roles=ROLE,
)
def talk(
    settings: Settings,
    name: Annotated[str, word("NAME", "The resident; the first name is enough.")],
    text: Annotated[str | None, word("TEXT", "What you say; without it, type or pipe line by line.")] = None,
    by: Annotated[str, flag("NAME", "Your name, as the resident knows you.", "--by")] = "a visitor",
    json: AsJson = False,
) -> int:
    """Talk with a resident while the town's clock is stopped.

    The resident answers at once and remembers the talk. Until the town runs again, another `talk` with the same --by
    continues this talk. Agreements for today are added to the resident's plan.
    """
    if text is not None and not text.strip():
        raise InputError("TEXT is empty: give a text, or omit TEXT to type line by line")
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
                print_json({"resident": mind.responder.title, "said": line.strip(), "answer": await mind.send(line)})
            else:
                await _answer(mind, line)
            if text:
                break
        await mind.settled()
    return 0


async def _next_line(lines: Lines, prompt: str) -> str:
    """Return the next utterance; "" at the end of the input."""
    if prompt:
        print(prompt, end="", file=sys.stderr, flush=True)
    found = await lines.next()
    return found.text if found else ""


async def _answer(mind: Mind, text: str) -> None:
    """Print an answer as it is generated."""
    name = f"{clean(mind.responder.title)}: "
    async with aclosing(mind.hear(text)) as events:
        async for row in events:
            if isinstance(row.event, Piece):
                print(f"{name}{clean(row.event.text)}", end="", flush=True)
                name = ""
    print()


@command(
    app,
    "town",
    'mindstream town set "Isabella Rodriguez\'s apartment:bathroom:shower" leaking',
    'mindstream town set cafe:piano ""        in order again',
    'mindstream town set kitchen:stove "on fire" --danger',
    name="set",
)
async def set_(
    settings: Settings,
    place: Annotated[str, word("OBJECT", "Address (house:room:object), or its end if only one object matches.")],
    condition: Annotated[str, word("CONDITION", 'Its condition in words, such as "leaking"; "": in order again.')],
    danger: Annotated[
        bool | None,
        switch(
            "--danger/--no-danger",
            "The condition wakes sleepers in the room and has priority [the town file or a model decides].",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Change the condition of an object; residents who see it may react."""
    condition = condition.strip()
    async with towns.open_town(settings) as town:
        address = find_object(town.setting, place)
        is_danger = await town.set_object(address, condition, danger=danger)
    row = {"place": address, "condition": condition, "danger": is_danger}
    tell(json, row, f"{address} is {condition or 'in order again'}{', a danger' if is_danger else ''}")


@command(app, "town embedder", 'mindstream town whisper "Sam Moore" "The lake will be drained on Friday."')
async def whisper(
    settings: Settings,
    name: Name,
    text: Annotated[str, word("TEXT", "The thought, as a whole sentence.")],
    json: AsJson = False,
) -> None:
    """Add a thought to a resident's memory.

    The resident may use the thought in plans, and tell it to others.
    """
    async with towns.open_town(settings) as town:
        whom = find_resident(town.setting, name)
        id_ = (await town.whisper(whom, text)).id
    tell(json, {"resident": whom, "record": id_, "text": text.strip()}, f"the thought is in {whom}'s memory")
