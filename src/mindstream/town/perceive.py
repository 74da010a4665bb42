"""What a resident sees: who and what is in its arena and near, the nearest first; what of it is new goes into memory.

Source: Park 2023, 4 and 5; vision, attention and retention as in the data of its authors.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mindstream.memory.rate_importance import RateImportance
from mindstream.memory.record import New, Triple
from mindstream.town.compat import is_unseen_edge
from mindstream.town.events import Perceived
from mindstream.town.percept import Percept
from mindstream.town.ranking import IDLE
from mindstream.town.setting import Setting
from mindstream.town.turn import Turn
from mindstream.town.world.world import Spot


def nearest(percepts: Sequence[Percept], spot: Spot, most: int) -> list[Percept]:
    """Return the nearest, by Euclidean distance, each thing once."""
    x, y = spot
    by_distance = sorted(
        percepts, key=lambda each: ((each.spot[0] - x) ** 2 + (each.spot[1] - y) ** 2, each.triple, each.place)
    )
    return list({each.triple: each for each in reversed(by_distance)}.values())[::-1][:most]


def is_in_sight(setting: Setting, spot: Spot, other: Spot) -> bool:
    """Tell whether what is at another spot is seen from a spot: it is in the same arena, and in the square box."""
    world = setting.world
    return (
        world.distance(other, spot) <= setting.profile.vision
        and world.arena_of(spot) == world.arena_of(other)
        and not is_unseen_edge(world, other, setting.profile)
    )


def is_news(percepts: Sequence[Percept], seen: Collection[tuple[str, str, str]]) -> bool:
    """Tell whether any of these percepts is not among the last ones."""
    return any(each.triple not in seen for each in percepts)


async def perceive(turn: Turn) -> list[Percept]:
    """Take in what is new of what can be seen; return it."""
    new = [each for each in turn.percepts if each.triple not in turn.state.seen]
    if not (new or turn.places):
        return []
    ratings = await _rate(turn, [each.text for each in new]) if new else []
    records = await turn.build(
        *(
            New(
                text=each.text, kind="observation", by=turn.name, importance=rating, about=Triple(*each.triple),
                keywords=_keywords(each), data={"place": each.place} if each.place else {},
            )
            for each, rating in zip(new, ratings, strict=True)
        )
    )  # fmt: skip
    event = Perceived(
        step=turn.step, seen=tuple(each.triple for each in new), records=tuple(record.id for record in records),
        places=turn.places, gathered=sum(ratings),
    )  # fmt: skip
    turn.write(event, records)
    return new


async def _rate(turn: Turn, texts: Sequence[str]) -> list[float]:
    """Rate what was seen; what is as it should be is mundane, and nobody is asked."""
    odd = [text for text in texts if not text.endswith(f" is {IDLE}")]
    rated = await turn.ask(RateImportance(who=turn.name, memories=tuple(odd))) if odd else None
    ratings = dict(zip(odd, rated.ratings, strict=True)) if rated else {}
    return [float(ratings.get(text, 1)) for text in texts]


def _keywords(percept: Percept) -> tuple[str, ...]:
    return tuple(dict.fromkeys((percept.subject.lower(), percept.object.lower())))
