"""Write docs/cli.md from the help texts of all commands: `python tests/cli/write_docs.py`."""

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

After this page you know every command and flag. It is the output of `--help`, written by `python
tests/cli/write_docs.py` and checked by a test.

Exit codes: 0 done; 1 not done completely: a line was not accepted, a model failed, a limit was reached, or something is
broken or has gaps; 2 a mistake in the arguments or the environment; 70 an error in mindstream (the traceback is in a
file, `--debug` prints it); 130 stopped by Ctrl-C, 143 by SIGTERM, 129 because the terminal was closed (partial results
are stored in all three cases); 141 the reader of the output is gone. The help of a command names its own codes, such as
0 of `serve` after a signal.

Files in the working directory are used only if you name them: a `mindstream.toml` there is read with
`--settings mindstream.toml` (or if `MINDSTREAM_SETTINGS` names it); a pack of your own is named by its path
(`./mine`; a name without a path is always a shipped pack), and so is a folder with an embedder (`st:./folder`). With
`python -m mindstream.cli`, Python looks for modules in the working directory first; in folders of other people use the
command `mindstream`.

With `--json` a command writes one JSON object a line to standard output, and nothing else. Notes, progress and
questions go to standard error. In events `at` is in seconds since 1970 UTC; `chat --json` adds `after_s`, the seconds
since the command began. Text by others is shown without terminal control sequences, marks of direction and zero-width
characters; in JSON these are escapes.
"""


def page() -> str:
    """Return the whole page."""
    parts = [HEAD, *(f"## {name}\n\n```\n{text}\n```\n" for name, text in helps(typer.main.get_command(app)))]
    return "\n".join(parts)


def helps(command: Any, parent: Any = None) -> Iterator[tuple[str, str]]:
    """Yield the name and help of a command and its subcommands."""
    context = command.make_context(
        "mindstream" if parent is None else command.name, [], parent=parent, resilient_parsing=True,
        terminal_width=WIDTH, max_content_width=WIDTH,
    )  # fmt: skip
    yield context.command_path, "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    for name in getattr(command, "commands", ()):
        yield from helps(command.resolve_command(context, [name])[1], context)


if __name__ == "__main__":
    FILE.write_text(page(), "utf-8")
