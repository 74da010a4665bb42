"""`mindstream prompts`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mindstream.cli.flags import STYLE, AsJson, choose

EXAMPLES = """\b
Examples:
  mindstream prompts copy words         the shipped words, to be changed
  mindstream prompts --prompts words    which of them are used
  mindstream chat --prompts words --model openai:gpt-5-mini"""

prompts = typer.Typer(rich_markup_mode=None, context_settings=STYLE)


@prompts.callback(invoke_without_command=True, epilog=EXAMPLES)
def show(
    context: typer.Context,
    prompts: Annotated[Path | None, typer.Option(metavar="DIR", help="Your own words, as for chat.")] = None,
    json: AsJson = False,
) -> int:
    """List what models are asked, and in whose words.

    Rules read no words: they answer until a model is named.
    """
    if context.invoked_subcommand is not None:
        return 0
    from mindstream.cli.prompts import show

    return show(choose({"prompts": prompts}).settings, json)


@prompts.command(epilog="\b\nExample:\n  mindstream prompts copy words")
def copy(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder; made where it is not there.")]) -> int:
    """Write the shipped words into a folder of your own.

    A file that is there already is never written over.
    """
    from mindstream.cli.prompts import copy

    return copy(folder)
