"""What a model thinks before it answers, told from the answer while both are still coming."""

from __future__ import annotations

BEGIN, END = "<think>", "</think>"


class Thinking:
    """Parts a reply's text, piece by piece, into the thoughts that it begins with and the answer."""

    def __init__(self) -> None:
        self._open: bool | None = None
        """Thoughts are open; None: it cannot be told yet whether some begin."""
        self._held = ""

    def part(self, piece: str) -> tuple[str, str]:
        """Return what of a piece, and of what was held back, is thought and what is answer."""
        if self._open is False and not self._held:
            return "", piece
        text, self._held = self._held + piece, ""
        thought = ""
        if self._open:
            inner, closed, rest = text.partition(END)
            if not closed:
                keep = _begun(text, END)
                self._held = text[len(text) - keep :]
                return text[: len(text) - keep], ""
            thought, text, self._open = inner, rest, None
        start = text.lstrip()
        if start.startswith(BEGIN):
            self._open = True
            more, answer = self.part(start[len(BEGIN) :])
            return thought + more, answer
        if BEGIN.startswith(start):  # nothing yet, or the mark's beginning
            self._open, self._held = None, text
            return thought, ""
        self._open = False
        return thought, text

    def rest(self) -> str:
        """Return what was held back as it could have been a mark, and is answer, as nothing follows."""
        held, self._held = self._held, ""
        return "" if self._open else held


def _begun(text: str, mark: str) -> int:
    """Return how many characters at a text's end may be the beginning of a mark."""
    return next((n for n in range(min(len(mark) - 1, len(text)), 0, -1) if text.endswith(mark[:n])), 0)
