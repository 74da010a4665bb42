"""A life in front of a person, whoever lives it: what `mindstream live` shows, and what is typed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mindstream.cli.life_lines import describe_rest, describe_so_far, describe_way_on, list_open, list_tasks
from mindstream.cli.life_screens import JsonLifeScreen, LifeScreen
from mindstream.cli.life_words import cause, words
from mindstream.clock import Moment
from mindstream.life import commands, lives
from mindstream.life.life import Life
from mindstream.life.state import LifeState, read_state
from mindstream.life.waking import Rhythm, unknown_orders
from mindstream.log.events import Logged
from mindstream.memory.store.store import read_log
from mindstream.memory.stream import Stream
from mindstream.service import file_changes
from mindstream.service.living import ZONE
from mindstream.service.memory import Memory, following

RESTED = 1
"""The exit code where it rests for want of a model, or of what it may spend."""
LOOK_S = 1.0
"""How often it is looked whether there is something to say of its rest."""


@dataclass(frozen=True)
class Wishes:
    """How a life is to be lived in this process.

    Attributes:
        end: words of the time at which no more turns begin.
        stay: go on waiting for people when there is nothing left to do.
        folder: changes of its files wake it.
        again: the command line that goes on with it.
    """

    turns: int | None = None
    end: str = ""
    stay: bool = False
    folder: Path | None = None
    trust: bool = False
    json: bool = False
    again: str = "mindstream live"


Screen = LifeScreen | JsonLifeScreen


async def newest(opened: Memory) -> int:
    """Return the row of the log after which there is something to show: a turn that goes on is, from its beginning."""
    last = await opened.store.last(opened.key, "turn_began")
    if last is not None and (await read_state(opened.stream)).in_turn:
        return last.seq - 1
    upto = last.seq if last else 0
    async for logged in read_log(opened.store, opened.key, upto):
        upto = logged.seq
    return upto


@dataclass
class Session:
    """A life in front of a person, whoever lives it."""

    opened: Memory
    screen: Screen
    wishes: Wishes
    in_terminal: bool

    async def live(self, life: Life, since: int, until: Moment | None, out: Path | None) -> int:
        """Live it in this process."""
        await self._let_go_on(life)
        if life.models.only_rules:
            self.screen.say(words("rules", life.state.language))
        self._introduce(life.state)
        beside: list[Coroutine[Any, Any, None]] = []
        if not self.in_terminal and not self.wishes.json:
            beside.append(_tell_rests(life, self.screen))
        if self.wishes.folder:
            beside.append(file_changes.watch(self.stream, self.wishes.folder, out))
        running = life.run(self.wishes.turns, until, stay=self.wishes.stay)
        ended = await self._attend(running, since, lambda: life.state, life.habits.rhythm, beside)
        return self._end(life.state, ended)

    async def watch(self) -> bool:
        """Watch the process that lives it; return whether that was dead already, and this one may take it up."""
        state = await commands.look(self.stream)
        self.screen.say("another process lives this life: you watch it here, and can answer, steer, pause and stop it")
        if self.wishes.turns is not None or self.wishes.end or self.wishes.folder:
            self.screen.say("its limits and tools are those of that process")
        self._introduce(state)
        states = _States(self.stream, state)
        since = await newest(self.opened)
        ended = await self._attend(
            _wait_for_end(self.stream), since, lambda: states.state, Rhythm(zone=ZONE), [states.follow()]
        )
        self.screen.say(
            {
                "dead": "the process that lived it had died: this one takes it up",
                "over": f"that process has ended; this goes on with it: {self.wishes.again}",
                "": "it goes on in its own process; this only watched",
            }[ended]
        )
        return ended == "dead"

    @property
    def stream(self) -> Stream:
        return self.opened.stream

    async def _attend(
        self, living: Coroutine[Any, Any, str], since: int, state: Callable[[], LifeState], rhythm: Rhythm,
        beside: Sequence[Coroutine[Any, Any, None]],
    ) -> str:  # fmt: skip
        """Show what happens while it lives, and take in what is typed; return why it ended, "" where a person left."""
        shown = _Shown(self.opened, self.screen, since)
        tasks: list[asyncio.Task[Any]] = [asyncio.ensure_future(living)]
        others = [asyncio.ensure_future(each) for each in (shown.follow(), *beside)]
        if self.in_terminal:
            from mindstream.cli.life_terminal import LifeTerminal

            terminal = LifeTerminal(self.stream, self.screen, state, rhythm)
            tasks.append(asyncio.ensure_future(terminal.run()))
        try:
            done, _ = await asyncio.wait([*tasks, *others], return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()  # what went wrong beside it ends it, too
            return str(tasks[0].result()) if tasks[0] in done else ""
        finally:
            for each in (*tasks, *others):
                each.cancel()
            await asyncio.gather(*tasks, *others, return_exceptions=True)
            await shown.catch_up()

    async def _let_go_on(self, life: Life) -> None:
        """Try again where it rested because a model failed; what a person stopped or paused stays so."""
        halted = life.state.halted
        if halted and not halted.startswith(("paused", "stopped", "budget")):
            await commands.order(self.stream, "resume")

    def _introduce(self, state: LifeState) -> None:
        say, language = self.screen.say, state.language
        self.screen.language = language
        say(words("goal", language, state.goal), "bold")
        for number, order in enumerate(state.orders, 1):
            say(words("order", language, number, order))
        for number, why in unknown_orders(state.orders):
            say(words("unknown_order", language, number, why), "bold yellow")
        now = self.stream.clock.now()
        left = [task for task in state.ledger.ordered() if task.standing in ("open", "waiting")]
        for line in list_tasks(left, now, language):
            say(f"  {line}")
        for line in list_open(state):
            say(f"  {line}", "bold yellow")
        if state.halted:
            typed = self.in_terminal and state.halted.startswith("paused")  # a life that is stopped ends at once
            way_on = words("way_typed", language) if typed else describe_way_on(state, True)
            say(words("halted", language, cause(state.halted, language), way_on), "red")
        if self.in_terminal:
            say(words("typed", language))

    def _end(self, state: LifeState, ended: str) -> int:
        stopped = state.halted.startswith("stopped")
        language = state.language
        why = words(f"ended_{ended or 'left'}", language)
        if ended == "halted":
            why = words("halted", language, cause(state.halted, language), describe_way_on(state, False))
        stop, end = ("。", "。") if language == "zh" else (". ", ".")
        self.screen.say("")
        self.screen.say(f"{why}{stop}{describe_so_far(state)}{end}")
        if ended != "done" and not stopped:
            self.screen.say(words("again", language, self.wishes.again))
        return RESTED if ended == "halted" and not stopped else 0


class _Shown:
    """Shows the rows of the log, each once."""

    def __init__(self, opened: Memory, screen: Screen, upto: int) -> None:
        self._opened, self._screen, self._upto = opened, screen, upto

    async def follow(self) -> None:
        await self._show(following(self._opened.store, self._opened.clock, self._opened.key, self._upto))

    async def catch_up(self) -> None:
        """Show what was written meanwhile."""
        await self._show(read_log(self._opened.store, self._opened.key, self._upto))

    async def _show(self, rows: AsyncIterator[Logged]) -> None:
        async for logged in rows:
            self._upto = logged.seq
            self._screen.show(logged)


@dataclass
class _States:
    """What another process makes of a life, read again now and then."""

    stream: Stream
    state: LifeState

    async def follow(self) -> None:
        while True:
            version = await self.stream.store.version()
            self.state = await read_state(self.stream)
            while await self.stream.store.version() == version:
                await self.stream.clock.sleep(LOOK_S)


async def _tell_rests(life: Life, screen: Screen) -> None:
    """Say once, for files and pipes, that a life rests, and until when; until cancelled."""
    told = before = ""
    while True:
        await asyncio.sleep(LOOK_S)
        now = life.stream.clock.now()
        wakes = life.habits.rhythm.next_wake(life.state, now)
        if life.state.in_turn or (wakes is not None and wakes <= now):
            told = before = ""
            continue
        line = cause(life.state.halted, life.state.language) or describe_rest(wakes, life.state.language)
        if line not in (told, "") and line == before:  # by now the screen shows what came before it
            screen.say(line)
            told = line
        before = line


async def _wait_for_end(stream: Stream) -> str:
    """Wait until nobody lives it; return `dead` where whoever did never held it anew since this was called."""
    first, renewed = await lives.find_lease(stream), False
    while (lease := await lives.find_lease(stream)) is not None:
        renewed = renewed or lease != first
        await stream.clock.sleep(LOOK_S)
    return "over" if renewed else "dead"
