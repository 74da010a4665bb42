"""Texts by their sentences."""

from __future__ import annotations

import re

_END = re.compile(r"(?<=[.!?。！？])\s+|\n")
LONGEST = 6_000


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, of which at most LONGEST characters are read."""
    return [each for part in _END.split(text[:LONGEST]) if (each := part.strip())]
