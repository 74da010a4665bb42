"""A text in parts: its sentences; windows that overlap; of what is very long, both ends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
MOST = 2_000
"""Of a text longer than this, in characters, rules read the beginning and the end."""
SENTENCE = re.compile(r"[^.!?;。！？；\n]+[.!?;。！？；]*")


def sentences(text: str) -> list[str]:
    """Return a text's sentences, in Latin or Chinese marks, without the space around them."""
    return [found[0].strip() for found in SENTENCE.finditer(text)]


def both_ends(text: str) -> str:
    """Return a text, or, where it is very long, its beginning and its end on two lines."""
    return text if len(text) <= MOST else f"{text[: MOST // 2]}\n{text[-MOST // 2 :]}"


def first_and_last(items: Sequence[T], most: int) -> Sequence[T]:
    """Return items, or, where they are more than `most`, as many of the first and of the last."""
    return items if len(items) <= most else [*items[: most // 2], *items[-(most // 2) :]]


def windows(text: str, size: int) -> Iterator[str]:
    """Give a text, or, where it is longer than `size` characters, windows of that size, each half a window further."""
    yield text[:size]
    step = size // 2
    for at in range(step, len(text) - step, step):
        yield text[at : at + size]
