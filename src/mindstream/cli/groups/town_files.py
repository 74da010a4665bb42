"""`mindstream town`: commands that make a town of files, and files of a town."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mindstream.cli.flags import AsJson, Embedder, TownData, Yes, town_settings
from mindstream.cli.groups.town import Model, ProfileOf, Role, Seed, town

__all__ = ["town"]


@town.command(
    epilog="\b\nExamples:\n  mindstream town prepare ./mine.toml --model openai:gpt-5-mini\n"
    "  mindstream town prepare ./mine.toml --model openai:gpt-5-mini --out ./prepared.toml\n\n"
    "Exit code: 0; 1 where a model failed, and nothing has changed; 2 a mistake."
)
def prepare(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="A town file.")],
    out: Annotated[
        Path | None, typer.Option(metavar="NEW.toml", help="Write it there, and leave FILE as it is.")
    ] = None,
    model: Model = None,
    role: Role = None,
    yes: Yes = False,
    json: AsJson = False,
) -> int:
    """Let a model write the keys of a town file that is told in prose.

    Days, beds, appointments and acquaintances of residents, purposes of places, dangers: asked once for each resident
    and once for the places, shown as a difference, then kept in the file. Comments and keys that are there stay.
    """
    from mindstream.cli import town_prepare

    return town_prepare.prepare(town_settings(model=model, roles=role), file, out, yes, json)


@town.command(
    "import",
    epilog="\b\nExample:\n  mindstream town import ./base_the_ville_n25 --data ./theirs --map ./the_ville",
)
def import_(
    save: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a saved simulation (Park 2023).")],
    map_: Annotated[
        Path | None,
        typer.Option(
            "--map", metavar="DIR", help="Its map, a matrix folder or a Tiled file [beside DIR, by its name]."
        ),
    ] = None,
    whispers: Annotated[
        Path | None, typer.Option(metavar="FILE", help="First memories of the residents (agent_history….csv).")
    ] = None,
    seed: Seed = 0,
    profile: ProfileOf = None,
    data: TownData = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Begin a town from a saved simulation."""
    from mindstream.cli import town_files

    chosen = town_settings(data=data, embedder=embedder)
    return town_files.take_in(chosen, save, map_, whispers, seed, profile or (), json)


@town.command(
    epilog='\b\nExamples:\n  mindstream town export --data ./ville --out ./saved --at "Feb 14 12:00"\n'
    "  mindstream town export --data ./ville --journal journal.jsonl"
)
def export(
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="As a saved simulation, into a new folder.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="With --out: the save it was imported from; what a town does not keep is copied from it.",
        ),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="All that happened, a line of JSON each, always in the same order."),
    ] = None,
    at: Annotated[str, typer.Option(metavar="TIME", help="As it was then [now].")] = "",
    data: TownData = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Write a town into files: a saved simulation, or its journal.

    The published code (Park 2023) takes the saved simulation, and so does import; its map is in it.
    """
    from mindstream.cli import town_files

    return town_files.export(town_settings(data=data, embedder=embedder), out, save, journal, at, json)
