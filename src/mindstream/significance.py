"""Significance tests: Wilson 1927 (proportions), Student 1908 (means), McNemar 1947 (pairs), Holm 1979 (several
tests)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

Z = 1.959964
"""Half-width of a 95 % interval of a normal distribution, in standard deviations."""


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a proportion; 0 to 1 if n is 0."""
    if not n:
        return 0.0, 1.0
    share, z2 = hits / n, Z * Z
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)


T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Half-width of a 95 % interval of a mean, in standard errors, for 1, 2, 3, … degrees of freedom."""


def student(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of a mean (Student's t); infinite for fewer than two values."""
    n = len(values)
    if n < 2:
        return -math.inf, math.inf
    t = T95[n - 2] if n - 2 < len(T95) else Z + (Z**3 + Z) / (4 * (n - 1))
    half = t * stdev(values) / math.sqrt(n)
    return fmean(values) - half, fmean(values) + half


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the exact two-sided p value of McNemar's test.

    Args:
        only_first: number of pairs that only the first of two systems got right.
        only_second: number of pairs that only the second got right.
    """
    n, fewer = only_first + only_second, min(only_first, only_second)
    total: int = 2**n
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(fewer + 1)) / total)


def holm(ps: Sequence[float]) -> list[float]:
    """Return p values corrected for multiple tests (Holm's step-down method; monotone, at most 1)."""
    order = sorted(range(len(ps)), key=lambda at: ps[at])
    mended, highest = [0.0] * len(ps), 0.0
    for place, at in enumerate(order):
        highest = max(highest, min(1.0, ps[at] * (len(ps) - place)))
        mended[at] = highest
    return mended
