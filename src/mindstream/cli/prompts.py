"""`mindstream prompts`: what is asked of models, and in whose words."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from mindstream.cli.shell.flags import PLAIN, AsJson, bare, command, word
from mindstream.cli.shell.output import print_json, print_table, say
from mindstream.service import prompts
from mindstream.settings import Settings

app = typer.Typer(**PLAIN)


@bare(
    app,
    "prompts",
    "mindstream prompts copy words         the shipped words, to be changed",
    "mindstream prompts --prompts words    which of them are used",
    "mindstream chat --prompts words --model openai:gpt-5-mini",
    prompts="Your own words, as for chat.",
)
def show(context: typer.Context, settings: Settings, json: AsJson = False) -> None:
    """List what models are asked, and in whose words.

    Rules read no words: they answer until a model is named.
    """
    if context.invoked_subcommand is not None:
        return
    folder = settings.prompts
    found = prompts.prompts(folder)
    if json:
        for words in found:
            own = str(words.own) if words.own else None
            told = {"name": words.name, "role": words.role, "asks": words.asks, "file": str(words.shipped)}
            print_json(told | {"own": own, "changed": words.changed})
    else:
        rows = [(words.name, words.role, _whose(words), words.asks) for words in found]
        print_table(("prompt", "role", "words", "what it asks for"), rows, words=4)
    for path in prompts.unread(folder) if folder else []:
        say(f"{path} is read by no prompt; check its name", sys.stderr)


def _whose(words: prompts.Words) -> str:
    if words.own is None:
        return "shipped"
    return str(words.own) if words.changed else f"{words.own} (not changed yet)"


@command(app, "", "mindstream prompts copy words")
def copy(folder: Annotated[Path, word("DIR", "A folder; made where it is not there.")]) -> None:
    """Write the shipped words into a folder of your own.

    A file that is there already is never written over.
    """
    written, kept = prompts.copy(folder)
    for path in kept:
        say(f"{path} is there already and stays as it is", sys.stderr)
    say(f"{len(written)} written to {folder}. Change them, and delete those that you leave as they are:")
    say("a later mindstream may have better words for those. Then")
    where = shlex.quote(str(folder))
    say(f"  mindstream prompts --prompts {where}\n  mindstream chat --prompts {where} --model …")
