"""Write docs/cli.md from what the commands say of themselves: `python tests/cli/write_docs.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from mindstream.cli.app import app

FILE = Path(__file__).parents[2] / "docs" / "cli.md"
WIDTH = 100
HEAD = """\
# The command line

What `--help` says, command by command; written by `python tests/cli/write_docs.py`, held to the code by a test.

Exit codes: 0 done; 1 done, but something could not be taken, or something is broken or thin; 2 a mistake in what was
asked for, or in its surroundings; 70 our own fault (the traceback is in a file, `--debug` shows it); 130 stopped by
Ctrl-C; 141 whoever read the output went away.

With `--json` a command writes one JSON object a line on standard output, and nothing else there. What is for people
only (notes, progress, questions) goes to standard error.
"""


def page() -> str:
    """Return the whole page."""
    parts = [HEAD, *(f"## {name}\n\n```\n{text}\n```\n" for name, text in helps(typer.main.get_command(app)))]
    return "\n".join(parts)


def helps(command: Any, parent: Any = None) -> Iterator[tuple[str, str]]:
    """Yield the name and the help of a command and of those below it."""
    context = command.make_context(
        "mindstream" if parent is None else command.name, [], parent=parent, resilient_parsing=True,
        terminal_width=WIDTH, max_content_width=WIDTH,
    )  # fmt: skip
    yield context.command_path, "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    for name in getattr(command, "commands", ()):
        yield from helps(command.commands[name], context)


if __name__ == "__main__":
    FILE.write_text(page(), "utf-8")
