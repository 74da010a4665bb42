"""`mindstream pack`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mindstream.cli.flags import group

pack = group("Make a domain of your own, and check it.")


@pack.command(epilog="\b\nExample:\n  mindstream pack check ./my_pack")
def check(
    name: Annotated[str, typer.Argument(metavar="PACK", help="A shipped pack by name, or a folder by its path.")],
    all_phrases: Annotated[bool, typer.Option("--phrases", help="List what the rules say instead, by move.")] = False,
) -> int:
    """Say what is wrong with a pack, by file and line, and what is thin.

    Exit code 2 where it cannot be used, 1 where it is thin.
    """
    from mindstream.cli.packs import check

    return check(name, all_phrases)


@pack.command(epilog="\b\nExample:\n  mindstream pack new my_pack")
def new(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder that is not there yet.")]) -> int:
    """Write a small pack that works, to begin from."""
    from mindstream.cli.packs import begin

    return begin(folder)
