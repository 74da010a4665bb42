"""What a contest came to: who was preferred, with an interval, and what it took."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from mindstream.coach.contest.play import COACH, PLAIN, SIDES
from mindstream.coach.contest.talks import Played

DRAWS = 2_000


def score(votes: Sequence[str]) -> float:
    """Return how far the coach is preferred in a talk, by its votes: from -1 to 1."""
    return sum({COACH: 1.0, PLAIN: -1.0}.get(vote, 0.0) for vote in votes) / max(1, len(votes))


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Return where the mean lies in 95 of 100 draws of as many talks."""
    draw = random.Random(seed)
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(DRAWS))
    return means[int(0.025 * DRAWS)], means[int(0.975 * DRAWS) - 1]


def summarise(played: Sequence[Played], votes: dict[str, list[str]]) -> dict[str, Any]:
    """Return the figures: preference by talk and over all, and tokens, seconds and cost of a turn by side."""
    scores = {id_: score(cast) for id_, cast in votes.items() if cast}
    found: dict[str, Any] = {side: _cost([each for each in played if each.side == side]) for side in SIDES}
    if scores:
        low, high = interval(list(scores.values()))
        found |= {
            "talks": len(scores),
            "preferred": sum(each > 0 for each in scores.values()),
            "worse": sum(each < 0 for each in scores.values()),
            "preference": round(sum(scores.values()) / len(scores), 3),
            "interval": [round(low, 3), round(high, 3)],
            "by_talk": scores,
        }
    return found


def _cost(played: Sequence[Played]) -> dict[str, float]:
    turns = [turn for each in played for turn in each.turns]

    def mean(of: Callable[[Any], float]) -> float:
        return sum(map(of, turns)) / max(1, len(turns))

    seconds = sorted(turn.first_s for turn in turns)
    return {
        "turns": len(turns),
        "tokens_a_turn": round(mean(lambda turn: turn.tokens)),
        "cached_at_a_tenth": round(mean(lambda turn: turn.tokens - 0.9 * turn.cached)),
        "usd_a_turn": round(mean(lambda turn: turn.cost_usd), 6),
        "first_s": seconds[len(seconds) // 2] if seconds else 0.0,
    }
