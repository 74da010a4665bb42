"""How good probabilities are, judged by what came true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Judged = tuple[Mapping[str, float], str]
"""The probabilities that were given to the answers, and the answer that was right."""


def brier_score(judged: Sequence[Judged]) -> float:
    """Return the mean squared distance of probabilities from what came true (Brier 1950).

    0 is perfect; of n answers a coin has 1 - 1/n, and who is sure and wrong has 2.
    """
    return sum(sum((p - (answer == right)) ** 2 for answer, p in given.items()) for given, right in judged) / _counted(
        judged
    )


def calibration_error(judged: Sequence[Judged], bins: int = 10) -> float:
    """Return the expected calibration error of the likeliest answers (Naeini 2015).

    How far, on average, the share of those that were right is from how sure they were, in bins of equal width.
    """
    groups: dict[int, list[tuple[float, bool]]] = {}
    for given, right in judged:
        answer, p = max(given.items(), key=lambda item: item[1])
        groups.setdefault(min(bins - 1, int(p * bins)), []).append((p, answer == right))
    gaps = (abs(sum(p for p, _ in group) - sum(hit for _, hit in group)) for group in groups.values())
    return sum(gaps) / _counted(judged)


def accuracy(judged: Sequence[Judged]) -> float:
    """Return the share of decisions whose likeliest answer was right; answers that are equally likely share it."""
    hits = 0.0
    for given, right in judged:
        most = max(given.values())
        best = [answer for answer, p in given.items() if p == most]
        hits += (right in best) / len(best)
    return hits / _counted(judged)


def coin(answers: Sequence[str]) -> dict[str, float]:
    """Return the probabilities of somebody who knows nothing: the control for all others."""
    return dict.fromkeys(answers, 1 / len(answers))


def _counted(judged: Sequence[Judged]) -> int:
    if not judged:
        raise ValueError("there is nothing to judge: no decision was given")
    return len(judged)
