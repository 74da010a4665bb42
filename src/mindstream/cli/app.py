"""All commands by name; the module of a command is imported when the command is named."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import mindstream as package
from mindstream.cli.shell.flags import PLAIN, flag, switch
from mindstream.plugins import registered

COMMANDS = {
    "chat": ("Talk to an agent that answers at once, thinks in the background, and remembers.", "chat"),
    "solve": ("Solve a task with tools: plan it, run the plan, answer.", "solve"),
    "live": ("Run a life: an agent that works for a goal, turn by turn, until nothing is left to do.", "live"),
    "serve": ("Serve REST, events, an OpenAI-compatible endpoint and MCP.", "server"),
    "work": ("Run the reasoners (background thinking) for servers, in a process of their own.", "server:work_app"),
    "mcp": ("Serve one memory to an MCP client, on standard input and output.", "server:mcp_app"),
    "token": ("Create, list and revoke the tokens of a server.", "server:token_app"),
    "log": ("Print the log: the numbered events of a mind.", "log"),
    "cost": ("Show tokens, seconds and US dollars of model calls.", "cost"),
    "init": ("Choose a model, test it with one short call, and write the settings file.", "init"),
    "doctor": ("Check settings, models, data and packages, and show how to fix problems.", "doctor"),
    "completion": ("Print the script that completes commands and flags in a shell.", "completion"),
    "packs": ("List the packs (coaching domains) that ship with mindstream.", "pack:listing"),
    "memory": (
        "Look into a user's memory, maintain it, export and import it.",
        "memory.look",
        "memory.sleep",
        "memory.policy",
        "memory.care",
    ),
    "data": ("Copy all data, set retention, export a person's data, delete a tenant, show the audit.", "data"),
    "mind": ("Export and import a whole mind, as one file.", "mind"),
    "model": ("List the forms of model names, and whether `local` is installed.", "model"),
    "prompts": ("List the prompt templates, shipped and your own.", "prompts"),
    "pack": ("Create and check a pack: a coaching domain of your own.", "pack"),
    "plan": ("Check, draw, edit and run plans in files; compare strategies.", "plan"),
    "pool": (
        "Share exemplars and lessons among agents: pools, their rubrics, members, verdicts.",
        "pool",
        "pool_learning",
    ),
    "life": ("Show a life (see `live`), answer its questions and steer it, from any process.", "life"),
}
"""For each command: its summary, and its modules. A module holds the command in the variable `app`, or in the variable
named after a colon. A group of commands has the commands of all its modules. Plugins add commands and extend groups."""
ELSEWHERE = {
    "town": "mindstream-town",
    "studio": "mindstream-studio",
    "demo": "mindstream-studio",
    "coach": "mindstream-evals",
    "gate": "mindstream-evals",
    "memory evaluate": "mindstream-evals",
    "plan evaluate": "mindstream-evals",
    "pool experiment": "mindstream-evals",
    "town evaluate": "mindstream-evals",
    "town ensemble": "mindstream-evals",
}
"""Commands of other distributions, for the error message if one is not installed."""

EXAMPLES = """\b
Examples:
  mindstream init                          choose a model, and test it
  mindstream chat                          rules answer until you name a model
  mindstream chat --model ollama:qwen3     a model on your own machine
  echo "I sleep badly" | mindstream chat   one utterance a line
  mindstream memory recall what disturbs the sleep
  mindstream solve "17.5% of 2480"         tools, by a plan
  mindstream live --goal "…" --docs DIR    a goal, turn by turn
  mindstream town new --data ./ville       a town of residents
  mindstream doctor                        checks, and how to fix problems

Settings come from flags, from the environment (MINDSTREAM_DATA,
MINDSTREAM_MODEL, …), and from one TOML file (the one that --settings names,
else ~/.config/mindstream/settings.toml), in that order. Files in the working
directory are read only if you name them."""


@cache
def _commands() -> dict[str, tuple[str, ...]]:
    """Return the commands of the core and of all plugins: by name, the help text and the modules."""
    found = dict[str, tuple[str, ...]](COMMANDS)
    added = [(name, *entry) for plugin in registered() for name, entry in plugin.commands.items()]
    # entries without a help text extend a group, so they come last
    for name, help, *modules in sorted(added, key=lambda each: not each[1]):
        if help:
            found[name] = (help, *modules)
        elif name in found:
            found[name] = (*found[name], *modules)
    return found


class Root(TyperGroup):
    """The root group: lists all commands, and imports only the modules of the command that the user names."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.commands = {name: TyperCommand(name, help=help) for name, (help, *_) in _commands().items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import and return the command that the user named.

        Raises:
            TyperException: the command belongs to a distribution that is not installed.
        """
        known = _commands()
        if args[0] in known:
            found, *more = map(_load, known[args[0]][1:])
            for each in more:
                found.commands |= each.commands
            self.commands[args[0]] = found
            found.name = args[0]
        words = [args[0], " ".join(args[:2])]
        subcommands = getattr(self.commands.get(args[0]), "commands", {})
        for word in words:
            if word in ELSEWHERE and word not in known and word.partition(" ")[2] not in subcommands:
                raise typer.TyperException(
                    f"`mindstream {word}` is in another distribution: pip install {ELSEWHERE[word]}"
                )
        return super().resolve_command(ctx, args)


def _load(module: str) -> Any:
    """Return the command or group that a module holds as `app`, or under the name after a colon."""
    path, _, name = module.partition(":")
    found = import_module(path if path.startswith("mindstream_") else f"mindstream.cli.{path}")
    return typer.main.get_command(getattr(found, name or "app"))


app = typer.Typer(**PLAIN, pretty_exceptions_enable=False, epilog=EXAMPLES, cls=Root)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"mindstream {package.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def mindstream(
    context: typer.Context,
    version: Annotated[bool, switch("--version", "Print the version.", callback=_print_version, is_eager=True)] = False,  # noqa: ARG001
    debug: Annotated[bool, switch("--debug", "Show tracebacks.")] = False,  # noqa: ARG001 (edge.py reads it)
    settings: Annotated[Path | None, flag("FILE", "The settings file [~/.config/mindstream/settings.toml].")] = None,
) -> None:
    """Run and inspect agents that answer at once, think in the background, and have a durable memory.

    --debug and --settings may stand anywhere in a command line.
    """
    if settings is not None:
        os.environ["MINDSTREAM_SETTINGS"] = str(settings)  # the flag sets the variable, for this process
    if context.invoked_subcommand is None:
        print(context.get_help())
