"""Recordings on the screens that show what lives: a talk, a life, a run of a plan; a town and a pool as lines."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rich.console import Console
from rich.text import Text

from mindstream.cli import STARTED
from mindstream.cli.clean import clean, short
from mindstream.cli.life_screens import LifeScreen
from mindstream.cli.run_screens import PlainScreen
from mindstream.cli.screens import TextScreen
from mindstream.cli.town_lines import describe
from mindstream.log.events import Heard, Logged, Piece, Said, Thought, Waiting
from mindstream.log.names import shown_name
from mindstream.planning.events import RunPlanned, Solved, Solving, StepBegan, StepFound
from mindstream.planning.evidence import Evidence
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.service.demos import Demo
from mindstream.sharing.events import ExemplarJudged, ExemplarOffered, PoolCreated, RubricFrozen
from mindstream.town.events import Talked, TownEvent

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
            if row.event.lines and row.event.lines[0].by == shown_name(row.mind):
                for line in row.event.lines:
                    said = (f"{clean(line.by)}: ", "bold green"), clean(line.text)
                    console.print(Text.assemble((f"{when}  ", "dim"), *said), soft_wrap=True)
                    await pause(LINE_S)
        elif told := describe(shown_name(row.mind), row.event):
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
    "coach": show_talk, "plan": show_plan, "life": show_life, "town": show_town, "pool": show_pool,
}  # fmt: skip
