"""All commands by name; what they take and do is in modules that are imported when one of theirs is named."""

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
    "chat": ("Talk: it answers at once, thinks behind, remembers.", "chat"),
    "solve": ("Solve a task with tools: plan it, run the plan, answer.", "solve"),
    "live": ("Live for a goal, turn by turn, until there is nothing left to do.", "live"),
    "serve": ("Serve REST, events, a model for chat pages and MCP.", "server.serve"),
    "work": ("Think for the minds that servers hear and speak for.", "server.work"),
    "mcp": ("Serve one memory to a program that speaks MCP, on standard input and output.", "server.mcp"),
    "token": ("Make, list and revoke the tokens of a server.", "server.token"),
    "log": ("Print the log: everything that happened to a mind, numbered.", "log"),
    "cost": ("Say what calls of models came to: tokens, seconds, US dollars.", "cost"),
    "doctor": ("Say what is configured, reachable, missing, and how to mend it.", "doctor"),
    "packs": ("List the packs that come with mindstream.", "pack:listing"),
    "memory": (
        "Look into a user's memory, care for it, carry it elsewhere.",
        "memory.look",
        "memory.sleep",
        "memory.dreams",
        "memory.policy",
        "memory.fit",
        "memory.care",
    ),
    "data": ("Carry all data between a folder and a PostgreSQL database.", "data"),
    "mind": ("Carry a whole mind elsewhere, as one file.", "mind"),
    "model": ("List the names that models have here, and whether `local` is there.", "model"),
    "prompts": ("List what models are asked, and in whose words.", "prompts"),
    "pack": ("Make a domain of your own, and check it.", "pack"),
    "plan": ("Look at plans in files, change them, run them; compare ways of solving.", "plan.files"),
    "pool": ("Share exemplars among agents: pools, their rubrics, who may read what.", "pool", "pool_learning"),
    "life": ("Look at a life, answer it, steer it; from any process, whoever lives it at the moment.", "life"),
}
"""What each command is for, and the modules whose `app` holds it; a group's commands come from all of its modules.
Plugins add commands and extend groups."""
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
"""Commands of other distributions, and which: what an error names where one is not installed."""

EXAMPLES = """\b
Examples:
  mindstream chat                          rules answer until you name a model
  mindstream chat --model ollama:qwen3     a model on your own machine
  echo "I sleep badly" | mindstream chat   one utterance a line
  mindstream memory recall what disturbs the sleep
  mindstream solve "17.5% of 2480"         tools, by a plan
  mindstream live --goal "…" --docs DIR    a goal, turn by turn
  mindstream town new --data ./ville       a town of residents
  mindstream doctor                        what is missing, how to mend it

Settings come from flags, from the environment (MINDSTREAM_DATA,
MINDSTREAM_MODEL, …), and from one TOML file (the one that --settings names,
else ~/.config/mindstream/settings.toml), in that order. Nothing that lies in
the working directory is read unless you name it."""


@cache
def _commands() -> dict[str, tuple[str, ...]]:
    """Return the commands of the core and of all plugins."""
    found = dict[str, tuple[str, ...]](COMMANDS)
    added = [(name, *entry) for plugin in registered() for name, entry in plugin.commands.items()]
    for name, help, *modules in sorted(added, key=lambda each: not each[1]):  # extensions come after all groups
        if help:
            found[name] = (help, *modules)
        elif name in found:
            found[name] = (*found[name], *modules)
    return found


class Root(TyperGroup):
    """All commands, of which only the one that is named is imported."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.commands = {name: TyperCommand(name, help=help) for name, (help, *_) in _commands().items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is named.

        Raises:
            TyperException: it belongs to a distribution that is not installed.
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
    """Return the command, or the group of some, that a module holds as `app`."""
    path = module if module.startswith("mindstream_") else f"mindstream.cli.{module}"
    return typer.main.get_command(import_module(path).app)


app = typer.Typer(**PLAIN, pretty_exceptions_enable=False, epilog=EXAMPLES, cls=Root)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"mindstream {package.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def mindstream(
    context: typer.Context,
    version: Annotated[bool, switch("--version", "Print the version.", callback=_print_version, is_eager=True)] = False,  # noqa: ARG001
    debug: Annotated[bool, switch("--debug", "Show tracebacks.")] = False,  # noqa: ARG001 (see edge)
    settings: Annotated[Path | None, flag("FILE", "The settings file [~/.config/mindstream/settings.toml].")] = None,
) -> None:
    """A mind that answers at once and thinks behind, with a memory that lasts.

    --debug and --settings may stand anywhere in a command.
    """
    if settings is not None:
        os.environ["MINDSTREAM_SETTINGS"] = str(settings)  # the flag is the variable, for this process
    if context.invoked_subcommand is None:
        print(context.get_help())
