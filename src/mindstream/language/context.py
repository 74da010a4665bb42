"""Context that fits: the one way in which any mind builds what it sends to a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from mindstream.language.words import UNSPACED

WIDE = re.compile(f"[{UNSPACED}]")


def estimated_tokens(text: str) -> int:
    """Estimate a text's tokens without a tokenizer: 4 characters of Latin script, or 1 of Chinese, are about one."""
    wide = len(WIDE.findall(text))
    return wide + (len(text) - wide + 3) // 4


@dataclass(frozen=True, slots=True)
class Part:
    """Something to send, made of items that can be left out one by one.

    Attributes:
        share: how much of the budget it may take, relative to the other parts; what one part leaves, others may use.
        keep: which items stay when not all fit: the first, or the last (a history).
    """

    name: str
    items: Sequence[str]
    share: float
    keep: Literal["first", "last"] = "first"


@dataclass(frozen=True, slots=True)
class Fitted:
    """What fits, by part, and how many items of each part were cut."""

    items: dict[str, list[str]]
    cut: dict[str, int]
    tokens: int


def fit(parts: Sequence[Part], budget: int, tokens: Callable[[str], int] = estimated_tokens) -> Fitted:
    """Choose the items that fit into `budget` tokens; each part gets its share, then what others left over."""
    sizes = {part.name: [tokens(item) for item in part.items] for part in parts}
    shares = sum(part.share for part in parts) or 1.0
    allowed = {part.name: budget * part.share / shares for part in parts}
    spare = sum(max(0.0, allowed[name] - sum(size)) for name, size in sizes.items())
    items: dict[str, list[str]] = {}
    cut: dict[str, int] = {}
    used = 0
    for part in parts:
        size = sizes[part.name]
        room = allowed[part.name]
        if sum(size) > room:
            extra = min(spare, sum(size) - room)
            room, spare = room + extra, spare - extra
        kept = _kept(size, room, part.keep)
        items[part.name] = [item for n, item in enumerate(part.items) if n in kept]
        cut[part.name] = len(part.items) - len(kept)
        used += sum(size[n] for n in kept)
    return Fitted(items, cut, used)


def _kept(sizes: Sequence[int], room: float, keep: Literal["first", "last"]) -> set[int]:
    kept: set[int] = set()
    order = range(len(sizes)) if keep == "first" else range(len(sizes) - 1, -1, -1)
    for n in order:
        room -= sizes[n]
        if room < 0:
            break
        kept.add(n)
    return kept
