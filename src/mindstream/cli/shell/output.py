"""What commands print: text that others wrote, made safe; rows for programs; tables.

Safe text must not move the cursor, turn the line around, or hide words. What scripts need stays: letters of every
direction, joiners between letters of the scripts that have them, emoji. The order of letters is the terminal's own
affair; marks that change it from inside a text are cut out.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from mindstream.settings import Settings

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, the cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC and its like: titles, links, the clipboard
    r"|\x1b[\]PX^_]"  # one without an end: what follows is words, and is shown
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*|[ -/]*)$|\x9b[0-?]*$")
"""A sequence that may end in the next piece of a text."""
JOINERS = "\u200c\u200d"
_INVISIBLE = (
    "\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
"""C1, soft hyphens, marks of direction, spaces and fillers without width, tags: nothing that anybody can read."""
_JOINED = "\u0590-\u115e\u1161-\u1fff\u2070-\ud7ff\ue000-\ufdff\ufe00-\ufe0f\ufe70-\ufefe\U00010000-\U0001ffff"
"""After these (Hebrew and all later scripts, emoji and their variants) a joiner, zero wide, changes what is read."""
_VARIANTS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""They choose between forms of the letter before them; one is enough."""
_UNREADABLE = re.compile(
    rf"[\x00-\x08\x0b-\x1f{_INVISIBLE}\ud800-\udfff]"
    rf"|(?<![{_JOINED}])[{JOINERS}]+"
    rf"|(?<=[{_VARIANTS}])[{_VARIANTS}]+"
)
_ESCAPED = re.compile(rf"[{_INVISIBLE}\ud800-\udfff]")
LONGEST = 2000
"""So many characters of a line are said of what went wrong."""


def clean(text: str) -> str:
    """Return a text without terminal control and without what is not to be seen."""
    if text.isascii() and text.isprintable():
        return text
    return _UNREADABLE.sub("", _SEQUENCE.sub("", text))


def short(text: str, width: int = 160) -> str:
    """Return a text on one line, cut."""
    line = " ".join(clean(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def escape_json(json: str) -> str:
    """Return a line of JSON in which such characters are written as escapes: the same JSON, safe to print."""
    return json if json.isascii() and "\x7f" not in json else _ESCAPED.sub(_escape, json)


def say(text: str, file: TextIO | None = None) -> None:
    """Print a text, made safe, at once."""
    print(clean(text), file=file, flush=True)


def complain(text: str) -> None:
    """Say on standard error what is wrong, or worth knowing."""
    lines = (line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in text.splitlines())
    say("mindstream: " + "\n".join(lines), sys.stderr)


def warn_if_unpriced(settings: Settings, usd: float | None = None) -> None:
    """Say that a limit in US dollars (the settings', or `usd`) cannot be kept, where a model has no known price."""
    from mindstream.service.opening import unpriced

    if (settings.budget_usd is not None or usd is not None) and (why := unpriced(settings)):
        complain(why)


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def print_json(*rows: Mapping[str, Any]) -> None:
    """Write lines and hand each on at once; in ASCII where the output cannot hold all characters."""
    unicode = sys.stdout.encoding.lower().startswith("utf")
    for row in rows:
        sys.stdout.write(escape_json(json.dumps(row, ensure_ascii=not unicode)) + "\n")
        sys.stdout.flush()


def tell(as_json: bool, row: Mapping[str, Any], *lines: str) -> None:
    """Write a row for a program, or lines for people."""
    if as_json:
        print_json(row)
    else:
        say_lines(lines)


def say_lines(lines: Iterable[str]) -> None:
    """Print lines, made safe; none of them where there are none."""
    for line in lines:
        say(line)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> None:
    """Print it as wide as it needs to be; the first columns hold `words`, the others numbers.

    A row of one cell is a title.
    """
    from rich.cells import cell_len

    lines = [[clean(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(cell_len(line[at]) for line in lines if len(line) > 1) for at in range(len(columns))]
    for line in lines:
        cells = [
            cell + pad if at < words else pad + cell
            for at, cell in enumerate(line)
            for pad in [" " * (widths[at] - cell_len(cell))]
        ]
        print("  ".join(cells).rstrip())


def no_more_output() -> None:
    """Let Python's own flush at the end go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
