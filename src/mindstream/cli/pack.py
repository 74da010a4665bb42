"""`mindstream pack` and `mindstream packs`: domains of the coach, as data."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from mindstream.cli.shell.flags import PLAIN, AsJson, command, group, switch, word
from mindstream.cli.shell.output import print_json, print_table, say
from mindstream.coach.packs.load import load, shipped_packs
from mindstream.text.words import count_of

THIN = 1
"""Exit code of `pack check --strict` if a pack can be used, but has gaps ("thin spots")."""
app, listing = group("Create and check a pack: a coaching domain of your own."), typer.Typer(**PLAIN)


@command(app, "", "mindstream pack check ./my_pack")
def check(
    name: Annotated[str, word("PACK", "A shipped pack by name, or a folder by its path.")],
    all_phrases: Annotated[
        bool,
        switch(
            "--phrases",
            "Only list the pack's fixed texts, by name and language: what the coach says without a model, while the"
            " user waits, after failures and in alarms.",
        ),
    ] = False,
    strict: Annotated[
        bool, switch("--strict", "Exit code 1 if the pack has gaps (in the output: lines that begin with `thin:`).")
    ] = False,
) -> int:
    """List the errors of a pack by file and line, and its gaps ("thin spots").

    Exit code: 2: the pack cannot be used; 1: the pack has gaps (only with --strict); 0: otherwise.
    """
    from mindstream.coach.packs import check as checking
    from mindstream.coach.packs.load import phrase_names, phrases

    pack = load(name)
    if all_phrases:
        for name in phrase_names():
            for language in pack.languages:
                for text in phrases(pack, name, language):
                    say(f"{name} ({language}): {text}")
        return 0
    thin = checking.thin_spots(pack)
    for spot in thin:
        say(f"thin: {spot}")
    message = count_of(len(thin), "thin spot") if thin else "no thin spots"
    say(f"{pack.name} can be used: {pack.count_parts()}; {message}", sys.stderr)
    return THIN if thin and strict else 0


@command(app, "", "mindstream pack new my_pack")
def new(folder: Annotated[Path, word("FOLDER", "A folder to create.")]) -> None:
    """Write a working example pack (a coach for tea) to start from."""
    from mindstream.coach.packs.check import new as write_pack

    written = write_pack(folder)
    where = shlex.quote(str(written) if written.is_absolute() or written.parts[0] == ".." else f"./{written}")
    say(f"{written} holds a working example, a coach for tea; replace its texts with those of your subject, then:")
    say(f"  mindstream pack check {where}\n  mindstream chat --pack {where}")


@command(listing, "", "mindstream packs --json")
def packs(json: AsJson = False) -> None:
    """List the packs (coaching domains) that ship with mindstream."""
    found = [load(name) for name in shipped_packs()]
    if json:
        print_json(*({"name": pack.name, "title": pack.title, "languages": pack.languages} for pack in found))
        return
    rows = [
        (pack.name, pack.title, ", ".join(pack.languages), ", ".join(phase.name for phase in pack.phases))
        for pack in found
    ]
    print_table(("pack", "title", "languages", "phases"), rows, words=4)
