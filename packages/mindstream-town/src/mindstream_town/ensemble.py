"""Runs of a town with many seeds, and statistics of their measures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from mindstream.errors import InputError
from mindstream.significance import holm, mcnemar, student

FULL = "full"
"""Name of the condition in which no part of the residents is switched off."""
MOST = 1_000_000
"""Maximum number of seeds in one range."""


@dataclass(frozen=True)
class Run:
    """A run: a seed, and the parts of the residents that are switched off."""

    seed: int
    without: tuple[str, ...] = ()

    @property
    def condition(self) -> str:
        """The name of the condition, used in tables and as the name of a folder."""
        return f"without {','.join(self.without)}" if self.without else FULL


@dataclass(frozen=True)
class Lived:
    """The result of a run. `step`: the last step; `digest`: a hash of the journal; `seconds`: duration of the run."""

    condition: str
    seed: int
    step: int
    digest: str
    measures: dict[str, float]
    seconds: float


@dataclass(frozen=True)
class Failed:
    """A run that ended with an error; the same command repeats the run."""

    condition: str
    seed: int
    why: str


def runs_of(seeds: Sequence[int], conditions: Sequence[tuple[str, ...]]) -> list[Run]:
    """Return all runs, seed by seed, so that seeds which are finished can be compared while others still run."""
    return [Run(seed, without) for seed in seeds for without in dict.fromkeys([(), *conditions])]


def read_seeds(text: str) -> list[int]:
    """Parse seeds as typed: `1..100`, `3,5,8..12`.

    Raises:
        InputError: the text is not a list of numbers and ranges, or a range goes downward or has more than MOST seeds.
    """
    found: dict[int, None] = {}
    for part in text.split(","):
        first, dots, last = part.strip().partition("..")
        if not all(each.strip().isascii() and each.strip().isdigit() for each in ([first, last] if dots else [first])):
            raise InputError(f"--seeds: expected numbers and ranges, such as 1..100 or 3,5,8..12, found {text!r:.99}")
        low, high = int(first[:19]), int((last if dots else first)[:19])
        if not low <= high < low + MOST:
            raise InputError(f"--seeds: {part.strip()!r:.99} must go upward and name at most {MOST:,} seeds")
        found |= dict.fromkeys(range(low, high + 1))
    return list(found)


@dataclass(frozen=True)
class Spread:
    """Statistics of one measure in one condition, over the seeds.

    Attributes:
        spread: standard deviation; None for one seed.
        low, high: 95 % interval of the mean (Student); None for one seed.
    """

    condition: str
    measure: str
    seeds: int
    mean: float
    spread: float | None
    low: float | None
    high: float | None
    least: float
    most: float


@dataclass(frozen=True)
class Difference:
    """The difference between a condition and FULL (no part switched off) in one measure, paired by seed.

    Attributes:
        mean: mean of (condition - FULL), with its 95 % interval.
        more, fewer: number of seeds in which the condition has a higher value than FULL, or a lower one.
        p: p-value of the two-sided sign test. adjusted: p after Holm's correction over all comparisons.
    """

    condition: str
    measure: str
    seeds: int
    mean: float
    low: float | None
    high: float | None
    more: int
    fewer: int
    p: float
    adjusted: float


def spreads(lived: Sequence[Lived]) -> list[Spread]:
    """Return the statistics of each measure in each condition."""
    found = []
    for condition, of_seed in _by_condition(lived).items():
        for name in _measures(lived):
            if values := [each.measures[name] for each in of_seed.values() if name in each.measures]:
                spread = stdev(values) if len(values) > 1 else None
                found.append(
                    Spread(
                        condition,
                        name,
                        len(values),
                        fmean(values),
                        spread,
                        *_interval(values),
                        min(values),
                        max(values),
                    )
                )
    return found


def differences(lived: Sequence[Lived]) -> list[Difference]:
    """Return how each condition differs from the condition FULL.

    A difference is a measure of the condition minus the same measure of FULL. Only seeds that both conditions have are
    compared.
    """
    by_condition = _by_condition(lived)
    whole, found = by_condition.get(FULL, {}), []
    for condition, of_seed in by_condition.items():
        for name in _measures(lived) if condition != FULL else ():
            pairs = [(of_seed[seed].measures, whole[seed].measures) for seed in of_seed if seed in whole]
            if by_seed := [one[name] - other[name] for one, other in pairs if name in one and name in other]:
                more, fewer = sum(each > 0 for each in by_seed), sum(each < 0 for each in by_seed)
                found.append((condition, name, by_seed, more, fewer, mcnemar(more, fewer)))
    adjusted_ps = holm([p for *_, p in found])
    return [
        Difference(condition, name, len(values), fmean(values), *_interval(values), more, fewer, p, adjusted)
        for (condition, name, values, more, fewer, p), adjusted in zip(found, adjusted_ps, strict=True)
    ]


def _by_condition(lived: Sequence[Lived]) -> Mapping[str, Mapping[int, Lived]]:
    found: dict[str, dict[int, Lived]] = {}
    for each in lived:
        found.setdefault(each.condition, {})[each.seed] = each
    return found


def _measures(lived: Sequence[Lived]) -> list[str]:
    return list(dict.fromkeys(name for each in lived for name in each.measures))


def _interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    low, high = student(values)
    return (low, high) if math.isfinite(low) else (None, None)
