"""`mindstream live`: live a life, or watch the process that does; both can be answered, steered, paused."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from mindstream.cli.permission import Asker, server_approval
from mindstream.cli.screens.life import JsonLifeScreen, LifeScreen, Screen
from mindstream.cli.screens.life_lines import (
    cause,
    describe_end,
    describe_rest,
    describe_so_far,
    describe_way_on,
    list_open,
    list_tasks,
    words,
)
from mindstream.cli.screens.run import PlainScreen
from mindstream.cli.shell.flags import (
    LIMITS,
    PLAIN,
    Allow,
    Docs,
    Mcp,
    PoolName,
    Record,
    Trust,
    command,
    flag,
    flags_again,
    split_names,
    switch,
    write_flags,
)
from mindstream.cli.shell.output import is_answerable
from mindstream.cli.shell.stopping import run_until_stopped
from mindstream.clock import Moment
from mindstream.errors import InputError
from mindstream.life import commands
from mindstream.life import opened as lives
from mindstream.life.life import Life
from mindstream.life.opened import command_of
from mindstream.life.schedule import Rhythm, unknown_orders
from mindstream.life.state import LifeState, read_state
from mindstream.log.events import Logged
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import read_log
from mindstream.service import file_changes
from mindstream.service.living import FOREVER_TOKENS, PROMPT_TOKENS, ZONE, LifeSettings, open_life, read_end
from mindstream.service.memory import UserMemory, following, open_user_memory
from mindstream.settings import Chosen, Settings

NOTES = """M2 plans turn by turn, M1 carries out its tasks with the tools, M0 thinks; what
is worth keeping is remembered, and sleep makes dreams of the rest. Where there
is nothing to do, nothing is called. Everything stands in the log: whatever ends
it, `mindstream live` goes on where it was.

One process lives a life at a time; a second one watches it, and can answer,
steer, pause and stop it all the same (so can `mindstream life`). In a terminal,
what you type answers what it asks, or is said to it; /help names the rest.

It asks for leave before it changes anything, except in the folder of --out and
with the tools of --allow. With --forever it does not end where nothing is left
to do: M2 looks at its goal and at what it remembers and proposes work, within
the day's budget, or rests and says why; a beat after one that found nothing
costs nothing. Limits are those of the whole life, across processes.

Exit code: 0; 1 where it rests for want of a model or of what it may spend; 2 a
mistake; 130 after Ctrl-C without a terminal."""
app = typer.Typer(**PLAIN)


@dataclass(frozen=True)
class Endless:
    """A life that goes on where nothing can be done; and with what it dreams."""

    forever: Annotated[
        bool, switch("--forever", "Where nothing can be done, let it look for work of its own, or rest and say why.")
    ] = False
    beat: Annotated[str, flag("TIME", "It looks so often at most: 1h, 30 min, 1 day [1h].")] = ""
    tokens_per_day: Annotated[
        int | None, flag("N", f"So many on one day (UTC) [{FOREVER_TOKENS:,} with --forever].", min=0)
    ] = None
    dream_tools: Annotated[
        str, flag("A,B", "What M1 may call while it makes a dream: R, M0, or tools that it has [none].")
    ] = ""


@command(
    app,
    "model roles fallback patience_s data user embedder reranker budget_calls budget_tokens budget_usd redact",
    'mindstream live --goal "Write a brief on why shift workers sleep badly" \\',
    "    --docs ./papers --out ./results --model openai:gpt-5-mini --max-usd 1",
    'mindstream live --goal "Keep my sleep diary" --every "day at 8:00: ask me how I slept" \\',
    "    --hours 07:00-22:00 --wait-for-input",
    "mindstream live                         go on with it, or watch it",
    "mindstream live --forever --beat 2h --tokens-per-day 50000",
    "mindstream live --for 2h --json         for two hours, one event a line",
    notes=NOTES,
    roles="Who answers in one role: M2 plans, M1 does, M0 thinks; repeatable.",
    budget_calls="So many calls of models in its life.",
    budget_tokens="So many tokens in its life.",
    budget_usd="So many US dollars in its life.",
)
def live(
    chosen: Chosen,
    goal: Annotated[str, flag("WORDS", "What it is to reach [what its log says].")] = "",
    for_: Annotated[str, flag("TIME", "No turn begins after that: 2h, 90 min, until 18:00.", "--for")] = "",
    turns: Annotated[int | None, flag("N", "So many turns at most, now.", min=0)] = None,
    every: Annotated[
        list[str] | None,
        flag(
            "ORDER",
            'A standing order, when and what: "day at 8:00: ask me how I slept", '
            '"monday and friday at 18:30: …", "2 hours: …", "1st of the month at noon: …"; repeatable.',
        ),
    ] = None,
    tools: Annotated[
        list[str] | None,
        flag(
            "A,B",
            "What M1 may call: as for solve, and planner, which solves tasks in steps with the others [calculator].",
        ),
    ] = None,
    docs: Docs = None,
    mcp: Mcp = None,
    trust: Trust = False,
    out: Annotated[Path | None, flag("DIR", "It may write files into this folder.")] = None,
    allow: Allow = None,
    pool: PoolName = "",
    offer: Annotated[bool, switch("--offer", "Offer what M1 carried out, task and result, to that pool.")] = False,
    hours: Annotated[str, flag("FROM-TO", "It acts by itself only then: 08:00-22:00 [always].")] = "",
    endless: Endless = Endless(),
    usd_per_day: Annotated[float | None, flag("X", "So many on one day (UTC).", min=0)] = None,
    words_per_day: Annotated[int | None, flag("N", "So many words it may ask you, unasked, on one day.", min=0)] = None,
    prompt_tokens: Annotated[
        int, flag("N", "M2's prompt is never longer; older turns become memories.")
    ] = PROMPT_TOKENS,
    wait_for_input: Annotated[bool, switch("--wait-for-input", "Wait for you when nothing is left to do.")] = False,
    watch: Annotated[Path | None, flag("DIR", "Files that come, change or go there wake it.")] = None,
    ignore_chat: Annotated[bool, switch("--ignore-chat", "What is said in `chat` is not said to it.")] = False,
    without_model: Annotated[
        bool, switch("--without-model", "Let rules continue a life that was lived with a model.")
    ] = False,
    record: Record = None,
    json: Annotated[bool, switch("--json", "One event a line, as JSON; nothing else there.")] = False,
) -> int:
    """Live for a goal, turn by turn, until there is nothing left to do.

    Without --goal it goes on with the life that stands in the log.
    """
    wanted = LifeSettings(
        goal=goal.strip(),
        orders=tuple(map(make_order, every or ())),
        tools=split_names(tools),
        docs=tuple(docs or ()),
        mcp=tuple(mcp or ()),
        out=out,
        allow=tuple(allow or ()),
        dream_tools=split_names([endless.dream_tools]) or (),
        pool=pool,
        offer=offer,
        hours=hours,
        beat=endless.beat or ("1h" if endless.forever else ""),
        usd_per_day=usd_per_day,
        tokens_per_day=endless.tokens_per_day,
        words_per_day=words_per_day,
        prompt_tokens=prompt_tokens,
        hears=not ignore_chat,
        record=record,
    )
    again = {
        "tools": ",".join(wanted.tools or ()),
        "docs": docs,
        "mcp": mcp,
        "trust": trust,
        "out": out,
        "allow": allow,
        "pool": pool,
        "offer": offer,
        "hours": hours,
        **{field: getattr(chosen.settings, field) for field in LIMITS},
        **asdict(endless),
        "usd-per-day": usd_per_day,
        "words-per-day": words_per_day,
        "watch": watch,
        "wait-for-input": wait_for_input,
        "without-model": without_model,
        "ignore-chat": ignore_chat,
        "prompt-tokens": prompt_tokens if prompt_tokens != PROMPT_TOKENS else None,
    }
    if endless.beat and not endless.forever:
        raise InputError("--beat says how often a life looks for work of its own: say --forever, too")
    if watch and not watch.is_dir():
        raise InputError(f"there is no folder {str(watch)!r} to watch")
    words = ["mindstream", "live", *flags_again(chosen), *write_flags(again)]
    command = shlex.join(words)
    wanted = replace(wanted, without_model=without_model, command=command_of(words))
    options = LiveOptions(turns, for_, wait_for_input, watch, trust, json, command)
    in_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not json
    left = f"you left; nothing is lost, and this goes on with it:\n  {command}"
    return run_until_stopped(
        _live(chosen.settings, wanted, options, in_terminal), lambda: left, interrupt=not in_terminal
    )


def make_order(words: str) -> str:
    """Return a standing order as it is kept: `--every "day at 8:00: …"` is every day at 8:00."""
    return words if words.lower().startswith("every ") else f"every {words}"


async def _live(settings: Settings, wanted: LifeSettings, options: LiveOptions, in_terminal: bool) -> int:
    screen: Screen = JsonLifeScreen() if options.json else LifeScreen(Console(highlight=False))
    async with open_user_memory(settings, new=True) as opened:
        until = read_end(options.end, opened.clock.now()) if options.end else None
        session = Session(opened, screen, options, in_terminal)
        if await lives.is_lived(opened.memory):
            if wanted.goal or wanted.orders:
                await commands.give_goal(opened.memory, wanted.goal, wanted.orders)
            if not await session.watch():
                return 0
        since = await newest(opened)
        asker = Asker(PlainScreen(Console(stderr=True))) if is_answerable() and not options.json else None
        approve = server_approval(options.trust, asker, PlainScreen(Console(stderr=True)))
        async with open_life(
            settings, wanted, opened.memory, approve=approve, note=screen.say, policy=opened.policy
        ) as life:
            shown = since if options.json else await newest(opened)
            return await session.live(life, shown, until, wanted.out)


RESTED = 1
"""The exit code where it rests for want of a model, or of what it may spend."""
LOOK_S = 1.0
"""How often it is looked whether there is something to say of its rest."""


@dataclass(frozen=True)
class LiveOptions:
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


async def newest(opened: UserMemory) -> int:
    """Return the row of the log after which there is something to show: a turn that goes on is, from its beginning."""
    last = await opened.store.last(opened.key, "turn_began")
    if last is not None and (await read_state(opened.memory)).in_turn:
        return last.seq - 1
    upto = last.seq if last else 0
    async for logged in read_log(opened.store, opened.key, upto):
        upto = logged.seq
    return upto


@dataclass
class Session:
    """A life in front of a person, whoever lives it."""

    opened: UserMemory
    screen: Screen
    options: LiveOptions
    in_terminal: bool

    async def live(self, life: Life, since: int, until: Moment | None, out: Path | None) -> int:
        """Live it in this process."""
        await self._let_go_on(life)
        if life.models.only_rules:
            self.screen.say(words("rules", life.state.language))
        self._introduce(life.state)
        beside: list[Coroutine[Any, Any, None]] = []
        if not self.in_terminal and not self.options.json:
            beside.append(_tell_rests(life, self.screen))
        if self.options.folder:
            beside.append(file_changes.watch(self.memory, self.options.folder, out))
        running = life.run(self.options.turns, until, stay=self.options.stay)
        ended = await self._attend(running, since, lambda: life.state, life.config.rhythm, beside)
        return self._end(life.state, ended)

    async def watch(self) -> bool:
        """Watch the process that lives it; return whether that was dead already, and this one may take it up."""
        state = await commands.look(self.memory)
        self.screen.say("another process lives this life: you watch it here, and can answer, steer, pause and stop it")
        if self.options.turns is not None or self.options.end or self.options.folder:
            self.screen.say("its limits and tools are those of that process")
        self._introduce(state)
        states = _States(self.memory, state)
        since = await newest(self.opened)
        ended = await self._attend(
            _wait_for_end(self.memory), since, lambda: states.state, Rhythm(zone=ZONE), [states.follow()]
        )
        self.screen.say(
            {
                "dead": "the process that lived it had died: this one takes it up",
                "over": f"that process has ended; this goes on with it: {self.options.again}",
                "": "it goes on in its own process; this only watched",
            }[ended]
        )
        return ended == "dead"

    @property
    def memory(self) -> Memory:
        return self.opened.memory

    async def _attend(
        self,
        living: Coroutine[Any, Any, str],
        since: int,
        state: Callable[[], LifeState],
        rhythm: Rhythm,
        beside: Sequence[Coroutine[Any, Any, None]],
    ) -> str:
        """Show what happens while it lives, and take in what is typed; return why it ended, "" where a person left."""
        shown = _Shown(self.opened, self.screen, since)
        tasks: list[asyncio.Task[Any]] = [asyncio.ensure_future(living)]
        others = [asyncio.ensure_future(each) for each in (shown.follow(), *beside)]
        if self.in_terminal:
            from mindstream.cli.live_terminal import LifeTerminal

            terminal = LifeTerminal(self.memory, self.screen, state, rhythm)
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
            await commands.order(self.memory, "resume")

    def _introduce(self, state: LifeState) -> None:
        say, language = self.screen.say, state.language
        self.screen.language = language
        say(words("goal", language, state.goal), "bold")
        for number, order in enumerate(state.orders, 1):
            say(words("order", language, number, order))
        for number, why in unknown_orders(state.orders):
            say(words("unknown_order", language, number, why), "bold yellow")
        now = self.memory.clock.now()
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
        why = describe_end(state) if ended == "done" else words(f"ended_{ended or 'left'}", language)
        if ended == "halted":
            why = words("halted", language, cause(state.halted, language), describe_way_on(state, False))
        stop, end = ("。", "。") if language == "zh" else (". ", ".")
        self.screen.say("")
        self.screen.say(f"{why}{stop}{describe_so_far(state)}{end}")
        if ended != "done" and not stopped:
            self.screen.say(words("again", language, self.options.again))
        return RESTED if ended == "halted" and not stopped else 0


class _Shown:
    """Shows the rows of the log, each once."""

    def __init__(self, opened: UserMemory, screen: Screen, upto: int) -> None:
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

    memory: Memory
    state: LifeState

    async def follow(self) -> None:
        while True:
            version = await self.memory.store.version()
            self.state = await read_state(self.memory)
            while await self.memory.store.version() == version:
                await self.memory.clock.sleep(LOOK_S)


async def _tell_rests(life: Life, screen: Screen) -> None:
    """Say once, for files and pipes, that a life rests, and until when; until cancelled."""
    told = before = ""
    while True:
        await asyncio.sleep(LOOK_S)
        now = life.memory.clock.now()
        wakes = life.config.rhythm.next_wake(life.state, now)
        if life.state.in_turn or (wakes is not None and wakes <= now):
            told = before = ""
            continue
        line = cause(life.state.halted, life.state.language) or describe_rest(wakes, life.state.language)
        if line not in (told, "") and line == before:  # by now the screen shows what came before it
            screen.say(line)
            told = line
        before = line


async def _wait_for_end(stream: Memory) -> str:
    """Wait until nobody lives it; return `dead` where whoever did never held it anew since this was called."""
    first, renewed = await lives.find_lease(stream), False
    while (lease := await lives.find_lease(stream)) is not None:
        renewed = renewed or lease != first
        await stream.clock.sleep(LOOK_S)
    return "over" if renewed else "dead"
