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

Exit codes: 0 success; 1 partial success, a negative result, or damage found; 2 invalid input or surroundings; 70 an
internal error (the traceback is in a file, `--debug` shows it); 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by a
closed terminal (text shown so far is kept in all three); 141 the reader of the output is gone.

Nothing is read from the working directory unless you name it: a `mindstream.toml` there needs `--settings
mindstream.toml` (or `MINDSTREAM_SETTINGS`); a pack or an embedder's folder needs a path (`./mine`, `st:./folder`; a
name alone is always a shipped one). `python -m mindstream.cli` imports modules from the working directory first; in
folders of others use the command `mindstream`.

With `--json` a command writes one JSON object a line to standard output, and nothing else there. Notes, progress and
questions go to standard error. `at` of events is in seconds since 1970 UTC; `chat --json` adds `after_s`, the seconds
since the command began. Untrusted text is shown without terminal control characters, direction marks and zero-width
letters; in JSON these are escaped.
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
