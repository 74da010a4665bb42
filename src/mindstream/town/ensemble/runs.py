"""The runs of an ensemble: each seed under each condition, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mindstream.errors import InputError

FULL = "full"
"""The condition in which nothing is left out."""
MOST = 1_000_000
"""So many seeds can be asked for."""


@dataclass(frozen=True)
class Run:
    """A run: a seed, and what is left out of residents; nothing: the whole town."""

    seed: int
    without: tuple[str, ...] = ()

    @property
    def condition(self) -> str:
        """What it is called in tables, and its folder."""
        return f"without {','.join(self.without)}" if self.without else FULL


@dataclass(frozen=True)
class Lived:
    """What came of a run: its last step, its journal's digest, its measures, the seconds it took."""

    condition: str
    seed: int
    step: int
    digest: str
    measures: dict[str, float]
    seconds: float


@dataclass(frozen=True)
class Failed:
    """A run that ended with an error; the same command tries it again."""

    condition: str
    seed: int
    why: str


def runs_of(seeds: Sequence[int], conditions: Sequence[tuple[str, ...]]) -> list[Run]:
    """Return the runs, seed by seed, so that what was compared by then can be compared wherever it ends."""
    return [Run(seed, without) for seed in seeds for without in dict.fromkeys([(), *conditions])]


def read_seeds(text: str) -> list[int]:
    """Read seeds as they are typed: `1..100`, `3,5,8..12`.

    Raises:
        InputError: it is none of these.
    """
    found: dict[int, None] = {}
    for part in text.split(","):
        first, dots, last = part.strip().partition("..")
        if not all(each.strip().isascii() and each.strip().isdigit() for each in ([first, last] if dots else [first])):
            raise InputError(f"seeds are numbers, as 1..100 or 3,5,8..12, and not {text!r:.99}")
        low, high = int(first[:19]), int((last if dots else first)[:19])
        if not low <= high < low + MOST:
            raise InputError(f"seeds go up, and are {MOST:,} at most: {part.strip()!r:.99} does not")
        found |= dict.fromkeys(range(low, high + 1))
    return list(found)
