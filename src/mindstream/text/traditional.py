"""Traditional Chinese characters read as simplified ones, one for one, so that words are written down once.

The table holds 1,400 common ones: a line of traditional characters, and under it what each is in simplified script.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path


def simplify(text: str) -> str:
    """Return a text with simplified characters for traditional ones; each character keeps its place."""
    return text if text.isascii() else text.translate(_table())


@lru_cache(1)
def _table() -> dict[int, int]:
    lines = Path(__file__).with_name("traditional.txt").read_text("utf-8").splitlines()
    return str.maketrans("".join(lines[::2]), "".join(lines[1::2]))
