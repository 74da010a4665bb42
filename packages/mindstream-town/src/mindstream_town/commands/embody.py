"""`mindstream town embody`: control a resident or a visitor by typed commands; commands that talk with a resident or
change a town from outside."""

from __future__ import annotations

import asyncio
import shlex
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

from mindstream.cli.shell.files import Lines
from mindstream.cli.shell.flags import AsJson, command, flag, group, switch, word
from mindstream.cli.shell.output import clean, complain, print_json, progress_lines, tell
from mindstream.cli.shell.stopping import run_until_stopped
from mindstream.clock import SystemClock
from mindstream.errors import InputError, ModelError, prefixed
from mindstream.log.events import Piece
from mindstream.minds.mind import Mind
from mindstream.paths import read_text
from mindstream.settings import Settings
from mindstream.text.words import count_of
from mindstream_town import opened as towns
from mindstream_town.commands.group import MODEL, ROLE, Name
from mindstream_town.commands.run import MODELS, RESTED
from mindstream_town.commands.screen import HELP, Screen
from mindstream_town.inspect.lookup import find_object, find_resident, find_step
from mindstream_town.residents.visiting import visit
from mindstream_town.town import Town

app = group()
PACE = 20.0
"""Default pace: seconds of the town's time per second of real time. An hour in the town takes three minutes."""
TICK_S = 1.0
LARGEST = 1 << 20
MISTAKE, SPOKEN_TO = 2, 3


@command(
    app,
    MODELS,
    "mindstream town embody isabella",
    'mindstream town embody Maya --as-visitor --at "Hobbs Cafe:cafe"',
    "mindstream town embody Maya --as-visitor --script morning.txt",
    "mindstream town embody isabella --wait < commands.txt",
    notes="Commands, typed or piped, a line each:\n\n\b\n" + HELP + "\n\n"
    "HH:MM before a command waits until then (08:30 go cafe).\n"
    "go, do and wait end early if a resident speaks to you. The remaining lines of a script, and piped lines\n"
    "that were sent before it spoke, are then not run; the same applies after a line with an error.\n"
    "After the end of the input or Ctrl-C you still control the resident: run the same command again to\n"
    "continue, or `mindstream town run` to let the town run without you.\n\n"
    "Exit code: 0; 1 after a model error; 2 after a mistake; 3 if a resident has spoken to you and lines\n"
    "were not run; 130 after Ctrl-C.",
    model=MODEL,
    roles=ROLE,
)
def embody(
    settings: Settings,
    name: Annotated[str, word("NAME", "The resident to control; with --as-visitor, your name, which no resident has.")],
    as_visitor: Annotated[bool, switch("--as-visitor", "Enter the town as a visitor.")] = False,
    at: Annotated[str, flag("PLACE", "Where the visitor enters [a public place].", "--at")] = "",
    when: Annotated[str, flag("TIME", "When the visitor enters; the town first runs until then [now].", "--when")] = "",
    by: Annotated[str, flag("NAME", "Your name in the log, if you control a resident.", "--by")] = "a person",
    pace: Annotated[
        float | None, flag("X", f"Seconds of the town's time that pass per real second [{PACE:g}].", min=0.1, max=3_600)
    ] = None,
    wait: Annotated[
        bool, switch("--wait", "Time passes only during your commands [on if input is piped without --pace].")
    ] = False,
    script: Annotated[Path | None, flag("FILE", "Commands, one per line; # begins a comment. Implies --wait.")] = None,
    json: AsJson = False,
) -> int:
    """Control a resident, or enter as a visitor, while the town continues.

    Residents see and remember your acts like those of any resident, and may speak to you.
    """
    if wait and pace is not None:
        raise InputError("--wait and --pace exclude each other: give one of them")
    if script is not None and pace is not None:
        raise InputError("--script implies --wait, which excludes --pace: omit --pace")
    if when and not as_visitor:
        raise InputError("--when is the arrival time of a visitor: add --as-visitor, or omit --when")
    if as_visitor and by != "a person":
        raise InputError("--by is for controlling a resident: omit it with --as-visitor")
    waits = wait or script is not None or (pace is None and not sys.stdin.isatty())
    again = f"mindstream town embody {shlex.quote(name)}{' --as-visitor' if as_visitor else ''}"
    again += f" --by {shlex.quote(by)}" if by != "a person" else ""
    kept = f"you still control the resident: `{again}` continues, and `mindstream town run` runs the town without you"
    screens: list[Screen] = []

    async def live() -> int:
        async with towns.open_town(settings) as town:
            who = name if as_visitor else find_resident(town.setting, name)
            here = town.residents.get(name)
            if when and not (here and here.state.embodied):
                await _run_until(town, when)
            me = await town.embody(who, "" if as_visitor else by, as_visitor=as_visitor, at=at)
            me.waits = waits
            screens.append(screen := Screen(me, json))
            await screen.look()
            if script is not None:
                return await _follow(screen, script)
            return await (_obey(screen) if waits else _keep_pace(screen, pace or PACE))

    try:
        code = run_until_stopped(live(), lambda: f"stopped; {kept}")
    except ModelError as error:
        complain(f"{error}; earlier acts are stored; {kept}")
        return RESTED
    if code in (0, MISTAKE, SPOKEN_TO) and not any(each.left for each in screens):
        complain(kept)
    return code


async def _run_until(town: Town, when: str) -> None:
    """Run the town up to the time at which a visitor enters.

    Raises:
        InputError: the text is not a time, or the time is in the past.
    """
    step = find_step(town.setting, when, town.step)
    if step <= town.step:
        raise InputError(f"--when {when} is in the past: omit it, or name the day")
    with progress_lines(f"running the town up to {when}"):
        await town.run(step - 1)


async def _follow(screen: Screen, script: Path) -> int:
    """Run the commands of a file and return the exit code.

    The code is SPOKEN_TO if a resident spoke to the user before all commands were done; else 0.

    Raises:
        InputError: the file cannot be read, or a line cannot be run. The lines before this line have been run.
    """
    with prefixed(script):
        rows = enumerate(read_text(script, LARGEST).splitlines(), 1)
    lines = [(number, line) for number, line in rows if line.strip() and not line.lstrip().startswith("#")]
    for done, (number, line) in enumerate(lines, 1):
        try:
            cut = await screen.obey(line)
        except InputError as error:
            raise InputError(f"{script}:{number}: {error}{_undone(len(lines) - done)}") from None
        if screen.left:
            break
        if cut and (undone := len(lines) - done + (not cut.begun)):
            complain(f"{script}:{number}: {cut.who} has spoken to you{_undone(undone)}")
            return SPOKEN_TO
    return 0


def _undone(lines: int) -> str:
    return f"; {count_of(lines, 'line')} not run" if lines else ""


async def _obey(screen: Screen) -> int:
    """Run typed or piped commands and return the exit code. Time passes only during commands.

    Typed lines are all run. Piped lines can have been written before the previous result was known: after an
    interruption or a mistake, the lines that are already in the pipe are not run.
    """
    lines, code, typed = Lines(), 0, sys.stdin.isatty()
    while not screen.left:
        screen.prompt()
        line = await lines.next()
        if line is None:
            break
        if typed:
            await screen.try_to(line.text)
            continue
        try:
            cut, why = await screen.obey(line.text), ""
        except InputError as error:
            cut, why, code = None, str(error), MISTAKE
        undone = not screen.left and bool(cut or why) and lines.has_more()
        if cut and (undone or not cut.begun):
            why, code = f"{cut.who} has spoken to you", SPOKEN_TO
        if why:
            complain(f"line {line.number}: {why}{'; the lines after it were not run' if undone else ''}")
        if undone:
            break
    return code


async def _keep_pace(screen: Screen, pace: float) -> int:
    """Run typed commands while time passes, at the given pace; during a talk, in real time. Return the exit code."""
    me, lines, owed, elapsed = screen.me, Lines(), 0.0, SystemClock().elapsed
    complain("time passes while you type; help lists the commands, leave ends the control")
    reading = asyncio.ensure_future(lines.next())
    while not screen.left:
        since = elapsed()
        await asyncio.wait({reading}, timeout=TICK_S)
        owed += (elapsed() - since) * (1.0 if me.talks_with else pace) / me.town.setting.profile.step_s
        if owed >= 1:
            await screen.let_pass(int(owed))
            owed -= int(owed)
        if reading.done():
            line = reading.result()
            if line is None:
                break
            await screen.try_to(line.text)
            reading = asyncio.ensure_future(lines.next())
    return 0


KEPT = "the visit is stored, and the resident remembers it before the town continues"


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
    """Print the prompt on standard error, and return the next utterance; "" at the end of the input."""
    if prompt:
        print(prompt, end="", file=sys.stderr, flush=True)
    found = await lines.next()
    return found.text if found else ""


async def _answer(mind: Mind, text: str) -> None:
    """Send a text to a resident's mind, and print the answer as it is generated."""
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
    condition: Annotated[str, word("CONDITION", 'Its condition in words, such as "leaking"; "": nothing is wrong.')],
    danger: Annotated[
        bool | None,
        switch(
            "--danger/--no-danger",
            "The condition wakes sleepers in the room, and residents react to it first [as the town file or a model"
            " decides].",
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
