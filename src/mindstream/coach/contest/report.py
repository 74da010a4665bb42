"""What a contest came to: who was preferred, with an interval, how many answers were right, and what it took."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mindstream.coach.contest.play import COACH
from mindstream.coach.contest.talks import Played, Turn

DRAWS = 2_000


def score(votes: Sequence[str]) -> float:
    """Return how far the coach is preferred in a talk, by its votes: from -1 to 1."""
    values = [0.0 if vote == "same" else 1.0 if vote == COACH else -1.0 for vote in votes]
    return sum(values) / max(1, len(values))


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Return where the mean lies in 95 of 100 draws of as many talks."""
    draw = random.Random(seed)
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(DRAWS))
    return means[int(0.025 * DRAWS)], means[int(0.975 * DRAWS) - 1]


def summarise(
    played: Sequence[Played], votes: Mapping[str, Mapping[str, Sequence[str]]], points: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """Return the figures by side: what a turn took, how far the coach is preferred to it, what it answered rightly.

    Args:
        votes: by opponent and talk. points: of answers to questions with a key, by side.
    """
    found: dict[str, Any] = {}
    for side in dict.fromkeys(each.side for each in played):
        turns = [turn for each in played if each.side == side for turn in each.turns]
        scores = {id_: score(cast) for id_, cast in votes.get(side, {}).items() if cast}
        found[side] = _cost(turns) | (_preference(scores) if scores else {})
        if graded := points.get(side):
            found[side] |= {"questions": len(graded), "right": round(sum(graded) / len(graded), 3)}
    return found


def _preference(scores: Mapping[str, float]) -> dict[str, Any]:
    low, high = interval(list(scores.values()))
    return {
        "talks": len(scores),
        "coach_preferred": sum(each > 0 for each in scores.values()),
        "coach_worse": sum(each < 0 for each in scores.values()),
        "preference": round(sum(scores.values()) / len(scores), 3),
        "interval": [round(low, 3), round(high, 3)],
        "by_talk": dict(scores),
    }


def _cost(turns: Sequence[Turn]) -> dict[str, float]:
    def mean(of: Callable[[Turn], float]) -> float:
        return sum(map(of, turns)) / max(1, len(turns))

    seconds = sorted(turn.first_s for turn in turns)
    return {
        "turns": len(turns),
        "tokens_a_turn": round(mean(lambda turn: turn.tokens)),
        "cached_at_a_tenth": round(mean(lambda turn: turn.tokens - 0.9 * turn.cached)),
        "usd_a_turn": round(mean(lambda turn: turn.cost_usd), 6),
        "first_s": seconds[len(seconds) // 2] if seconds else 0.0,
    }
