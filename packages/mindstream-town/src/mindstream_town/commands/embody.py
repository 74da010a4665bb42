"""`mindstream town embody`: a person lives in a town, as a resident or as a visitor, by typed commands."""

from __future__ import annotations

import asyncio
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from mindstream.cli.shell.files import Lines
from mindstream.cli.shell.flags import AsJson, command, flag, group, switch, word
from mindstream.cli.shell.output import complain, progress_lines
from mindstream.cli.shell.stopping import run_until_stopped
from mindstream.clock import SystemClock
from mindstream.errors import InputError, ModelError
from mindstream.paths import read_text
from mindstream.settings import Settings
from mindstream.text.words import count_of
from mindstream_town import opened as towns
from mindstream_town.commands.group import MODEL, ROLE
from mindstream_town.commands.living_screen import Screen
from mindstream_town.commands.run import MODELS, RESTED
from mindstream_town.commands.typed_deeds import HELP
from mindstream_town.inspect.lookup import find_resident, find_step
from mindstream_town.town import Town

app = group()
PACE = 20.0
"""So many seconds of the town's time go by in one, where nobody says otherwise: an hour in three minutes."""
TICK_S = 1.0
LARGEST = 1 << 20
MISTAKE, SPOKEN_TO = 2, 3


@dataclass(frozen=True)
class Living:
    """How a person lives in a town."""

    name: str
    as_visitor: bool = False
    at: str = ""
    when: str = ""
    by: str = "a person"
    pace: float = 0.0
    script: Path | None = None
    json: bool = False


@command(
    app,
    MODELS,
    "mindstream town embody isabella",
    'mindstream town embody Maya --as-visitor --at "Hobbs Cafe:cafe"',
    "mindstream town embody Maya --as-visitor --script morning.txt",
    "mindstream town embody isabella --wait < commands.txt",
    notes="Commands, typed or piped, a line each:\n\n\b\n" + HELP + "\n\n"
    "Before a command, HH:MM lets time go by until then (08:30 go cafe).\n"
    "go, do and wait end sooner where somebody speaks to you. Lines of a script, and piped ones that\n"
    "are there already, are then left undone, as they are after one that cannot be done.\n"
    "At the end of the input, and after Ctrl-C, you have not left: the same command goes on, and\n"
    "`mindstream town run` lets the town go on without you.\n\n"
    "Exit code: 0; 1 where a model failed; 2 a mistake; 3 where somebody has spoken to you and lines\n"
    "are left undone; 130 after Ctrl-C.",
    model=MODEL,
    roles=ROLE,
)
def embody(
    settings: Settings,
    name: Annotated[str, word("NAME", "As whom: a resident; with --as-visitor, a name that nobody there has.")],
    as_visitor: Annotated[bool, switch("--as-visitor", "Come in from elsewhere.")] = False,
    at: Annotated[str, flag("PLACE", "Where a visitor comes in [a place that is open to all].", "--at")] = "",
    when: Annotated[str, flag("TIME", "When a visitor comes in: the town lives up to it [now].", "--when")] = "",
    by: Annotated[str, flag("NAME", "Who you are, where you live as a resident.", "--by")] = "a person",
    pace: Annotated[
        float | None, flag("X", f"So many seconds of the town's time go by in one [{PACE:g}].", min=0.1, max=3_600)
    ] = None,
    wait: Annotated[bool, switch("--wait", "Time goes by only with what you do [where input is no terminal].")] = False,
    script: Annotated[Path | None, flag("FILE", "Commands, a line each; # begins a remark. With --wait.")] = None,
    json: AsJson = False,
) -> int:
    """Live in a town while it goes on.

    What you do is seen and remembered by others as what anybody does. Who lives there may speak to you.
    """
    if wait and pace is not None:
        raise InputError("say --wait or --pace, not both")
    if script is not None and pace is not None:
        raise InputError("a --script waits: leave --pace away")
    if when and not as_visitor:
        raise InputError("--when is for a visitor: it says when somebody comes in")
    if as_visitor and by != "a person":
        raise InputError("a visitor is itself: leave --by away")
    waits = wait or script is not None or (pace is None and not sys.stdin.isatty())
    living = Living(name, as_visitor, at, when, by, 0.0 if waits else pace or PACE, script, json)
    again = f"mindstream town embody {shlex.quote(name)}{' --as-visitor' if as_visitor else ''}"
    again += f" --by {shlex.quote(by)}" if by != "a person" else ""
    kept = f"you have not left: `{again}` goes on, and `mindstream town run` goes on without you"
    try:
        left = [False]
        code = run_until_stopped(_live(settings, living, left), lambda: f"stopped; {kept}")
        if code in (0, MISTAKE, SPOKEN_TO) and not left[0]:
            complain(kept)
        return code
    except ModelError as error:
        complain(f"{error}; what was done before is kept; {kept}")
        return RESTED


async def _live(settings: Settings, living: Living, left: list[bool]) -> int:
    async with towns.open_town(settings) as town:
        name = living.name if living.as_visitor else find_resident(town.setting, living.name)
        await _come_when_said(town, living)
        me = await town.embody(name, "" if living.as_visitor else living.by, as_visitor=living.as_visitor, at=living.at)
        me.waits = not living.pace
        screen = Screen(me, living.json)
        await screen.look()
        try:
            if living.script is not None:
                return await _follow(screen, living.script)
            return await (_keep_pace(screen, living.pace) if living.pace else _obey(screen))
        finally:
            left[0] = screen.left


async def _come_when_said(town: Town, living: Living) -> None:
    """Let the town live up to when a visitor comes in, if it is not there already.

    Raises:
        InputError: it is no time, or one that is over.
    """
    here = town.residents.get(living.name)
    if not living.when or (here is not None and here.state.embodied):
        return
    step = find_step(town.setting, living.when, town.step)
    if step <= town.step:
        raise InputError(f"{living.when} is over: leave --when away, or name the day")
    with progress_lines(f"living up to {living.when}"):
        await town.run(step - 1)


async def _follow(screen: Screen, script: Path) -> int:
    """Do what a file says; return the exit code.

    Raises:
        InputError: a line of it cannot be done; what stands before it is.
    """
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
    return f"; {count_of(lines, 'line')} left undone" if lines else ""


async def _obey(screen: Screen) -> int:
    """Do what is typed or piped, while time waits; return the exit code.

    Who types sees what comes of it before the next line; so may a program that pipes, and its lines are heeded as they
    come. But what is there already was written by somebody who did not know that it would come to this.
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
            complain(f"line {line.number}: {why}{'; the lines after it are left undone' if undone else ''}")
        if undone:
            break
    return code


async def _keep_pace(screen: Screen, pace: float) -> int:
    """Do what is typed, while time goes by; in a talk a second is a second. Return the exit code."""
    me, lines, owed, elapsed = screen.me, Lines(), 0.0, SystemClock().elapsed
    complain("time goes by; help lists the commands, leave ends it")
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
