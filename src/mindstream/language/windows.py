"""Reading a long text in windows that overlap: what takes the square of a length is never given all of it."""

from __future__ import annotations

from collections.abc import Iterator


def windows(text: str, size: int) -> Iterator[str]:
    """Give a text, or, where it is longer than `size` characters, windows of that size, each half a window further."""
    yield text[:size]
    step = size // 2
    for at in range(step, len(text) - step, step):
        yield text[at : at + size]
