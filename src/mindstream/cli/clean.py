"""Text that others wrote, made safe to print: it must not move the cursor, turn the line around, or hide words.

What scripts need stays: letters of every direction, joiners between letters of the scripts that have them, emoji. The
order of letters is the terminal's own affair; marks that change it from inside a text are cut out.
"""

from __future__ import annotations

import re
import sys
from typing import TextIO

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


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
