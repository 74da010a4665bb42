"""How the Talker says, as it begins, who answers: it alone, it with the Reasoner behind it, or the Reasoner first.

One call decides it and answers, by a mark at the beginning of the reply, which nobody is shown.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Literal

from mindstream.models.model import Part, Piece

Way = Literal["alone", "think", "wait"]
"""Nothing to think about; the Reasoner thinks behind the answer; the answer needs what it is to think of."""

NAMES = ("wait", "alone", "think")
CLOSING = "*_`\"':.。"
EDGE = r"[\s*_`\"'#>~]{0,12}"
MARK = re.compile(rf"{EDGE}[\[［【<]\s*({'|'.join(NAMES)})\s*[\]］】>][*_`\"':.。]*", re.IGNORECASE)
OPEN = re.compile(rf"{EDGE}(?:[\[［【<]\s*([a-z]*)\s*)?$", re.IGNORECASE)
"""What may become a mark with the next piece."""
BARE = re.compile(rf"{EDGE}([A-Z]{{1,5}}){EDGE}\.?$")
"""A mark whose brackets were forgotten, if it is all there is."""


class Handover:
    """Reads a reply as it comes: takes the marks out of it, and what they decide.

    Args:
        may_wait: a mark to wait counts; else it is only taken out.

    Attributes:
        way: what the Talker has decided; "wait" also where it ended in that mark after some words.
        ended: nothing of the reply after this is for anybody.
    """

    def __init__(self, *, may_wait: bool = True) -> None:
        self.may_wait = may_wait
        self.way: Way = "think"
        self.ended = False
        self._held = ""
        self._began = self._asks = self._marked = False

    def read(self, piece: str) -> str:
        """Take in a piece; return what of it can be shown now."""
        text, shown = self._held + piece, ""
        while not self.ended and (mark := MARK.search(text)):
            before, text = text[: mark.start()], text[mark.end() :]
            shown += self._show(before)
            self._marked = True
            self._decide(mark[1].lower())
        if self.ended:
            self._held = ""
            return shown
        held = (None if self._began else BARE.match(text)) or OPEN.search(text)
        at = held.start() if held and _begins_mark(held[1]) else len(text)
        self._held = text[at:]
        return shown + self._show(text[:at])

    def finish(self) -> str:
        """Return what was held back, now that nothing follows."""
        rest, self._held = self._held, ""
        if not self._began and (bare := BARE.match(rest)) and bare[1].lower() in NAMES:
            self._decide(bare[1].lower())
            rest = ""
        if self._asks:
            self.way = "wait"
        return self._show(rest) if rest.strip() and not self.ended else ""

    def _show(self, text: str) -> str:
        if self._marked:
            text = text.lstrip(CLOSING)
            self._marked = not text
        text = text if self._began else text.lstrip()
        if text.strip():
            self._began, self._asks = True, False
        return text

    def _decide(self, name: str) -> None:
        if name == "wait" and not self.may_wait:
            return
        self._asks = name == "wait"
        if not self._began:
            self.way = name  # type: ignore[assignment]
            self.ended = self._asks


def _begins_mark(letters: str | None) -> bool:
    return any(name.startswith((letters or "").lower()) for name in NAMES)


async def without_marks(parts: AsyncGenerator[Part], handover: Handover) -> AsyncGenerator[str]:
    """Yield the words of a reply; `handover` knows, with the first of them, how the Talker has decided."""
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, Piece) and (words := handover.read(part.text)):
                yield words
            if handover.ended:
                return
    if rest := handover.finish():
        yield rest
