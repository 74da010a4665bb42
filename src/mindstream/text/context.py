"""Context that fits: the one way in which any mind builds what it sends to a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from mindstream.models.shorten import estimate_tokens

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part:
    """Something to send, made of items (counted as they are written) that can be left out one by one.

    Attributes:
        keep: which items stay when not all fit: the first, or the last (a history).
    """

    name: str
    items: Sequence[object]
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


def fit(parts: Sequence[Part], budget: int, tokens: Callable[[str], int] = estimate_tokens) -> Fitted:
    """Choose the items that fit into `budget` tokens: parts in the order in which they are needed, each as it fits."""
    room = budget
    places: dict[str, list[int]] = {}
    for part in parts:
        kept: list[int] = []
        order = range(len(part.items)) if part.keep == "first" else range(len(part.items) - 1, -1, -1)
        for n in order:
            size = tokens(str(part.items[n]))
            if size > room:
                break
            room -= size
            kept.append(n)
        places[part.name] = sorted(kept)
    cut = {part.name: len(part.items) - len(places[part.name]) for part in parts}
    return Fitted(places, cut, budget - room)
