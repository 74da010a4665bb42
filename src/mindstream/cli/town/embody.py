"""`mindstream town embody`: a person lives in a town, as a resident or as a visitor, by typed commands."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from mindstream.cli.screens.embodied import lines_of, look_lines, place_lines, plan_lines, who_lines
from mindstream.cli.shell.files import Lines
from mindstream.cli.shell.flags import AsJson, command, flag, group, switch, word
from mindstream.cli.shell.output import complain, print_json, say_lines
from mindstream.cli.shell.stopping import run_until_stopped
from mindstream.cli.town.group import MODEL, ROLE
from mindstream.cli.town.run import MODELS, RESTED
from mindstream.cli.town.typed_deeds import HELP, Typed, addressee, read_typed
from mindstream.clock import SystemClock
from mindstream.errors import InputError, ModelError
from mindstream.paths import read_text
from mindstream.service import town as towns
from mindstream.settings import Settings
from mindstream.town.embody.embodied import Embodied
from mindstream.town.inspect.lookup import find_object, find_resident, find_step

app = group()
PACE = 20.0
"""So many seconds of the town's time go by in one, where nobody says otherwise: an hour in three minutes."""
TICK_S = 1.0
LARGEST = 1 << 20


@dataclass(frozen=True)
class Living:
    """How a person lives in a town."""

    name: str
    as_visitor: bool = False
    at: str = ""
    by: str = "a person"
    pace: float = 0.0
    script: Path | None = None
    json: bool = False


@command(
    app, MODELS, "mindstream town embody isabella", 'mindstream town embody Maya --as-visitor --at "Hobbs Cafe:cafe"',
    "mindstream town embody Maya --as-visitor --script morning.txt",
    "mindstream town embody isabella --wait < commands.txt",
    notes="Commands, typed or piped, a line each:\n\n\b\n" + HELP + "\n\n"
    "Before a command, HH:MM lets time go by until then (08:30 go cafe).\n"
    "At the end of the input, and after Ctrl-C, you have not left: the same command goes on, and\n"
    "`mindstream town run` lets the town go on without you.\n\n"
    "Exit code: 0; 1 where a model failed; 2 a mistake; 130 after Ctrl-C.",
    model=MODEL, roles=ROLE,
)  # fmt: skip
def embody(
    settings: Settings,
    name: Annotated[str, word("NAME", "As whom: a resident; with --as-visitor, a name that nobody there has.")],
    as_visitor: Annotated[bool, switch("--as-visitor", "Come in from elsewhere.")] = False,
    at: Annotated[str, flag("PLACE", "Where a visitor comes in [a place that is open to all].", "--at")] = "",
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
    if as_visitor and by != "a person":
        raise InputError("a visitor is itself: leave --by away")
    waits = wait or script is not None or (pace is None and not sys.stdin.isatty())
    living = Living(name, as_visitor, at, by, 0.0 if waits else pace or PACE, script, json)
    again = f"mindstream town embody {shlex.quote(name)}{' --as-visitor' if as_visitor else ''}"
    again += f" --by {shlex.quote(by)}" if by != "a person" else ""
    kept = f"you have not left: `{again}` goes on, and `mindstream town run` goes on without you"
    try:
        left = [False]
        code = run_until_stopped(_live(settings, living, left), lambda: f"stopped; {kept}")
        if not code and not left[0]:
            complain(kept)
        return code
    except ModelError as error:
        complain(f"{error}; what was done before is kept; {kept}")
        return RESTED


async def _live(settings: Settings, living: Living, left: list[bool]) -> int:
    async with towns.open_town(settings) as town:
        name = living.name if living.as_visitor else find_resident(town.setting, living.name)
        me = await town.embody(name, living.by, as_visitor=living.as_visitor, at=living.at)
        me.waits = not living.pace
        screen = Screen(me, living.json)
        await screen.look()
        if living.script is not None:
            left[0] = await _follow(screen, living.script)
        elif living.pace:
            left[0] = await _keep_pace(screen, living.pace)
        else:
            left[0] = await _obey(screen)
    return 0


async def _follow(screen: Screen, script: Path) -> bool:
    """Do what a file says; tell whether the person has left.

    Raises:
        InputError: a line of it cannot be done; what stands before it is.
    """
    for number, line in enumerate(read_text(script, LARGEST).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            if await screen.obey(line):
                return True
        except InputError as error:
            raise InputError(f"{script}:{number}: {error}") from None
    return False


async def _obey(screen: Screen) -> bool:
    """Do what is typed, while time waits; tell whether the person has left."""
    lines = Lines()
    while True:
        screen.prompt()
        line = await lines.next()
        if line is None:
            return False
        if await screen.try_to(line.text):
            return True


async def _keep_pace(screen: Screen, pace: float) -> bool:
    """Do what is typed, while time goes by; in a talk a second is a second. Tell whether the person has left."""
    me, lines, owed, elapsed = screen.me, Lines(), 0.0, SystemClock().elapsed
    complain("time goes by; help lists the commands, leave ends it")
    reading = asyncio.ensure_future(lines.next())
    while True:
        since = elapsed()
        await asyncio.wait({reading}, timeout=TICK_S)
        owed += (elapsed() - since) * (1.0 if me.talks_with else pace) / me.town.setting.profile.step_s
        if owed >= 1:
            await me.wait(until=me.town.step + int(owed))
            owed -= int(owed)
            await screen.tell()
        if reading.done():
            line = reading.result()
            if line is None:
                return False
            if await screen.try_to(line.text):
                return True
            reading = asyncio.ensure_future(lines.next())


class Screen:
    """What a person types, done; and what comes of it, shown."""

    def __init__(self, me: Embodied, json: bool) -> None:
        self.me, self.json = me, json
        self._told = me.town.step

    def prompt(self) -> None:
        """Ask for a command, where somebody sits there."""
        if sys.stdin.isatty() and not self.json:
            when = self.me.town.setting.when(max(self.me.town.step, 0))
            print(f"{when:%H:%M} > ", end="", file=sys.stderr, flush=True)

    async def try_to(self, line: str) -> bool:
        """Do what a line says, or say what is wrong with it."""
        try:
            return await self.obey(line)
        except InputError as error:
            complain(str(error))
            return False

    async def obey(self, line: str) -> bool:
        """Do what a line says, and show what came of it; tell whether the person has left.

        Raises:
            InputError: it is no command, or cannot be done.
        """
        typed = read_typed(line)
        if typed.at:
            await self._wait_until(typed.at)
        if typed.verb == "help":
            say_lines(HELP.splitlines())
        elif typed.verb in ("look", "who", "places", "plan"):
            await self.look(typed.verb)
        else:
            await self._do(typed)
            await self.tell(typed.verb)
        return typed.verb == "leave"

    async def look(self, what: str = "look") -> None:
        """Show what is around."""
        seen = await self.me.look()
        lines = {"look": look_lines, "who": who_lines, "places": place_lines, "plan": plan_lines}[what](seen)
        self._show(seen.model_dump(mode="json") | {"command": what}, list(lines))

    async def tell(self, verb: str = "") -> None:
        """Show what happened since it was shown last, and after a command where one is."""
        seen = await self.me.look(self._told)
        self._told = self.me.town.step
        lines = list(lines_of(seen.happened, self.me.name))
        if verb in ("go", "do", "wait"):
            lines += list(look_lines(seen))[:1]
        if lines:
            self._show(seen.model_dump(mode="json") | {"command": verb}, lines)

    def _show(self, row: dict[str, object], lines: Sequence[str]) -> None:
        if self.json:
            print_json(row)
        else:
            say_lines(lines)

    async def _wait_until(self, time: str) -> None:
        until = find_step(self.me.town.setting, time, self.me.town.step)
        if until < self.me.town.step:
            raise InputError(f"{time} is over")
        while self.me.town.step < until:
            await self.me.wait(until=until)

    async def _do(self, typed: Typed) -> None:
        me, town, words = self.me, self.me.town, typed.words
        match typed.verb:
            case "go":
                await me.go(words[0])
            case "do":
                await me.do(words[0], typed.minutes or 1, typed.place)
            case "say":
                text, to = addressee(words[0], [each.name for each in (await me.look()).people])
                await me.say(text, to)
            case "decline":
                await me.decline()
            case "wait" if typed.until:
                await me.wait(until=find_step(town.setting, typed.until, town.step))
            case "wait":
                await me.wait(typed.minutes)
            case "whisper":
                await town.whisper(find_resident(town.setting, words[0]), words[1])
            case "set":
                await town.set_object(find_object(town.setting, words[0]), words[1].strip(), by=me.name)
            case "leave":
                await me.leave()
