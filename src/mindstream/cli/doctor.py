"""`mindstream doctor`: check settings, models, data and packages."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from mindstream.cli.shell.flags import PLAIN, AsJson, command, flag, switch
from mindstream.cli.shell.output import clean, print_json, say
from mindstream.memory.opening import is_begun
from mindstream.service.doctor import repair
from mindstream.service.doctor.checks import Finding, examine
from mindstream.settings import Chosen
from mindstream.text.words import count_of

MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "broken": ("broken", "bold red")}
BROKEN = 1
app = typer.Typer(**PLAIN)


@command(
    app,
    "more_roles pack model roles prompts data user embedder",
    "mindstream doctor --model openai:gpt-5-mini",
    **dict.fromkeys(("pack", "model", "prompts"), "As in `mindstream chat`."),
)
def doctor(
    chosen: Chosen,
    context: Annotated[
        int | None, flag("N", "Also check which prompts fit into a context window of N tokens.", min=512)
    ] = None,
    mend: Annotated[
        bool,
        switch(
            "--mend",
            "First rebuild a damaged database from all rows that can be read, and keep a copy of the damaged one.",
        ),
    ] = False,
    json: AsJson = False,
) -> int:
    """Check settings, models, data and packages, and show how to fix problems.

    Exit code 1 if something is broken.
    """
    mended = [_mended(chosen)] if mend and is_begun(chosen.settings.data) else []
    findings = [*mended, *asyncio.run(examine(chosen, context))]
    broken = sum(finding.state == "broken" for finding in findings)
    if json:
        print_json(*map(asdict, findings))
        return BROKEN if broken else 0
    console = Console(highlight=False)
    for finding in findings:
        mark, style = MARKS[finding.state]
        line = Text(f"{mark:7}", style)
        line.append(f"{finding.topic:9} ", "bold")
        line.append(clean(finding.found))
        console.print(line, soft_wrap=True)
        if finding.mend:
            console.print(Text(f"{'':17}→ {clean(finding.mend)}"), soft_wrap=True)
    say(f"\n{broken} broken" if broken else "\nnothing is broken")
    return BROKEN if broken else 0


def _mended(chosen: Chosen) -> Finding:
    done = repair.mend(chosen.settings.data.as_folder())
    records, rows = count_of(done.kept["records"], "record"), count_of(done.kept["log"], "row")
    kept = f"{records}, {rows} of the log and {done.kept['work']:,} of work"
    aside = "".join(f"; {count:,} {why}" for why, count in done.aside.items())
    lost = f"; {count_of(done.lost, 'part')} of tables could not be read" if done.lost else ""
    where = f"{done.copy} is the original" + (f"; {repair.ASIDE} holds what was left out" if done.aside else "")
    return Finding("mended", "note" if aside or lost else "ok", f"{kept} restored{aside}{lost}", where)
