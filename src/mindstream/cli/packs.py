"""`mindstream packs`: the domains that come with mindstream."""

from __future__ import annotations

import typer

from mindstream.cli.flags import PLAIN, AsJson, command
from mindstream.cli.json_lines import print_json
from mindstream.cli.tables import print_table
from mindstream.coach.packs.load import load, shipped_packs

app = typer.Typer(**PLAIN)


@command(app, "", "mindstream packs --json")
def packs(json: AsJson = False) -> None:
    """List the packs that come with mindstream."""
    found = [load(name) for name in shipped_packs()]
    if json:
        print_json(*({"name": pack.name, "title": pack.title, "languages": pack.languages} for pack in found))
        return
    rows = [
        (pack.name, pack.title, ", ".join(pack.languages), ", ".join(phase.name for phase in pack.phases))
        for pack in found
    ]
    print_table(("pack", "title", "languages", "phases"), rows, words=4)
