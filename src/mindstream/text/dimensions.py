"""What adjectives measure: "higher" asks for a height, and the one with more of it."""

from __future__ import annotations

from typing import NamedTuple


class Dimension(NamedTuple):
    """The noun that an adjective is about, and whether the adjective means much of it."""

    noun: str
    much: bool


DIMENSIONS = {
    "high": Dimension("height", True), "tall": Dimension("height", True), "low": Dimension("height", False),
    "long": Dimension("length", True), "short": Dimension("length", False), "deep": Dimension("depth", True),
    "shallow": Dimension("depth", False), "wide": Dimension("width", True), "narrow": Dimension("width", False),
    "large": Dimension("area", True), "big": Dimension("area", True), "small": Dimension("area", False),
    "heavy": Dimension("weight", True), "light": Dimension("weight", False), "fast": Dimension("speed", True),
    "slow": Dimension("speed", False), "old": Dimension("when begun", False), "young": Dimension("when begun", True),
    "new": Dimension("when begun", True), "early": Dimension("when begun", False), 
    "late": Dimension("when begun", True),
    "expensive": Dimension("price", True), "dear": Dimension("price", True), "cheap": Dimension("price", False),
    "populous": Dimension("population", True),
}  # fmt: skip
"""The older of two is the one that began earlier."""


VERBS = {"weight": "weighs|weighed", "price": "costs?", "length": "measures"}
"""Verbs that state how much there is of something."""


def dimension_of(adjective: str) -> Dimension | None:
    """Return what an adjective is about, whatever its degree: "higher", "biggest", "more populous"."""
    for ending in ("", "er", "est", "r", "st", "ier", "iest"):
        base = adjective.removesuffix(ending)
        for form in (base, base + "y" * ending.startswith("i"), base[:-1] if base[-1:] == base[-2:-1] else base):
            if adjective.endswith(ending) and form in DIMENSIONS:
                return DIMENSIONS[form]
    return None


def adjectives_of(noun: str) -> tuple[str, ...]:
    """Return the adjectives that state how much there is of something: "high" and "tall" for height."""
    return tuple(word for word, dimension in DIMENSIONS.items() if dimension == (noun, True))
