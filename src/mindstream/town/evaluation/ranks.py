"""Do groups differ, and which: Kruskal and Wallis 1952 over all, Dunn 1964 by pairs, mended for their number by Holm.

What scipy has of it is forty lines; the rest of scipy would be 100 MB for everybody.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from mindstream.significance import holm


@dataclass(frozen=True)
class KruskalWallis:
    """The test over all groups.

    Attributes:
        h: the statistic, ties taken into account; 0 where all is equal.
        df: degrees of freedom. p: how probable such an h is among groups that do not differ. n: how many values.
    """

    h: float
    df: int
    p: float
    n: int


@dataclass(frozen=True)
class Dunn:
    """The test of two groups; `adjusted`: p after Holm's correction. z is positive where the first ranks higher."""

    first: str
    second: str
    z: float
    p: float
    adjusted: float


def kruskal_wallis(groups: Mapping[str, Sequence[float]]) -> KruskalWallis | None:
    """Test whether the groups differ; None where fewer than two have values."""
    filled = {name: values for name, values in groups.items() if len(values)}
    if len(filled) < 2:
        return None
    ranks, ties = _ranked(filled)
    n = sum(map(len, filled.values()))
    summed = sum(each.sum() ** 2 / len(each) for each in ranks.values())
    mend = 1 - ties / (n**3 - n)
    h = (12 / (n * (n + 1)) * summed - 3 * (n + 1)) / mend if mend > 0 else 0.0
    df = len(filled) - 1
    return KruskalWallis(float(h), df, chi2_above(float(h), df), n)


def dunn(groups: Mapping[str, Sequence[float]]) -> tuple[Dunn, ...]:
    """Test all pairs of groups that have values."""
    filled = {name: values for name, values in groups.items() if len(values)}
    if len(filled) < 2:
        return ()
    ranks, ties = _ranked(filled)
    n = sum(map(len, filled.values()))
    spread = n * (n + 1) / 12 - ties / (12 * (n - 1))
    found = []
    for first, second in itertools.combinations(filled, 2):
        error = math.sqrt(spread * (1 / len(ranks[first]) + 1 / len(ranks[second]))) if spread > 0 else math.inf
        z = float(ranks[first].mean() - ranks[second].mean()) / error
        found.append((first, second, z, 2 * NormalDist().cdf(-abs(z))))
    adjusted = holm([p for *_, p in found])
    return tuple(Dunn(*each, q) for each, q in zip(found, adjusted, strict=True))


def chi2_above(x: float, df: int) -> float:
    """Return how probable a value above x is under chi squared with whole degrees of freedom, by its finite sum."""
    if x <= 0:
        return 1.0
    half = x / 2
    odd = df % 2
    total = math.erfc(math.sqrt(half)) if odd else 0.0
    term = math.sqrt(half / math.pi) * 2 if odd else 1.0
    for k in range(df // 2):
        total += math.exp(-half) * term
        term *= half / (k + (1.5 if odd else 1))
    return min(1.0, total)


def _ranked(groups: Mapping[str, Sequence[float]]) -> tuple[dict[str, np.ndarray], float]:
    """Return the ranks of each group's values among all, equals sharing theirs; and the sum of t³-t over ties."""
    values = np.concatenate([np.asarray(each, float) for each in groups.values()])
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[places]
    cuts = np.cumsum([len(each) for each in groups.values()])[:-1]
    return dict(zip(groups, np.split(ranks, cuts), strict=True)), float((counts.astype(float) ** 3 - counts).sum())
