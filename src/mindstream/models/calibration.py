"""Measures the quality of predicted probabilities, given the right answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Judged = tuple[Mapping[str, float], str]
"""The probabilities of the answers, and the answer that was right."""


def brier_score(judged: Sequence[Judged]) -> float:
    """Return the mean squared distance of probabilities from the outcomes (Brier 1950).

    0 is perfect; equal probabilities of n answers score 1 - 1/n, and certainty about a wrong answer scores 2.
    """
    return _mean([sum((p - (answer == right)) ** 2 for answer, p in given.items()) for given, right in judged])


def calibration_error(judged: Sequence[Judged], bins: int = 10) -> float:
    """Return the expected calibration error of the likeliest answers (Naeini 2015).

    This is the mean distance between the share of right answers and the mean probability, in bins of equal width.
    """
    gaps: dict[int, list[float]] = {}
    for given, right in judged:
        answer, p = max(given.items(), key=lambda item: item[1])
        gaps.setdefault(min(bins - 1, int(p * bins)), []).append(p - (answer == right))
    return sum(abs(sum(group)) for group in gaps.values()) / _count(judged)


def accuracy(judged: Sequence[Judged]) -> float:
    """Return the share of decisions whose likeliest answer was right; equally likely answers share the credit."""
    hits = []
    for given, right in judged:
        best = [answer for answer, p in given.items() if p == max(given.values())]
        hits.append((right in best) / len(best))
    return _mean(hits)


def coin(answers: Sequence[str]) -> dict[str, float]:
    """Return equal probabilities of all answers: the baseline of a measurement."""
    return dict.fromkeys(answers, 1 / len(answers))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / _count(values)


def _count(values: Sequence[object]) -> int:
    if not values:
        raise ValueError("expected at least one decision to score, found none")
    return len(values)
