"""Context that fits: the one way in which any mind builds what it sends to a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from mindstream.text.words import UNSPACED

T = TypeVar("T")
WIDE = re.compile(f"[{UNSPACED}]")


def estimated_tokens(text: str) -> int:
    """Estimate a text's tokens without a tokenizer: 4 characters of Latin script, or 1 of Chinese, are about one."""
    wide = len(WIDE.findall(text))
    return wide + (len(text) - wide + 3) // 4


@dataclass(frozen=True, slots=True)
class Part:
    """Something to send, made of items (counted as they are written) that can be left out one by one.

    Attributes:
        share: how much of the budget it may take, relative to the other parts; what one part leaves, others may use.
        keep: which items stay when not all fit: the first, or the last (a history).
    """

    name: str
    items: Sequence[object]
    share: float
    keep: Literal["first", "last"] = "first"


@dataclass(frozen=True, slots=True)
class Fitted:
    """What fits: by part, the places of the items that stay, and how many were cut."""

    places: dict[str, list[int]]
    cut: dict[str, int]
    tokens: int

    def kept(self, part: str, items: Sequence[T]) -> tuple[T, ...]:
        """Return those of a part's items that stay, in their order."""
        return tuple(items[place] for place in self.places[part])


def fit(parts: Sequence[Part], budget: int, tokens: Callable[[str], int] = estimated_tokens) -> Fitted:
    """Choose the items that fit into `budget` tokens; each part gets its share, then what others left over."""
    sizes = {part.name: [tokens(str(item)) for item in part.items] for part in parts}
    shares = sum(part.share for part in parts) or 1.0
    allowed = {part.name: budget * part.share / shares for part in parts}
    spare = sum(max(0.0, allowed[name] - sum(size)) for name, size in sizes.items())
    places: dict[str, list[int]] = {}
    for part in parts:
        size, room = sizes[part.name], allowed[part.name]
        extra = min(spare, max(0.0, sum(size) - room))
        spare -= extra
        places[part.name] = sorted(_kept(size, room + extra, part.keep))
    cut = {part.name: len(part.items) - len(places[part.name]) for part in parts}
    return Fitted(places, cut, sum(sizes[name][place] for name, kept in places.items() for place in kept))


def _kept(sizes: Sequence[int], room: float, keep: Literal["first", "last"]) -> set[int]:
    kept: set[int] = set()
    order = range(len(sizes)) if keep == "first" else range(len(sizes) - 1, -1, -1)
    for n in order:
        room -= sizes[n]
        if room < 0:
            break
        kept.add(n)
    return kept
