"""`mindstream doctor` and `mindstream packs`."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mindstream.cli.json_lines import print_json
from mindstream.cli.plain import clean
from mindstream.packs.load import load, shipped
from mindstream.service.checks import examine
from mindstream.settings import Chosen

MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "broken": ("broken", "bold red")}
BROKEN = 1


def doctor(chosen: Chosen, json: bool) -> int:
    """Print what was found; return 1 where something is broken."""
    findings = asyncio.run(examine(chosen))
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
    print(f"\n{len(broken)} broken" if broken else "\nnothing is broken")
    return BROKEN if broken else 0


def packs(json: bool) -> int:
    """List the packs that come with mindstream."""
    found = [load(name) for name in shipped()]
    if json:
        for pack in found:
            print_json({"name": pack.name, "title": pack.title, "languages": pack.languages})
        return 0
    table = Table("pack", "title", "languages", "phases", box=None, header_style="dim")
    for pack in found:
        table.add_row(pack.name, pack.title, ", ".join(pack.languages), ", ".join(phase.name for phase in pack.phases))
    Console(highlight=False).print(table)
    return 0
