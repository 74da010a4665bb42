"""The talker's decision at the beginning of its reply: answer alone, answer and let the reasoner
run in the background, or wait for the reasoner.

The decision is a mark such as `[WAIT]`, so that one model call both decides and answers. Users never see the mark.
"""

from __future__ import annotations

import re
from typing import Literal

from mindstream.models.reply import HALF, legible

Way = Literal["alone", "think", "wait"]
"""`alone`: the reasoner is not needed; `think`: it runs after the answer; `wait`: the answer waits for it."""

NAMES = ("wait", "alone", "think")
CLOSING = "*_`\"':.。"
EDGE = r"[\s*_`\"'#>~]{0,12}"
MARK = re.compile(rf"{EDGE}[\[［【<]\s*({'|'.join(NAMES)})\s*[\]］】>][*_`\"':.。]*", re.IGNORECASE)
OPEN = re.compile(rf"{EDGE}(?:[\[［【<]\s*([a-z]*)\s*)?$", re.IGNORECASE)
"""An end of a text that may be the beginning of a mark which the next piece completes."""
BARE = re.compile(rf"{EDGE}([A-Z]{{1,5}}){EDGE}\.?$")
"""A mark without its brackets; only accepted if it is the whole reply."""


class Handover:
    """Read a reply piece by piece, and remove the marks.

    Args:
        may_wait: whether a mark for waiting is obeyed; otherwise it is only removed.

    Attributes:
        way: the talker's decision; also "wait" if the reply ends with that mark after some words.
        ended: whether the rest of the reply is discarded.
    """

    def __init__(self, *, may_wait: bool = True) -> None:
        self.may_wait = may_wait
        self.way: Way = "think"
        self.ended = False
        self._half = self._held = ""
        self._began = self._asks = self._marked = False

    def read(self, piece: str) -> str:
        """Read a piece and return the text that can be shown now."""
        piece = self._half + piece
        self._half = piece[-1] if HALF.search(piece) else ""  # half a character waits for the other half
        text, shown = self._held + legible(piece.removesuffix(self._half)), ""
        while not self.ended and (mark := MARK.search(text)):
            before, text = text[: mark.start()], text[mark.end() :]
            shown += self._show(before)
            self._marked = True
            self._decide(mark[1].lower())
        if self.ended:
            self._held = ""
            return shown
        held = (None if self._began else BARE.match(text)) or OPEN.search(text)
        at = held.start() if held and any(name.startswith((held[1] or "").lower()) for name in NAMES) else len(text)
        self._held = text[at:]
        return shown + self._show(text[:at])

    def finish(self) -> str:
        """Return the text that was held back, at the end of the reply."""
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
