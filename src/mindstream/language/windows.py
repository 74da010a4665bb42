"""A text in parts: its sentences; windows that overlap, for what takes the square of a length."""

from __future__ import annotations

import re
from collections.abc import Iterator

SENTENCE = re.compile(r"[^.!?;。！？；\n]+[.!?;。！？；]*")


def sentences(text: str) -> list[str]:
    """Return a text's sentences, in Latin or Chinese marks, without the space around them."""
    return [found[0].strip() for found in SENTENCE.finditer(text)]


def windows(text: str, size: int) -> Iterator[str]:
    """Give a text, or, where it is longer than `size` characters, windows of that size, each half a window further."""
    yield text[:size]
    step = size // 2
    for at in range(step, len(text) - step, step):
        yield text[at : at + size]
