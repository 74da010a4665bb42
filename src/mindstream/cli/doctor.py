"""`mindstream doctor`."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from mindstream.cli.json_lines import print_json
from mindstream.cli.plain import clean
from mindstream.service.checks import examine
from mindstream.settings import Chosen

MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "broken": ("broken", "bold red")}
BROKEN = 1


def doctor(chosen: Chosen, json: bool, window: int | None = None) -> int:
    """Print what was found; return 1 where something is broken."""
    findings = asyncio.run(examine(chosen, window))
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
