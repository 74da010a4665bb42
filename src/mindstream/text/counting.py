"""How many there are of something, said as people say it."""

from __future__ import annotations


def count_of(n: int, noun: str) -> str:
    """Return a number with its noun: 1 step, 2 steps, 1,200 steps; `noun` in the singular, its plural with an s."""
    return f"{n:,} {noun}{'s' * (n != 1)}"
