"""`mindstream live`: live a life, or watch the process that does; both can be answered, steered, paused."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from mindstream.cli.asking import is_answerable
from mindstream.cli.flags import PLAIN, PoolName, Record, command, flag, flags_again, switch
from mindstream.cli.flags_solving import Allow, Docs, Mcp, Trust, split_names, write_flags
from mindstream.cli.life_screens import JsonLifeScreen, LifeScreen
from mindstream.cli.life_session import Screen, Session, Wishes, newest
from mindstream.cli.permission import Asker, server_approval
from mindstream.cli.run_screens import PlainScreen
from mindstream.cli.stopping import run_until_stopped
from mindstream.errors import InputError
from mindstream.life import commands, lives
from mindstream.service.living import PROMPT_TOKENS, LifeSettings, open_life, read_end
from mindstream.service.memory import memory
from mindstream.settings import Chosen, Settings

NOTES = """M2 plans turn by turn, M1 carries out its tasks with the tools, M0 thinks; what
is worth keeping is remembered, and sleep makes dreams of the rest. Where there
is nothing to do, nothing is called. Everything stands in the log: whatever ends
it, `mindstream live` goes on where it was.

One process lives a life at a time; a second one watches it, and can answer,
steer, pause and stop it all the same (so can `mindstream life`). In a terminal,
what you type answers what it asks, or is said to it; /help names the rest.

It asks for leave before it changes anything, except in the folder of --out and
with the tools of --allow. Limits are those of the whole life, across processes.

Exit code: 0; 1 where it rests for want of a model or of what it may spend; 2 a
mistake; 130 after Ctrl-C without a terminal."""
app = typer.Typer(**PLAIN)


@command(
    app, "model roles fallback patience_s data user embedder",
    'mindstream live --goal "Write a brief on why shift workers sleep badly" \\',
    "    --docs ./papers --out ./results --model openai:gpt-5-mini --max-usd 1",
    'mindstream live --goal "Keep my sleep diary" --every "day at 8:00: ask me how I slept" \\',
    "    --hours 07:00-22:00 --stay",
    "mindstream live                         go on with it, or watch it",
    "mindstream live --for 2h --json         for two hours, one event a line",
    notes=NOTES, roles="Who answers in one role: M2 plans, M1 does, M0 thinks; repeatable.",
)  # fmt: skip
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
    calls: Annotated[int | None, flag("N", "So many calls of models in its life.", "--max-calls", min=0)] = None,
    tokens: Annotated[int | None, flag("N", "So many tokens in its life.", "--max-tokens", min=0)] = None,
    usd: Annotated[float | None, flag("X", "So many US dollars in its life.", "--max-usd", min=0)] = None,
    usd_per_day: Annotated[float | None, flag("X", "So many on one day (UTC).", min=0)] = None,
    words_per_day: Annotated[int | None, flag("N", "So many words it may ask you, unasked, on one day.", min=0)] = None,
    prompt_tokens: Annotated[
        int, flag("N", "M2's prompt is never longer; older turns become memories.")
    ] = PROMPT_TOKENS,
    stay: Annotated[bool, switch("--stay", "Wait for you when nothing is left to do.")] = False,
    watch: Annotated[Path | None, flag("DIR", "Files that come, change or go there wake it.")] = None,
    hears: Annotated[bool, switch("--hears/--hears-not", "What is said in `chat` is said to it, too.")] = True,
    record: Record = None,
    json: Annotated[bool, switch("--json", "One event a line, as JSON; nothing else there.")] = False,
) -> int:
    """Live for a goal, turn by turn, until there is nothing left to do.

    Without --goal it goes on with the life that stands in the log.
    """
    wanted = LifeSettings(
        goal=goal.strip(), orders=tuple(map(make_order, every or ())), tools=split_names(tools),
        docs=tuple(docs or ()), mcp=tuple(mcp or ()), out=out, allow=tuple(allow or ()), pool=pool, offer=offer,
        hours=hours, calls=calls, tokens=tokens, usd=usd, usd_per_day=usd_per_day, words_per_day=words_per_day,
        prompt_tokens=prompt_tokens, hears=hears, record=record,
    )  # fmt: skip
    again = {
        "tools": ",".join(wanted.tools or ()), "docs": docs, "mcp": mcp, "trust": trust, "out": out,
        "allow": allow, "pool": pool, "offer": offer, "hours": hours, "max-calls": calls, "max-tokens": tokens,
        "max-usd": usd, "usd-per-day": usd_per_day, "words-per-day": words_per_day, "watch": watch, "stay": stay,
        "hears-not": not hears, "prompt-tokens": prompt_tokens if prompt_tokens != PROMPT_TOKENS else None,
    }  # fmt: skip
    if watch and not watch.is_dir():
        raise InputError(f"there is no folder {str(watch)!r} to watch")
    command = shlex.join(["mindstream", "live", *flags_again(chosen), *write_flags(again)])
    wishes = Wishes(turns, for_, stay, watch, trust, json, command)
    in_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not json
    left = f"you left; nothing is lost, and this goes on with it:\n  {command}"
    return run_until_stopped(
        _live(chosen.settings, wanted, wishes, in_terminal), lambda: left, interrupt=not in_terminal
    )


def make_order(words: str) -> str:
    """Return a standing order as it is kept: `--every "day at 8:00: …"` is every day at 8:00."""
    return words if words.lower().startswith("every ") else f"every {words}"


async def _live(settings: Settings, wanted: LifeSettings, wishes: Wishes, in_terminal: bool) -> int:
    screen: Screen = JsonLifeScreen() if wishes.json else LifeScreen(Console(highlight=False))
    async with memory(settings, new=True) as opened:
        until = read_end(wishes.end, opened.clock.now()) if wishes.end else None
        session = Session(opened, screen, wishes, in_terminal)
        if await lives.is_lived(opened.stream):
            if wanted.goal or wanted.orders:
                await commands.give_goal(opened.stream, wanted.goal, wanted.orders)
            if not await session.watch():
                return 0
        since = await newest(opened)
        asker = Asker(PlainScreen(Console(stderr=True))) if is_answerable() and not wishes.json else None
        approve = server_approval(wishes.trust, asker, PlainScreen(Console(stderr=True)))
        async with open_life(settings, wanted, opened.stream, approve=approve, note=screen.say) as life:
            shown = since if wishes.json else await newest(opened)
            return await session.live(life, shown, until, wanted.out)
