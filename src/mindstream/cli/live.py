"""`mindstream live`: run a life, or show the life that another process runs.

In both cases the user can answer, steer and pause it.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from mindstream.cli.permission import Asker, server_approval
from mindstream.cli.screens.events import (
    describe_end,
    describe_rest,
    describe_so_far,
    describe_unknown,
    describe_way_on,
    list_open,
    list_tasks,
)
from mindstream.cli.screens.life import JsonLifeScreen, LifeScreen, Screen
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
from mindstream.cli.shell.output import complain, is_answerable
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
from mindstream.memory.policy import open_policy
from mindstream.memory.store.store import read_log
from mindstream.service.calling import open_user_memory
from mindstream.service.living import (
    FOREVER_TOKENS,
    OWN,
    PROMPT_TOKENS,
    ZONE,
    LifeSettings,
    open_life,
    read_end,
    watch_folder,
)
from mindstream.service.memory import following, policy_given
from mindstream.settings import Chosen, Settings
from mindstream.together import cancel_all

NOTES = """Three model roles work on the goal: M2 plans turn by turn, M1 carries out the
tasks with tools, M0 thinks without tools. Useful results are remembered; sleep
archives unused memories and makes dreams of them. While there is nothing to do,
no model is called. Everything is in the log: however the process ends,
`mindstream live` continues where it was.

One process runs a life at a time. A second one shows it, and can answer,
steer, pause and stop it; so can `mindstream life`. In a terminal, your input
is an answer to its question, or a message; /help lists the commands.

The life asks for permission before it changes anything, except in the folder of
--out and with the tools of --allow. With --forever it does not end when nothing
is left to do: M2 reads the goal and its memories and proposes work within the
day's budget, or rests and says why. While nothing changes, the next search for
work costs nothing. Limits apply to the whole life, across processes.

Exit code: 0; 1 if the last turn failed, the life rests because a model failed or a
limit is reached, or it is paused and this command does not wait (it waits with
--wait-for-input, --for or --forever, and in a terminal); 2 after a mistake in the arguments or settings; 130
after Ctrl-C without a terminal."""
RESTED = 1
"""Exit code if the last turn failed, the life rests because a model failed or a limit is reached, or it is paused and
the command does not wait."""
POLL_S = 1.0
"""Poll interval, in seconds, for the state of a life."""
app = typer.Typer(**PLAIN)


@dataclass(frozen=True)
class LiveFlags:
    """The flags of `live`."""

    goal: Annotated[str, flag("WORDS", "The goal that the life works for [the goal in its log].")] = ""
    for_: Annotated[
        str, flag("TIME", "Begin no new turn after this duration or time, such as 2h, 90 min, or until 18:00.", "--for")
    ] = ""
    turns: Annotated[
        int | None, flag("N", "Maximum number of turns (rounds of work) that this command runs.", min=0)
    ] = None
    every: Annotated[
        list[str] | None,
        flag(
            "ORDER",
            'A standing order: a time and a task, such as "day at 8:00: ask me how I slept", '
            '"monday and friday at 18:30: …", "2 hours: …", "1st of the month at noon: …"; repeatable.',
        ),
    ] = None
    tools: Annotated[
        list[str] | None,
        flag(
            "A,B",
            "Tools that the acting model (M1) may call: the tools of `mindstream solve`, and `planner`, which solves a"
            " task in planned steps with the other tools [calculator].",
        ),
    ] = None
    docs: Docs = None
    mcp: Mcp = None
    trust: Trust = False
    out: Annotated[Path | None, flag("DIR", "A folder into which the life may write files without asking.")] = None
    allow: Allow = None
    pool: PoolName = ""
    offer: Annotated[
        bool, switch("--offer", "Offer each finished task, with its result, to the pool named by --pool.")
    ] = False
    hours: Annotated[
        str,
        flag("FROM-TO", "Active hours, such as 08:00-22:00; outside them the life does nothing by itself [always]."),
    ] = ""
    forever: Annotated[
        bool,
        switch("--forever", "When nothing is left to do, the life proposes work for itself, or rests and says why."),
    ] = False
    beat: Annotated[
        str, flag("TIME", "With --forever, minimum time between two searches for work: 1h, 30 min, 1 day [1h].")
    ] = ""
    tokens_per_day: Annotated[
        int | None,
        flag(
            "N",
            f"Maximum number of tokens a day (UTC) [{FOREVER_TOKENS:,} with --forever and without --usd-per-day].",
            min=0,
        ),
    ] = None
    as_published: Annotated[
        bool,
        switch(
            "--as-published",
            "Run as in the M0/M1/M2 proposal of 2024: sets --forever, and --dream-tools R,U,M0 if you do not give"
            " --dream-tools.",
        ),
    ] = False
    dream_tools: Annotated[
        str,
        flag(
            "A,B",
            "Tools that the acting model (M1) may call while it writes a dream (a summary of archived memories): R"
            " (recall), U (store a memory), M0 (ask the thinking model), or other tools of M1 [none].",
        ),
    ] = ""
    usd_per_day: Annotated[float | None, flag("X", "Maximum cost a day (UTC) in US dollars.", min=0)] = None
    words_per_day: Annotated[
        int | None, flag("N", "Maximum number of words a day in questions that the life asks you by itself.", min=0)
    ] = None
    prompt_tokens: Annotated[
        int, flag("N", "Maximum tokens of the planning model's (M2's) prompt; older turns are condensed into memories.")
    ] = PROMPT_TOKENS
    wait_for_input: Annotated[
        bool, switch("--wait-for-input", "When nothing is left to do, wait for your input and do not end.")
    ] = False
    watch: Annotated[
        Path | None, flag("DIR", "A folder to watch: a file that appears, changes or disappears wakes the life.")
    ] = None
    ignore_chat: Annotated[bool, switch("--ignore-chat", "Do not let the life read your messages in `chat`.")] = False
    without_model: Annotated[
        bool, switch("--without-model", "Let rules, without a model, continue a life that was run with a model.")
    ] = False
    record: Record = None
    json: Annotated[bool, switch("--json", "One event a line, as JSON; nothing else on standard output.")] = False

    def again(self, chosen: Chosen) -> list[str]:
        """Return the command line that continues the life, with the flags that must be repeated."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        repeated = {each.name: given[each.name] for each in fields(self) if given[each.name] != each.default}
        limits = {field: getattr(chosen.settings, field) for field in LIMITS}
        words = write_flags({name: repeated[name] for name in repeated if name not in ONCE} | limits)
        return ["mindstream", "live", *flags_again(chosen), *words]

    def settings(self) -> dict[str, Any]:
        """Return the values of the given flags, by the field of `LifeSettings` that has the same name."""
        given = {each.name: getattr(self, each.name, None) for each in fields(LifeSettings)}
        return {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
            if value is not None
        }


ONCE = ("goal", "for_", "turns", "every", "record", "json")
"""Flags that the command which continues a life does not repeat."""


@command(
    app,
    "model roles fallback patience_s data user embedder reranker budget_calls budget_tokens budget_usd redact",
    'mindstream live --goal "Write a brief on why shift workers sleep badly" \\',
    "    --docs ./papers --out ./results --model openai:gpt-5-mini --max-usd 1",
    'mindstream live --goal "Keep my sleep diary" --every "day at 8:00: ask me how I slept" \\',
    "    --hours 07:00-22:00 --wait-for-input",
    "mindstream live                         continue it, or watch it",
    "mindstream live --forever --beat 2h --tokens-per-day 50000",
    "mindstream live --for 2h --json         for two hours, one event a line",
    notes=NOTES,
    roles="Model of one role: M2 plans, M1 acts, M0 thinks; repeatable.",
    budget_calls="Maximum number of model calls of the whole life.",
    budget_tokens="Maximum number of tokens of the whole life.",
    budget_usd="Maximum cost in US dollars of the whole life.",
)
def live(chosen: Chosen, flags: LiveFlags) -> int:
    """Run a life: an agent that works for a goal, turn by turn, until nothing is left to do.

    Without --goal, continue the life in the log.
    """
    if flags.as_published:
        flags = replace(flags, forever=True, dream_tools=flags.dream_tools or ",".join(OWN))
    if flags.beat and not flags.forever:
        raise InputError("--beat is the minimum time between two searches for work by --forever: add --forever")
    if flags.watch and not flags.watch.is_dir():
        raise InputError(f"--watch needs an existing folder; there is no folder {str(flags.watch)!r}")
    again = flags.again(chosen)
    special: dict[str, Any] = {
        "goal": flags.goal.strip(),
        "orders": tuple(each if each.lower().startswith("every ") else f"every {each}" for each in flags.every or ()),
        "tools": split_names(flags.tools),
        "dream_tools": split_names([flags.dream_tools]) or (),
        "beat": flags.beat or ("1h" if flags.forever else ""),
        "hears": not flags.ignore_chat,
        "command": command_of(again),
    }
    wanted = LifeSettings(**{**flags.settings(), **special})
    in_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not flags.json
    continues = shlex.join(again)
    left = f"you left; nothing is lost; to continue the life:\n  {continues}"
    running = _live(chosen.settings, wanted, flags, continues, in_terminal)
    return run_until_stopped(running, lambda: left, interrupt=not in_terminal)


async def _live(settings: Settings, wanted: LifeSettings, flags: LiveFlags, again: str, in_terminal: bool) -> int:
    screen: Screen = JsonLifeScreen() if flags.json else LifeScreen(Console(highlight=False))
    async with open_user_memory(settings, new=True) as memory:
        until = read_end(flags.for_, memory.clock.now()) if flags.for_ else None
        session = _Session(memory, screen, flags, again, in_terminal)
        if await lives.is_lived(memory):
            if wanted.goal or wanted.orders:
                await commands.give_goal(memory, wanted.goal, wanted.orders)
            if not await session.watch():
                return 0
        since = await _last_shown(memory)
        policy = await open_policy(memory.store, memory.key, policy_given(settings))
        notes = PlainScreen(Console(stderr=True))
        approve = server_approval(flags.trust, Asker(notes) if is_answerable() and not flags.json else None, notes)
        async with open_life(settings, wanted, memory, approve=approve, note=screen.say, policy=policy) as life:
            since = since if flags.json else await _last_shown(memory)
            if life.state.halted.startswith("paused") and not session.waits:
                session.introduce(life.state)
                complain(f"{life.state.halted}; {describe_way_on(life.state, True)}")
                return RESTED
            return await session.live(life, since, until, wanted.out)


async def _last_shown(memory: Memory) -> int:
    """Return the number of the log row after which events are shown.

    This is the last row, or during an unfinished turn the row before that turn.
    """
    last = await memory.store.last(memory.key, "turn_began")
    if last is not None and (await read_state(memory)).in_turn:
        return last.seq - 1
    upto = last.seq if last else 0
    async for logged in read_log(memory.store, memory.key, upto):
        upto = logged.seq
    return upto


class _Session:
    """Shows a life to the user while this process or another one runs it."""

    def __init__(self, memory: Memory, screen: Screen, flags: LiveFlags, again: str, in_terminal: bool) -> None:
        self.memory, self.screen = memory, screen
        self.flags, self.again, self.in_terminal = flags, again, in_terminal
        self._upto = 0
        """The last row of the log that was shown."""

    @property
    def waits(self) -> bool:
        """Whether this command waits while a person has paused the life: in a terminal, or with --wait-for-input,
        --forever or --for."""
        return self.in_terminal or self.flags.wait_for_input or self.flags.forever or bool(self.flags.for_)

    async def live(self, life: Life, since: int, until: Moment | None, out: Path | None) -> int:
        """Run the life in this process; return the exit code."""
        halted = life.state.halted
        if halted and not halted.startswith(("paused", "stopped", "budget")):  # a model failed: try again
            await commands.order(self.memory, "resume")
        if life.models.only_rules:
            self.screen.say("rules: no model is configured; see `mindstream doctor`")
        self.introduce(life.state)
        tasks: list[Coroutine[Any, Any, None]] = []
        if not self.in_terminal and not self.flags.json:
            tasks.append(_show_rests(life, self.screen))
        if self.flags.watch:
            tasks.append(watch_folder(self.memory, self.flags.watch, out))
        running = life.run(self.flags.turns, until, stay=self.flags.wait_for_input)
        ended = await self._attend(running, since, lambda: life.state, life.config.rhythm, tasks)
        return self._end(life.state, ended)

    async def watch(self) -> bool:
        """Show the life that another process runs; return True if that process has died.

        In that case this process may continue the life.
        """
        states = _States(self.memory, await commands.look(self.memory))
        self.screen.say("another process lives this life: you watch it here, and can answer, steer, pause and stop it")
        if self.flags.turns is not None or self.flags.for_ or self.flags.watch:
            self.screen.say("the limits, tools and watched folder are those of that process")
        self.introduce(states.state)
        ended = await self._attend(
            _wait_for_end(self.memory),
            await _last_shown(self.memory),
            lambda: states.state,
            Rhythm(zone=ZONE),
            [states.follow()],
        )
        endings = {
            "dead": "the process that ran the life died; this process continues the life",
            "over": f"that process has ended; to continue the life: {self.again}",
            "": "the life continues in the other process; this one only watched",
        }
        self.screen.say(endings[ended])
        return ended == "dead"

    async def _attend(
        self,
        living: Coroutine[Any, Any, str],
        since: int,
        state: Callable[[], LifeState],
        rhythm: Rhythm,
        others: Sequence[Coroutine[Any, Any, None]],
    ) -> str:
        """Show events and take input while the life runs; return why it ended, "" if the user left."""
        self._upto = since
        ends: list[asyncio.Task[Any]] = [asyncio.ensure_future(living)]
        running = [asyncio.ensure_future(each) for each in (self._follow(), *others)]
        if self.in_terminal:
            from mindstream.cli.terminal import LifeTerminal

            terminal = LifeTerminal(self.memory, self.screen, state, rhythm)
            running.append(leaving := asyncio.ensure_future(terminal.run()))
            ends.append(leaving)
        try:
            done, _ = await asyncio.wait([*ends, *running], return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()  # an error of any task ends all tasks
            return str(ends[0].result()) if ends[0] in done else ""
        finally:
            await cancel_all(*ends, *running)
            await self._show(read_log(self.memory.store, self.memory.key, self._upto))

    async def _follow(self) -> None:
        await self._show(following(self.memory.store, self.memory.clock, self.memory.key, self._upto))

    async def _show(self, rows: AsyncIterator[Logged]) -> None:
        async for logged in rows:
            self._upto = logged.seq
            self.screen.show(logged)

    def introduce(self, state: LifeState) -> None:
        """Show the goal, the standing orders, the tasks and the questions of the life."""
        say = self.screen.say
        say(f"goal: {state.goal}", "bold")
        for number, order in enumerate(state.orders, 1):
            say(f"standing order {number}: {order}")
        for number, why in unknown_orders(state.orders):
            say(describe_unknown(number, why), "bold yellow")
        for line in list_tasks(state.ledger.left(), self.memory.clock.now()):
            say(f"  {line}")
        for line in list_open(state):
            say(f"  {line}", "bold yellow")
        if state.halted and (self.waits or not state.halted.startswith("paused")):
            waits = state.halted.startswith("paused")  # if the life is stopped, this command ends: nothing can be typed
            way_on = "/resume, or " * (waits and self.in_terminal) + describe_way_on(state, True)
            say(f"{state.halted}; {way_on}" + "; until then it waits, and Ctrl-C ends this command" * waits, "red")
        if self.in_terminal:
            say("your input is a message, or an answer to its question; /help lists the commands, Ctrl-C leaves")

    def _end(self, state: LifeState, ended: str) -> int:
        stopped = state.halted.startswith("stopped")
        why = {
            "done": describe_end(state),
            "turns": "the number of turns is reached",
            "time": "the time is over",
            "halted": f"{state.halted}; {describe_way_on(state, False)}",
            "": "you left; nothing is lost",
        }[ended]
        self.screen.say("")
        self.screen.say(f"{why}. {describe_so_far(state)}.")
        if ended != "done" and not stopped:
            self.screen.say(f"to continue the life: {self.again}")
        has_failed = ended == "halted" or (ended in ("turns", "time") and state.failed)
        return RESTED if has_failed and not stopped else 0


@dataclass
class _States:
    """The state of a life that another process runs, read again whenever the data changes."""

    memory: Memory
    state: LifeState

    async def follow(self) -> None:
        while True:
            version = await self.memory.store.version()
            self.state = await read_state(self.memory)
            while await self.memory.store.version() == version:
                await self.memory.clock.sleep(POLL_S)


async def _show_rests(life: Life, screen: Screen) -> None:
    """Show each rest once, with its end, until cancelled.

    This is for output to a file or a pipe, which has no status line.
    """
    shown = before = ""
    while True:
        await asyncio.sleep(POLL_S)
        now = life.memory.clock.now()
        wakes = life.config.rhythm.next_wake(life.state, now)
        if life.state.in_turn or (wakes is not None and wakes <= now):
            shown = before = ""
            continue
        line = life.state.halted or describe_rest(wakes)
        if line not in (shown, "") and line == before:  # one poll later, so that earlier events are shown first
            screen.say(line)
            shown = line
        before = line


async def _wait_for_end(stream: Memory) -> str:
    """Wait until no process runs the life; return `dead` if the lease was never renewed meanwhile, else `over`."""
    first, renewed = await lives.find_lease(stream), False
    while (lease := await lives.find_lease(stream)) is not None:
        renewed = renewed or lease != first
        await stream.clock.sleep(POLL_S)
    return "over" if renewed else "dead"
