"""`mindstream demo`: play a recording made with a language model; with --talk, then hold a conversation.

A recording is a JSON Lines file: a head (`Head`), then rows of the log. Rows contain events but no prompts, so that
they stay valid when prompts change. benchmarks/record_demo.py writes the files.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import signal
import sys
import tempfile
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import typer
from mindstream_town.commands.screen import describe
from mindstream_town.events import Talked, TownEvent
from pydantic import BaseModel
from rich.console import Console
from rich.text import Text

from mindstream.cli.screens.life import LifeScreen
from mindstream.cli.screens.run import PlainScreen
from mindstream.cli.screens.talk import PlainConsole, TextScreen
from mindstream.cli.shell.flags import PLAIN, AsJson, command, flag, switch, word
from mindstream.cli.shell.keys import is_watched, silent_keys, until_key
from mindstream.cli.shell.output import clean, complain, confirm, print_json, say, short
from mindstream.clock import STARTED
from mindstream.errors import InputError
from mindstream.log.events import Heard, Logged, Piece, Said, Thought, Waiting, read_event
from mindstream.planning.journal import RunPlanned, Solved, Solving, StepBegan, StepFound
from mindstream.planning.plan import Evidence, Plan, PlannedStep
from mindstream.service.probe import Found, find_models
from mindstream.settings import Settings
from mindstream.sharing.events import ExemplarJudged, ExemplarOffered, PoolCreated, RubricFrozen

FOLDER = Path(__file__).parents[1] / "recordings"
ORDER = ("coach", "plan", "life", "town", "pool")


class Head(BaseModel, extra="forbid", frozen=True):
    """The description of a recording.

    Attributes:
        title: the content in one line.
        recorded: day of the recording.
        who: kind of model that answered.
        source: origin of an example; "": none.
        timed: whether the times are the times of the events; False: they are times of a playback.
        start: time of a town's step 0, as ISO 8601.
    """

    demo: str
    format: int = 1
    title: str
    recorded: date
    who: str
    source: str = ""
    timed: bool = True
    start: str = ""


@dataclass(frozen=True)
class Demo:
    """A recording: its head and its rows."""

    head: Head
    rows: tuple[Logged, ...]


def demo_names() -> list[str]:
    """Return the names of the shipped recordings, in the recommended order."""
    return [name for name in ORDER if (FOLDER / f"{name}.jsonl").is_file()]


def load_demo(name: str) -> Demo:
    """Read a shipped recording.

    Raises:
        InputError: there is no such recording.
    """
    if name not in demo_names():
        raise InputError(f"there is no recording {name!r:.60}; use one of: {', '.join(demo_names())}")
    head, *rows = (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()
    return Demo(Head.model_validate_json(head), tuple(map(_read_row, rows)))


def _read_row(line: str) -> Logged:
    row = json.loads(line)
    told = read_event(row["kind"], json.dumps(row["payload"]))
    return Logged(row["seq"], row["mind"], row["at"], row["by"], told, row.get("system", False))


MORNING = "Feb 13 10:00"
"""Time in the shipped town at which the simulation of `demo town` ends."""
LONGEST_S = 2.0
"""Maximum length of a pause in seconds; pauses in a recording may last a minute."""
STEP_S = 10
"""Length of a step in the recorded town, in seconds."""
WORD_S, LINE_S, MOMENT_S = 0.03, 1.0, 0.25
"""Pauses in seconds: after a word, after a line of a conversation, and before a row without a recorded time."""
Pause = Callable[[float], Awaitable[None]]

app = typer.Typer(**PLAIN)


@command(
    app,
    "model pack data user",
    "mindstream demo",
    "mindstream demo town --speed 3",
    "mindstream demo coach --json",
    notes="Each recording is the log of a run with a language model, and names the model.",
    model="With --talk: the model, as for `chat`.",
    pack="With --talk: the pack, as for `chat`.",
)
def demo(
    settings: Settings,
    name: Annotated[
        Literal["coach", "plan", "life", "town", "pool"], word("[NAME]", "The recording to play.")
    ] = "coach",
    speed: Annotated[
        float | None, flag("X", "Speed factor [1; if the output is not a terminal, no pauses].", min=0.01, max=1000)
    ] = None,
    json: AsJson = False,
    talk: Annotated[bool, switch("--talk", "Start a conversation after the recording.")] = False,
) -> int:
    """Play a recording of the coach, a plan, a life, a town or a pool.

    Playing it calls no model, needs no API key and changes no data of yours. In a terminal, any key skips the
    recording. In a terminal, `demo town` also simulates a morning of the shipped town by rules, whether the recording
    was played or skipped, and writes a page that replays the morning.
    """
    if talk:
        return play_then_talk(settings, name, speed)
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
    """Show a recording to its end, or until a key is pressed in a terminal.

    Args:
        speed: speed factor; None: 1 in a terminal, and no pauses elsewhere.

    Raises:
        KeyboardInterrupt: the user stopped it.
    """
    fast = speed or (1.0 if sys.stdout.isatty() else 0.0)

    async def pause(seconds: float) -> None:
        if fast:
            await asyncio.sleep(min(max(seconds, 0.0), LONGEST_S) / fast)

    try:
        if not is_watched():
            asyncio.run(play(recording, pause))
            return
        say("Any key skips the recording.")
        with silent_keys():
            if asyncio.run(until_key(play(recording, pause))):
                print()  # ends the interrupted line
    except KeyboardInterrupt:
        print()  # ends the interrupted line
        raise


def live_a_morning() -> None:
    """Run the shipped town by rules until MORNING, and write a page that replays it."""
    from mindstream_town.commands import run, saves

    folder = Path(tempfile.mkdtemp(prefix="mindstream-town-"))
    settings = Settings(data=folder / "ville")
    say("Now the shipped town is simulated here by rules, which follow its daily plans and appointments:")
    run.begin(settings, "smallville", 1)
    if run.live(settings, run.Span(until=MORNING), run.TownOptions()) == 0:
        saves.write_page(settings, folder / "ville.html")


async def play(recording: Demo, pause: Pause) -> None:
    """Print a recording. The lines before and after the recording say that it is a recording."""
    console = PlainConsole(highlight=False)
    head = recording.head
    source = f" ({head.source})" if head.source else ""
    _line(console, f"A recording of {head.recorded.day} {head.recorded:%B %Y}: {head.title}{source}.", "bold")
    _line(console, f"{head.who} answered then; no model is called now, and no data of yours is changed.\n", "dim")
    await SCREENS[head.demo](recording, console, pause)
    _line(console, "\nThe recording is over.\n", "dim")


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(clean(text), style), soft_wrap=True)


class Replayed:
    """Computes from the recorded rows whether a reasoner was running at a given row."""

    thinking = False

    def __init__(self, rows: tuple[Logged, ...]) -> None:
        self._thoughts = [(row.seq, max(row.event.about, default=0)) for row in rows if isinstance(row.event, Thought)]

    def reach(self, seq: int) -> None:
        """Set `thinking`, whether a reasoner was running, for the row with the number `seq`."""
        self.thinking = any(about < seq < thought for thought, about in self._thoughts)


async def show_talk(demo: Demo, console: Console, pause: Pause) -> None:
    """Play a conversation, word by word."""
    screen = TextScreen(console, echo=True, timed=demo.head.timed, verbose=True)
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
            case Solving() as event:
                screen = PlainScreen(console)
                _line(console, f"\ntask: {event.task}", "bold cyan")
            case RunPlanned() as event:
                await screen.planned(Plan.model_validate(event.plan), event.because)
            case StepBegan() as event:
                await screen.began(PlannedStep(id=event.step, tool=event.tool), event.arguments)
            case StepFound() as event:
                await screen.found(Evidence(event.step, event.text, event.failed, seconds=event.seconds))
            case Solved() as event:
                _line(console, f"answer: {event.answer}", "bold green")
                if event.unanswered:
                    _line(console, f"not answered: {event.unanswered}", "yellow")


async def show_town(demo: Demo, console: Console, pause: Pause) -> None:
    """Play some hours of a town: acts, decisions and conversations."""
    start = datetime.fromisoformat(demo.head.start)
    async for row in _in_time(demo, pause):
        event = row.event
        if not isinstance(event, TownEvent):
            continue
        when = (f"{start + timedelta(seconds=STEP_S * event.step):%b %d %H:%M}  ", "dim")
        if isinstance(event, Talked):
            for line in event.lines if event.lines and event.lines[0].by == row.mind else ():
                said = (f"{clean(line.by)}: ", "bold green"), clean(line.text)
                console.print(Text.assemble(when, *said), soft_wrap=True)
                await pause(LINE_S)
        elif told := describe(row.mind, event):
            console.print(Text.assemble(when, clean(told)), soft_wrap=True)


async def show_pool(demo: Demo, console: Console, pause: Pause) -> None:
    """Play the recorded offers of answers to a pool, and the grades of the answers."""
    asked, owner = dict[str, str](), ""
    async for row in _in_time(demo, pause):
        match row.event:
            case PoolCreated() as event:
                owner = event.owner
                _line(console, f"a pool: {event.domain}", "bold")
            case RubricFrozen() as event:
                criteria = tomllib.loads(event.rubric)["criteria"]
                named = ", ".join(f"{each['name']} ({each['points']})" for each in criteria)
                _line(console, f"the rubric: {named}", "dim")
            case Heard() as event:
                _line(console, f"\n{event.text}", "bold cyan")
            case Said() as event:
                _line(console, f"{row.by}: {event.text}", "dim")
                await pause(LINE_S)
            case ExemplarOffered() as event if row.by == owner:
                _line(console, f"  · added by hand: {event.query}", "dim")
            case ExemplarOffered() as event:
                asked[event.id] = event.query
                _line(console, f"{row.by}, with exemplars: {event.answer}", "green")
                await pause(LINE_S)
            case ExemplarJudged() as event if not event.by_hand:
                of = short(asked.get(event.id, event.id), 60)
                grades = ", ".join(f"{name} {points:g}" for name, points in event.grades.items())
                _line(console, f"  · {event.verdict}, {event.score:g} points: {of} ({grades})", "yellow")


async def _in_time(demo: Demo, pause: Pause) -> AsyncIterator[Logged]:
    """Yield the rows with the recorded pauses between them, or with equal pauses if no times were recorded."""
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
Without a model, rules answer and understand little; the memory works fully. Its file is in {data}.
  {command} memory retain "The spare key hangs behind the door."      retain
  {command} memory recall where is the key                            recall
  {command} memory correct ID "The spare key hangs in the shed now."  correct
  {command} memory forget ID                                          permanently forget
  {command} memory export                                             export
A conversation with rules follows. Ctrl-D ends it."""
GO_ON = """
Continue in a terminal: `{command} chat`, or pipe one utterance per line: echo "I sleep badly" | {command} chat
`{command} studio` opens pages that show these recordings, and your own data.
`{command} demo plan`, life, town and pool play the other recordings; `{command} doctor` shows what is missing."""


def play_then_talk(settings: Settings, name: str, speed: float | None) -> int:
    """Play a recording, then hold a conversation. Return the exit code.

    - Without a terminal, print the command that starts a conversation instead of holding one.
    - If no model is set, search for models first. In a terminal, ask whether to use the best model found; without a
      terminal, list the models.

    Args:
        speed: speed factor of the recording (see `play_out`).
    """
    from mindstream.cli.chat import hold
    from mindstream.cli.conversation import TalkOptions

    watched = is_watched()
    with contextlib.suppress(KeyboardInterrupt) if watched else contextlib.nullcontext():
        play_out(load_demo(name), speed)
    if settings.only_stand_ins:
        found = asyncio.run(find_models())
        if not watched:
            _list_models(found)
        elif model := _choose_model(found):
            settings = settings.model_copy(update={"model": model})
        else:
            say(MEMORY.format(data=settings.data, command=_command()))
    if not watched:
        say(GO_ON.format(command=_command()))
        return 0
    return hold(settings, TalkOptions())


def _choose_model(found: list[Found]) -> str:
    """Ask whether to use the best model that was found; return its name, or "" for none."""
    from mindstream.cli.shell.keys import discard_typed

    ready = [each for each in found if not each.lacks]
    if not ready:
        _list_models(found)
        complain("no model was found: set OPENAI_API_KEY, or run `ollama pull qwen3` or `mindstream model get`")
        return ""
    best, *others = ready
    reads = f"{best.reads} then reads your messages, and charges for them" if best.reads else "your data stays here"
    quality = "; it is small, and its answers are poor" if best.low_quality else ""
    say(f"{best.why}: {best.name} can answer you; {reads}{quality}.")
    _list_models(others)
    discard_typed()
    return best.name if confirm(f"talk with {best.name}?") else ""


def _command() -> str:
    """Return the command that starts this program, which may not be on the PATH."""
    return "mindstream" if shutil.which("mindstream") else sys.argv[0]


def _list_models(found: list[Found]) -> None:
    for each in found:
        first = f"{each.lacks}; then " if each.lacks else ""
        say(f"{each.why}: {first}{_command()} chat --model {each.name}")
