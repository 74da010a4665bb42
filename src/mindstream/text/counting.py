"""How many there are of something, said as people say it."""

from __future__ import annotations

import re

from mindstream.text.words import UNSPACED

WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}][^\s{UNSPACED}]*")


def count_of(n: int, noun: str) -> str:
    """Return a number with its noun: 1 step, 2 steps, 1,200 steps; `noun` gets an s before `of` or at its end."""
    head, of, rest = noun.partition(" of ")
    return f"{n:,} {head}{'s' * (n != 1)}{of}{rest}"


def count_words(text: str) -> int:
    """Return how many words a text has; where words are not spaced, each character counts as one."""
    return sum(1 for _ in WORD.finditer(text))
