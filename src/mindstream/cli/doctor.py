"""`mindstream doctor`."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from mindstream.cli.clean import clean, say
from mindstream.cli.json_lines import print_json
from mindstream.log.database import FILE
from mindstream.service.checks import Finding, examine
from mindstream.service.mending import ASIDE, mend
from mindstream.settings import Chosen
from mindstream.text.counting import count_of

MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "broken": ("broken", "bold red")}
BROKEN = 1


def doctor(chosen: Chosen, json: bool, window: int | None = None, mends: bool = False) -> int:
    """Print what was found, after mending the data where that is wanted; return 1 where something is broken."""
    mended = [_mended(chosen)] if mends and (chosen.settings.data / FILE).exists() else []
    findings = [*mended, *asyncio.run(examine(chosen, window))]
    broken = [finding for finding in findings if finding.state == "broken"]
    if json:
        for finding in findings:
            print_json(asdict(finding))
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
    say(f"\n{len(broken)} broken" if broken else "\nnothing is broken")
    return BROKEN if broken else 0


def _mended(chosen: Chosen) -> Finding:
    done = mend(chosen.settings.data)
    records, rows = count_of(done.kept["records"], "record"), count_of(done.kept["log"], "row")
    kept = f"{records}, {rows} of the log and {done.kept['work']:,} of work"
    aside = "".join(f"; {count:,} {why}" for why, count in done.aside.items())
    lost = f"; {count_of(done.lost, 'part')} of tables could not be read" if done.lost else ""
    where = f"{done.copy} holds it as it was" + (f", and {ASIDE} what was set aside" if done.aside else "")
    return Finding("mended", "note" if aside or lost else "ok", f"{kept} stand again{aside}{lost}", where)
