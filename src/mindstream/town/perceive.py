"""What a resident sees: who and what is in its arena and near, the nearest first; what of it is new goes into memory.

Source: Park 2023, 4 and 5; vision, attention and retention as in the data of its authors.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mindstream.memory.rate_importance import RateImportance
from mindstream.memory.record import New, Triple
from mindstream.town.compat import is_unseen_edge
from mindstream.town.events import Act, Perceived
from mindstream.town.percept import Percept
from mindstream.town.ranking import IDLE
from mindstream.town.rules.conditions import is_danger
from mindstream.town.setting import Setting
from mindstream.town.state import ResidentState
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


def nearest_spot(setting: Setting, place: str, spot: Spot) -> Spot:
    """Return where a place is nearest to a spot."""
    world = setting.world
    return min(world.spots(setting.addresses[place]), key=lambda each: world.distance(each, spot))


def see_thing(setting: Setting, spot: Spot, place: str, condition: str, since: int) -> Percept | None:
    """Return what is seen from a spot of a thing that is not as it should be; None: it is out of sight."""
    near = nearest_spot(setting, place, spot)
    if not is_in_sight(setting, spot, near):
        return None
    has = condition.partition(" ")[0].lower() in ("a", "an", "no", "two", "several")
    return Percept(f"the {place.rpartition(':')[2]}", "has" if has else "is", condition, near, place=place, since=since)


def idle_things(setting: Setting, spot: Spot, odd: Collection[str]) -> list[Percept]:
    """Return the things in sight that are as they should be, each where it is nearest."""
    world, found = setting.world, dict[int, Spot]()
    for at, number in world.objects_in(world.arena_of(spot)):
        if is_in_sight(setting, spot, at):
            found[number] = min(found.get(number, at), at, key=lambda each: world.distance(each, spot))
    places = {number: str(world.places[number]) for number in found}
    return [
        Percept(f"the {place.rpartition(':')[2]}", "is", IDLE, found[number], place=place)
        for number, place in places.items()
        if place not in odd
    ]


def sleeps_on(state: ResidentState, minute: int, ended: bool) -> bool:
    """Tell whether somebody sleeps and goes on sleeping."""
    if not state.asleep or not ended:
        return state.asleep
    block = state.block_at(minute)  # at midnight of the day before: it ends as that began
    return block is None or block.asleep


def dangers_of(percepts: Sequence[Percept]) -> list[Percept]:
    """Return what of it nobody overlooks, and what wakes who sleeps: dangers."""
    return [each for each in percepts if not each.who and is_danger(each.object)]


def is_news(percepts: Sequence[Percept], state: ResidentState) -> bool:
    """Tell whether any of these percepts is not among the last ones, or is yet to be decided about."""
    return any(each.triple not in state.seen or is_undecided(state, each) for each in percepts)


def is_undecided(state: ResidentState, percept: Percept) -> bool:
    """Tell whether somebody has yet to decide about a thing that it sees.

    It does so once; anew when the thing comes into another condition, when it needs the thing, and about a danger
    with each new act.
    """
    if percept.who or percept.object == IDLE or state.act is None or state.act.sees_to == percept.place:
        return False
    decided = state.considered.get(percept.place, -2)
    return decided <= percept.since or (
        decided <= state.act.since and (needs(state.act, percept.place) or is_danger(percept.object))
    )


def needs(act: Act, place: str) -> bool:
    """Tell whether an act is done at a thing, or in a room."""
    return act.place == place or act.place.startswith(f"{place}:")


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
