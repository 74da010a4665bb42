"""`mindstream mind`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mindstream.cli.flags import AsJson, Data, Embedder, User, group, settings

mind = group("Carry a whole mind elsewhere, as one file.")


@mind.command(epilog="\b\nExample:\n  mindstream mind export ann.mind --user ann")
def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; - is standard output.")],
    data: Data = None,
    user: User = None,
) -> int:
    """Write a whole mind as one file.

    JSON Lines as `memory export` writes them, superseded and forgotten records too, under a header with the pack, gate,
    models and session of the last conversation. The log stays.
    """
    from mindstream.cli.mind import export

    return export(settings(data, user), file)


@mind.command("import", epilog="\b\nExample:\n  mindstream mind import ann.mind --data elsewhere")
def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where from; - is standard input.")],
    data: Data = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="Whose mind it will be [as in the file].")
    ] = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Take in a mind, and say how to go on with it.

    All of it is checked before anything is written, and twice is as good as once. Texts are embedded
    anew.
    """

    from mindstream.cli.mind import import_mind

    return import_mind(settings(data, user, embedder), file, user, data, json)
