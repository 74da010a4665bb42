"""Text that others wrote, made safe and wrapped for a terminal as it comes."""

from __future__ import annotations

import re
from collections.abc import Callable

from rich.cells import cell_len

from mindstream.cli.clean import JOINERS, UNFINISHED, clean

_LONGEST = 4096
_PART = re.compile(r"\n|[^\S\n]|[^\s\u1100-\uffdc]+|[\u1100-\uffdc]")


class Flow:
    """Writes pieces of a text as they come, broken between words; `width` 0: not broken.

    A control sequence that comes in two pieces is cut out too, and a joiner that begins a piece joins.
    """

    def __init__(self, write: Callable[[str], None], width: int, column: int) -> None:
        self._write, self._width, self._column = write, width, column
        self._word = self._held = self._before = ""
        self._wide = 0

    def add(self, piece: str) -> None:
        """Write a piece; its last word waits until it is whole."""
        text = self._held + piece
        cut = UNFINISHED.search(text)
        self._held = text[cut.start() :] if cut and len(text) - cut.start() < _LONGEST else ""
        self._take(text[: len(text) - len(self._held)])

    def end(self) -> None:
        """Write what is left, and end the line."""
        held, self._held = self._held, ""
        self._take(held)
        self._flush()
        self._write("\n")
        self._column, self._before = 0, ""

    def _take(self, text: str) -> None:
        whole = clean(self._before + text)
        seen = whole[len(self._before) :]
        self._before = whole[-2:] if whole[-1:] in JOINERS else whole[-1:]  # what a joiner stands after counts, too
        if not self._width:
            self._write(seen)
            return
        for part in _PART.findall(seen):
            wide = cell_len(part)
            if part.isspace():
                self._break(part)
            elif wide > 1 and len(part) == 1:  # Chinese and the like may break anywhere
                self._flush()
                self._word, self._wide = part, wide
                self._flush()
            else:
                self._word += part
                self._wide += wide
                if self._wide >= self._width:
                    self._flush()

    def _break(self, space: str) -> None:
        self._flush()
        if space == "\n":
            self._column = 0
            self._write("\n")
        elif 0 < self._column < self._width:
            self._column += 1
            self._write(" ")

    def _flush(self) -> None:
        if self._width and self._column and self._column + self._wide > self._width:
            self._write("\n")
            self._column = 0
        self._write(self._word)
        self._column += self._wide
        self._word, self._wide = "", 0
