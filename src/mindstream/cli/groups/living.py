"""`mindstream live`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from mindstream.cli import flags_solving as flags
from mindstream.cli.flags import Data, Embedder, Fallback, Patience, PoolName, User, choose
from mindstream.cli.flags_solving import split_names

EPILOG = """M2 plans turn by turn, M1 carries out its tasks with the tools, M0 thinks; what
is worth keeping is remembered, and sleep makes dreams of the rest. Where there
is nothing to do, nothing is called. Everything stands in the log: whatever ends
it, `mindstream live` goes on where it was.

One process lives a life at a time; a second one watches it, and can answer,
steer, pause and stop it all the same (so can `mindstream life`). In a terminal,
what you type answers what it asks, or is said to it; /help names the rest.

It asks for leave before it changes anything, except in the folder of --out and
with the tools of --allow. Limits are those of the whole life, across processes.

Exit code: 0; 1 where it rests for want of a model or of what it may spend; 2 a
mistake; 130 after Ctrl-C without a terminal.

\b
Examples:
  mindstream live --goal "Write a brief on why shift workers sleep badly" \\
      --docs ./papers --out ./results --model openai:gpt-5-mini --usd 1
  mindstream live --goal "Keep my sleep diary" --every "day at 8:00: ask me how I slept" \\
      --hours 07:00-22:00 --stay
  mindstream live                         go on with it, or watch it
  mindstream live --for 2h --json         for two hours, one event a line"""

Role = Annotated[
    list[str] | None,
    typer.Option(metavar="ROLE=NAME", help="Who answers in one role: M2 plans, M1 does, M0 thinks; repeatable."),
]


def live(
    goal: Annotated[str, typer.Option(metavar="WORDS", help="What it is to reach [what its log says].")] = "",
    for_: Annotated[
        str, typer.Option("--for", metavar="TIME", help="No turn begins after that: 2h, 90 min, until 18:00.")
    ] = "",
    turns: Annotated[int | None, typer.Option(min=0, metavar="N", help="So many turns at most, now.")] = None,
    every: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORDER",
            help='A standing order, when and what: "day at 8:00: ask me how I slept", '
            '"monday and friday at 18:30: …", "2 hours: …", "1st of the month at noon: …"; repeatable.',
        ),
    ] = None,
    tools: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="What M1 may call: as for solve, and planner, which solves tasks in steps"
            " with the others [calculator].",
        ),
    ] = None,
    docs: flags.Docs = None,
    mcp: flags.Mcp = None,
    trust: flags.Trust = False,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="It may write files into this folder.")] = None,
    allow: flags.Allow = None,
    pool: PoolName = "",
    offer: Annotated[
        bool, typer.Option("--offer", help="Offer what M1 carried out, task and result, to that pool.")
    ] = False,
    hours: Annotated[
        str, typer.Option(metavar="FROM-TO", help="It acts by itself only then: 08:00-22:00 [always].")
    ] = "",
    calls: Annotated[int | None, typer.Option(min=0, metavar="N", help="So many calls of models in its life.")] = None,
    tokens: Annotated[int | None, typer.Option(min=0, metavar="N", help="So many tokens in its life.")] = None,
    usd: Annotated[float | None, typer.Option(min=0, metavar="X", help="So many US dollars in its life.")] = None,
    usd_per_day: Annotated[float | None, typer.Option(min=0, metavar="X", help="So many on one day (UTC).")] = None,
    words_per_day: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="So many words it may ask you, unasked, on one day.")
    ] = None,
    prompt_tokens: Annotated[
        int,
        typer.Option(metavar="N", help="M2's prompt is never longer; older turns become memories.", show_default=True),
    ] = 8_000,
    stay: Annotated[bool, typer.Option("--stay", help="Wait for you when nothing is left to do.")] = False,
    watch: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Files that come, change or go there wake it.")
    ] = None,
    hears: Annotated[
        bool, typer.Option("--hears/--hears-not", help="What is said in `chat` is said to it, too.", show_default=True)
    ] = True,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who answers in all roles, as for chat [rules].")
    ] = None,
    role: Role = None,
    fallback: Fallback = None,
    patience: Patience = None,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep every call of a model, for playback:FILE.")
    ] = None,
    data: Data = None,
    user: User = None,
    embedder: Embedder = None,
    json: Annotated[bool, typer.Option("--json", help="One event a line, as JSON; nothing else there.")] = False,
) -> int:
    """Live for a goal, turn by turn, until there is nothing left to do.

    Without --goal it goes on with the life that stands in the log.
    """
    from mindstream.cli.live import Wishes, live
    from mindstream.service.living import LifeSettings

    given = {
        "model": model, "roles": role, "fallback": fallback, "patience_s": patience, "data": data, "user": user,
        "embedder": embedder,
    }  # fmt: skip
    wanted = LifeSettings(
        goal=goal.strip(), orders=tuple(map(make_order, every or ())), tools=split_names(tools),
        docs=tuple(docs or ()), mcp=tuple(mcp or ()), out=out, allow=tuple(allow or ()), pool=pool, offer=offer,
        hours=hours, calls=calls, tokens=tokens, usd=usd, usd_per_day=usd_per_day, words_per_day=words_per_day,
        prompt_tokens=prompt_tokens, hears=hears, record=record,
    )  # fmt: skip
    again = {
        **given, "tools": ",".join(wanted.tools or ()), "docs": docs, "mcp": mcp, "trust": trust, "out": out,
        "allow": allow, "pool": pool, "offer": offer,
        "hours": hours, "calls": calls, "tokens": tokens, "usd": usd, "usd-per-day": usd_per_day,
        "words-per-day": words_per_day, "watch": watch, "stay": stay, "hears-not": not hears,
        "prompt-tokens": prompt_tokens if prompt_tokens != 8_000 else None,
    }  # fmt: skip
    wishes = Wishes(turns, for_, stay, watch, trust, json, _command(again))
    return live(choose(given).settings, wanted, wishes)


def make_order(words: str) -> str:
    """Return a standing order as it is kept: `--every "day at 8:00: …"` is every day at 8:00."""
    return words if words.lower().startswith("every ") else f"every {words}"


def _command(flags: Mapping[str, object]) -> str:
    """Write the command that goes on with a life."""
    from mindstream.settings import flag_of

    words = ["mindstream", "live"]
    for name, value in flags.items():
        flag = flag_of(name)
        if value is True:
            words.append(flag)
            continue
        for each in value if isinstance(value, list) else [value]:
            words += [] if each is None or each is False or each == "" else [flag, str(each)]  # 0 is a limit
    return shlex.join(words)
