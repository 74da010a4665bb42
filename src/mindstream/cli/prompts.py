"""`mindstream prompts`: list the prompt templates, and copy them to change them."""

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
    "mindstream prompts copy words         copy the templates, to change them",
    "mindstream prompts --prompts words    show which are used",
    "mindstream chat --prompts words --model openai:gpt-5-mini",
    prompts="The folder of your own templates.",
)
def show(settings: Settings, json: AsJson = False) -> None:
    """List the prompt templates of mindstream itself: the shipped ones and your own.

    Templates of other packages, such as mindstream-town, are not listed.

    Without a model, fixed rules answer, which read no prompts.
    """
    folder = settings.prompts
    found = prompts.prompts(folder)
    if json:
        for words in found:
            own = str(words.own) if words.own else None
            values = {"name": words.name, "role": words.role, "asks": words.asks, "file": str(words.shipped)}
            print_json(values | {"own": own, "changed": words.changed})
    else:
        rows = [(words.name, words.role, _whose(words), words.asks) for words in found]
        print_table(("prompt", "role", "template", "what it asks for"), rows, words=4)
    for path in prompts.unread(folder) if folder else []:
        say(f"{path} replaces none of these: no prompt of mindstream itself has this name", sys.stderr)


def _whose(words: prompts.PromptFile) -> str:
    if words.own is None:
        return "shipped"
    return str(words.own) if words.changed else f"{words.own} (not changed yet)"


@command(app, "", "mindstream prompts copy words")
def copy(folder: Annotated[Path, word("DIR", "A folder; created if it does not exist.")]) -> None:
    """Copy the shipped templates into a folder of your own.

    Existing files are never overwritten.
    """
    written, kept = prompts.copy(folder)
    for path in kept:
        say(f"{path} exists already and is not changed", sys.stderr)
    say(f"templates written to {folder}: {len(written)}. Edit them, and delete those that you do not change:")
    say("for deleted templates, improvements of later mindstream versions take effect. Then")
    where = shlex.quote(str(folder))
    say(f"  mindstream prompts --prompts {where}\n  mindstream chat --prompts {where} --model …")
