"""`mindstream demo`: recordings of what it does with a language model, and then whoever can answer you here."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sys
import tempfile
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import typer
from mindstream_town.commands.screen import describe
from mindstream_town.events import Talked, TownEvent
from rich.console import Console
from rich.text import Text

from mindstream.cli.screens.life import LifeScreen
from mindstream.cli.screens.run import PlainScreen
from mindstream.cli.screens.talk import PlainConsole, TextScreen
from mindstream.cli.shell.flags import PLAIN, AsJson, command, flag, switch, word
from mindstream.cli.shell.output import clean, complain, confirm, print_json, say, short
from mindstream.clock import STARTED
from mindstream.log.events import Heard, Logged, Piece, Said, Thought, Waiting
from mindstream.planning.events import RunPlanned, Solved, Solving, StepBegan, StepFound
from mindstream.planning.evidence import Evidence
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.service.local_model import Found, find_models
from mindstream.settings import Settings
from mindstream.sharing.events import ExemplarJudged, ExemplarOffered, PoolCreated, RubricFrozen
from mindstream_studio.demos import Demo, load_demo

MORNING = "Feb 13 10:00"
"""Until then the town that ships is lived."""
LONGEST_S = 2.0
"""No pause of a recording is longer than that: a mind that thinks for a minute is not watched for a minute."""


app = typer.Typer(**PLAIN)


@command(
    app,
    "model pack data user",
    "mindstream demo",
    "mindstream demo town --speed 3",
    "mindstream demo coach --json",
    notes="Each is a log that was recorded with a language model, and says so.",
    model="With --talk: as for chat.",
    pack="With --talk: as for chat.",
)
def demo(
    settings: Settings,
    name: Annotated[Literal["coach", "plan", "life", "town", "pool"], word("[NAME]", "Which one.")] = "coach",
    speed: Annotated[
        float | None, flag("X", "So many times as fast [1; at once where nobody watches].", min=0.01, max=1000)
    ] = None,
    json: AsJson = False,
    talk: Annotated[bool, switch("--talk", "Then go on with you; Ctrl-C skips the recording.")] = False,
) -> int:
    """Play a recording of the coach, a plan, a life, a town or a pool.

    No model is asked, no key is needed, and nothing of yours is touched.
    """
    if talk:
        return first_sight(settings, name, speed)
    recording = load_demo(name)
    if json:
        print_json({"event": "recording", **recording.head.model_dump(mode="json")})
        print_json(*(row.row() for row in recording.rows))
        return 0
    try:
        play_out(recording, speed)
        if name == "town" and sys.stdout.isatty():
            live_a_morning()
    except KeyboardInterrupt:
        complain("stopped")
        return 128 + signal.SIGINT
    return 0


def play_out(recording: Demo, speed: float | None) -> None:
    """Show a recording to its end.

    Args:
        speed: how many times as fast; None: as it was where somebody watches, and at once where nobody does.

    Raises:
        KeyboardInterrupt: somebody had enough of it.
    """
    fast = speed or (1.0 if sys.stdout.isatty() else 0.0)

    async def pause(seconds: float) -> None:
        if fast:
            await asyncio.sleep(min(max(seconds, 0.0), LONGEST_S) / fast)

    try:
        asyncio.run(play(recording, pause))
    except KeyboardInterrupt:
        print()  # the line that was broken off
        raise


def live_a_morning() -> None:
    """Let the town that ships live until ten, here and now, and write a page that plays it."""
    from mindstream_town.commands import run, saves

    folder = Path(tempfile.mkdtemp(prefix="mindstream-town-"))
    settings = Settings(data=folder / "ville")
    say("And the town that ships, lived here and now by stand-ins, who keep to its days and appointments:")
    run.begin(settings, "smallville", 1)
    if run.live(settings, run.Span(until=MORNING), run.TownOptions()) == 0:
        saves.write_page(settings, folder / "ville.html")


async def play(recording: Demo, pause: Pause) -> None:
    """Show a recording, and before and after it that it is one."""
    console = PlainConsole(highlight=False)
    head = recording.head
    source = f" ({head.source})" if head.source else ""
    for text, style in (
        (f"A recording of {head.recorded.day} {head.recorded:%B %Y}: {head.title}{source}.", "bold"),
        (f"{head.who} answered then; nothing is asked now, and nothing of yours is touched.\n", "dim"),
    ):
        console.print(Text(text, style), soft_wrap=not console.is_terminal)
    await SCREENS[head.demo](recording, console, pause)
    console.print(Text("\nThe recording is over.\n", "dim"))


STEP_S = 10
"""Seconds of a town's step."""
WORD_S, LINE_S, MOMENT_S = 0.03, 1.0, 0.25
"""How long a word is looked at, a line of a talk, and a row whose own time is not known."""
Pause = Callable[[float], Awaitable[None]]


class Replayed:
    """Who is asked whether something is still thought about: whoever knows what comes."""

    def __init__(self, rows: Sequence[Logged]) -> None:
        self._thoughts = [(row.seq, max(row.event.about, default=0)) for row in rows if isinstance(row.event, Thought)]
        self.thinking = False

    def reach(self, seq: int) -> None:
        """Know what is thought about at a row."""
        self.thinking = any(about < seq < thought for thought, about in self._thoughts)


async def show_talk(demo: Demo, console: Console, pause: Pause) -> None:
    """Play a talk: words come one by one."""
    screen = TextScreen(console, echo=True, timed=demo.head.timed, thinks=True)
    ahead = Replayed(demo.rows)
    screen.watch(ahead)
    began = demo.rows[0].at
    async for row in _in_time(demo, pause):
        ahead.reach(row.seq)
        event = row.event
        if isinstance(event, Said):
            for n, word in enumerate(event.text.split(" ")):
                screen.show(replace(row, event=Piece(text=f" {word}" if n else word, answers=event.answers)))
                await pause(WORD_S)
        elif isinstance(event, Heard | Waiting):
            await pause(MOMENT_S)
        screen.show(replace(row, at=STARTED + row.at - began))


async def show_life(demo: Demo, console: Console, pause: Pause) -> None:
    """Play turns of a life."""
    screen = LifeScreen(console)
    async for row in _in_time(demo, pause):
        screen.show(row)


async def show_plan(demo: Demo, console: Console, pause: Pause) -> None:
    """Play runs of plans, each with its answer."""
    screen = PlainScreen(console)
    async for row in _in_time(demo, pause):
        match row.event:
            case Solving():
                screen = PlainScreen(console)
                console.print(Text(f"\ntask: {clean(row.event.task)}", "bold cyan"), soft_wrap=True)
            case RunPlanned():
                await screen.planned(Plan.model_validate(row.event.plan), row.event.because)
            case StepBegan():
                await screen.began(PlannedStep(id=row.event.step, tool=row.event.tool), row.event.arguments)
            case StepFound():
                found = row.event
                await screen.found(Evidence(found.step, found.text, found.failed, seconds=found.seconds))
            case Solved():
                console.print(Text(f"answer: {clean(row.event.answer)}", "bold green"), soft_wrap=True)
                if row.event.unanswered:
                    console.print(Text(f"not found: {clean(row.event.unanswered)}", "yellow"), soft_wrap=True)


async def show_town(demo: Demo, console: Console, pause: Pause) -> None:
    """Play some hours of a town: what residents do, decide, and all that they say to each other."""
    start = datetime.fromisoformat(demo.head.start)
    async for row in _in_time(demo, pause):
        if not isinstance(row.event, TownEvent):
            continue
        when = f"{start + timedelta(seconds=STEP_S * row.event.step):%b %d %H:%M}"
        if isinstance(row.event, Talked):
            if row.event.lines and row.event.lines[0].by == row.mind:
                for line in row.event.lines:
                    said = (f"{clean(line.by)}: ", "bold green"), clean(line.text)
                    console.print(Text.assemble((f"{when}  ", "dim"), *said), soft_wrap=True)
                    await pause(LINE_S)
        elif told := describe(row.mind, row.event):
            console.print(Text.assemble((f"{when}  ", "dim"), clean(told)), soft_wrap=True)


async def show_pool(demo: Demo, console: Console, pause: Pause) -> None:
    """Play what was offered to a pool and how it was graded."""
    asked, owner = dict[str, str](), ""
    async for row in _in_time(demo, pause):
        event = row.event
        match event:
            case PoolCreated():
                owner = event.owner
                console.print(Text(f"a pool: {clean(event.domain)}", "bold"), soft_wrap=True)
            case RubricFrozen():
                asks = tomllib.loads(event.rubric)["criteria"]
                named = ", ".join(f"{each['name']} ({each['points']})" for each in asks)
                console.print(Text(f"the rubric: {clean(named)}", "dim"), soft_wrap=True)
            case Heard():
                console.print(Text(f"\n{clean(event.text)}", "bold cyan"), soft_wrap=True)
            case Said():
                console.print(Text(f"{clean(row.by)}: {clean(event.text)}", "dim"), soft_wrap=True)
                await pause(LINE_S)
            case ExemplarOffered() if row.by == owner:
                console.print(Text(f"  · laid in: {clean(event.query)}", "dim"), soft_wrap=True)
            case ExemplarOffered():
                asked[event.id] = event.query
                console.print(Text(f"{clean(row.by)}, with it: {clean(event.answer)}", "green"), soft_wrap=True)
                await pause(LINE_S)
            case ExemplarJudged() if not event.by_hand:
                of = short(asked.get(event.id, event.id), 60)
                grades = ", ".join(f"{name} {points:g}" for name, points in event.grades.items())
                console.print(
                    Text(f"  · {event.verdict}, {event.score:g} points: {of} ({grades})", "yellow"), soft_wrap=True
                )


async def _in_time(demo: Demo, pause: Pause) -> AsyncIterator[Logged]:
    """Yield the rows, each after as long as it took; where that is not known, after a moment."""
    before = demo.rows[0].at
    for row in demo.rows:
        await pause(row.at - before if demo.head.timed else MOMENT_S)
        before = row.at
        yield row


SCREENS: dict[str, Callable[[Demo, Console, Pause], Awaitable[None]]] = {
    "coach": show_talk,
    "plan": show_plan,
    "life": show_life,
    "town": show_town,
    "pool": show_pool,
}

MEMORY = """
Without a model nobody here understands you, and the memory works: a file of your own, in {data}.
  {command} memory retain "The spare key hangs behind the door."      retain
  {command} memory recall where is the key                            recall
  {command} memory correct ID "The spare key hangs in the shed now."  correct
  {command} memory forget ID                                          forget, for good
  {command} memory export                                             take it with you
What follows is a talk by stand-ins. Ctrl-D leaves."""
GO_ON = """
Go on in a terminal: `{command} chat`, or one utterance a line: echo "I sleep badly" | {command} chat
`{command} studio` opens pages to look at all of it: these recordings, and what is yours.
`{command} demo plan`, life, town and pool play the other recordings; `{command} doctor` says what is missing."""


def first_sight(settings: Settings, name: str, speed: float | None) -> int:
    """Play a recording, then talk; without a terminal say how to go on. Return the exit code."""
    from mindstream.cli.chat import hold
    from mindstream.cli.conversation import TalkOptions
    from mindstream.cli.shell.flags import silent_keys

    watched = sys.stdin.isatty() and sys.stdout.isatty()
    if watched:
        say("Ctrl-C skips the recording.")
    skips = contextlib.suppress(KeyboardInterrupt) if watched else contextlib.nullcontext()
    with skips, silent_keys() if watched else contextlib.nullcontext():
        play_out(load_demo(name), speed)
    if settings.only_stand_ins:
        found = asyncio.run(find_models())
        if not watched:
            _tell(found)
        elif model := _offer(found):
            settings = settings.model_copy(update={"model": model})
        else:
            say(MEMORY.format(data=settings.data, command=_command()))
    if not watched:
        say(GO_ON.format(command=_command()))
        return 0
    return hold(settings, TalkOptions())


def _offer(found: list[Found]) -> str:
    """Ask whether the best model that is found is to answer; return its name, or ""."""
    from mindstream.cli.shell.flags import forget_typed

    ready = [each for each in found if not each.lacks]
    if not ready:
        _tell(found)
        complain("no model is found here: export OPENAI_API_KEY=…, ollama pull qwen3, or mindstream model get")
        return ""
    best, *others = ready
    reads = f"{best.reads} then reads what you say, and asks for money" if best.reads else "what you say stays here"
    silly = "; it is small and silly" if best.silly else ""
    say(f"{best.why}: {best.name} can answer you; {reads}{silly}.")
    _tell(others)
    forget_typed()
    return best.name if confirm(f"talk with {best.name}?") else ""


def _command() -> str:
    """Return how this program is called from here: what `make run` has made is on no path."""
    return "mindstream" if shutil.which("mindstream") else sys.argv[0]


def _tell(found: list[Found]) -> None:
    for each in found:
        first = f"{each.lacks}; then " if each.lacks else ""
        say(f"{each.why}: {first}{_command()} chat --model {each.name}")
