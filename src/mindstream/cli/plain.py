"""Text that others wrote, made safe and wrapped for a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable

from rich.cells import cell_len

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, the cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC and its like: titles, links, the clipboard
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*|[ -/]*)$|\x9b[0-?]*$")
_LONGEST = 4096


def clean(text: str) -> str:
    """Return a text without terminal control: what a model or a user wrote must not move the cursor."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text))


def short(text: str, width: int = 160) -> str:
    """Return a text on one line, cut."""
    line = " ".join(clean(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


class Flow:
    """Writes pieces of a text as they come, broken between words; `width` 0: not broken.

    A control sequence that comes in two pieces is cut out too.
    """

    def __init__(self, write: Callable[[str], None], width: int, column: int) -> None:
        self._write, self._width, self._column = write, width, column
        self._word = self._held = ""

    def add(self, piece: str) -> None:
        """Write a piece; its last word waits until it is whole."""
        text = self._held + piece
        cut = _UNFINISHED.search(text)
        self._held = text[cut.start() :] if cut and len(text) - cut.start() < _LONGEST else ""
        text = clean(text[: len(text) - len(self._held)])
        if not self._width:
            self._write(text)
            return
        for part in re.findall(r"\n|[^\S\n]|[^\s\u1100-\uffdc]+|[\u1100-\uffdc]", text):
            if part.isspace():
                self._break(part)
            elif cell_len(part) > 1 and len(part) == 1:  # Chinese and the like may break anywhere
                self._flush()
                self._word = part
                self._flush()
            else:
                self._word += part
                if cell_len(self._word) >= self._width:
                    self._flush()

    def end(self) -> None:
        """Write what is left, and end the line."""
        self._flush()
        self._write("\n")
        self._column, self._held = 0, ""

    def _break(self, space: str) -> None:
        self._flush()
        if space == "\n":
            self._column = 0
            self._write("\n")
        elif 0 < self._column < self._width:
            self._column += 1
            self._write(" ")

    def _flush(self) -> None:
        wide = cell_len(self._word)
        if self._width and self._column and self._column + wide > self._width:
            self._write("\n")
            self._column = 0
        self._write(self._word)
        self._column += wide
        self._word = ""
