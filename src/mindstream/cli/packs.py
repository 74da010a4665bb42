"""`mindstream packs` and `mindstream pack`: domains as data."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mindstream.cli.clean import say
from mindstream.cli.json_lines import print_json
from mindstream.coach.packs.check import new, thin_spots
from mindstream.coach.packs.load import load, shipped_packs
from mindstream.coach.packs.saying import phrase_names, phrases
from mindstream.text.counting import count_of

THIN = 1
"""The exit code where a pack can be used, but will let its users down."""


def show(json: bool) -> int:
    """List the packs that come with mindstream."""
    found = [load(name) for name in shipped_packs()]
    if json:
        for pack in found:
            print_json({"name": pack.name, "title": pack.title, "languages": pack.languages})
        return 0
    table = Table("pack", "title", "languages", "phases", box=None, header_style="dim")
    for pack in found:
        table.add_row(pack.name, pack.title, ", ".join(pack.languages), ", ".join(phase.name for phase in pack.phases))
    Console(highlight=False).print(table)
    return 0


def begin(folder: Path) -> int:
    """Write a small pack to begin from."""
    written = new(folder)
    where = shlex.quote(str(written) if written.is_absolute() or written.parts[0] == ".." else f"./{written}")
    say(f"{written} is a small pack that works; change its files, then:")
    say(f"  mindstream pack check {where}\n  mindstream chat --pack {where}")
    return 0


def check(name_or_folder: str, all_phrases: bool) -> int:
    """Say what is wrong with a pack, or thin."""
    pack = load(name_or_folder)
    if all_phrases:
        for name in phrase_names():
            for language in pack.languages:
                for text in phrases(pack, name, language):
                    say(f"{name} ({language}): {text}")
        return 0
    thin = thin_spots(pack)
    for spot in thin:
        say(f"thin: {spot}")
    told = count_of(len(thin), "thin spot") if thin else "no thin spots"
    say(f"{pack.name} can be used: {pack.count_parts()}; {told}", sys.stderr)
    return THIN if thin else 0
