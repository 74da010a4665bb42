"""What can be seen from where somebody stands: in its arena, within its vision, the nearest first (Park 2023, 5)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mindstream_town.compat import is_unseen_edge, sees_idle
from mindstream_town.events import Act
from mindstream_town.residents.occupancy import find_taken
from mindstream_town.residents.percept import Percept
from mindstream_town.residents.person import IDLE
from mindstream_town.residents.turn import Resident
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState
from mindstream_town.world.whereabouts import Condition, Whereabouts
from mindstream_town.world.world import Spot


def look(name: str, where: Whereabouts, residents: Mapping[str, Resident], step: int) -> list[Percept]:
    """Return what somebody notices: people and odd things, the nearest, and dangers however many are nearer."""
    setting, profile, spot, state = where.setting, where.setting.profile, where.spots[name], residents[name].state
    if not profile.observes:
        return []
    around, odd = where.residents_around(name), where.odd_around(name)
    if len(around) == 1 and not odd and not sees_idle(profile):
        return []
    distance, vision = setting.world.distance, profile.vision
    seen = [
        Percept(*_deed(residents[other].state, act, profile.compat), there, who=other, place=act.place)
        for other in around  # in the same arena
        if other != name
        and distance(there := where.spots[other], spot) <= vision
        and not is_unseen_edge(setting.world, there, profile)
        and (act := residents[other].state.act)
        and (act.why != "talk" or residents[other].state.partner)  # a talk that is over is nothing to see
    ]
    others = people_seen(seen, residents)
    if profile.lives == "paper":
        seen += _used_things(setting, spot, others, step)
    seen += [thing for place in odd if (thing := see_thing(setting, spot, place, where.conditions[place]))]
    if sees_idle(profile):
        seen += idle_things(setting, spot, where.conditions)
    else:
        seen += find_taken(setting, state, spot, others, step)
    noticed = nearest(seen, spot, profile.attention)
    dangers = dangers_of(seen) if odd else []
    return [
        *(each for each in dangers if each not in noticed),
        *(each for each in noticed if not state.partner or each.who != state.partner),  # that is no news
    ]


def people_seen(percepts: Sequence[Percept], residents: Mapping[str, Resident]) -> dict[str, ResidentState]:
    """Return those whom somebody sees, as they are."""
    return {each.who: residents[each.who].state for each in percepts if each.who}


def _used_things(setting: Setting, spot: Spot, others: Mapping[str, ResidentState], step: int) -> list[Percept]:
    """Return what is seen of the things that others are at: what each is while that is done to it."""
    used = []
    for other in others.values():
        act = other.act
        if act is None or not act.state or act.place not in setting.addresses or not act.has_arrived(step):
            continue
        near = nearest_spot(setting, act.place, spot)
        if is_in_sight(setting, spot, near):
            thing = f"the {act.place.rpartition(':')[2]}"
            used.append(Percept(thing, "is", act.state, near, place=act.place, since=act.since, passing=True))
    return used


def _deed(state: ResidentState, act: Act, compat: bool) -> tuple[str, str, str]:
    """Return what is seen of somebody: subject, predicate, object; a talk of two is one thing to see."""
    if act.why != "talk" or compat or state.name < state.partner:
        return state.name, "is", act.what
    return state.partner, "is", f"talking with {state.name}"


def nearest(percepts: Sequence[Percept], spot: Spot, most: int) -> list[Percept]:
    """Return the nearest, by Euclidean distance, each thing once."""
    if len(percepts) < 2:
        return list(percepts[:most])
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


def see_thing(setting: Setting, spot: Spot, place: str, condition: Condition) -> Percept | None:
    """Return what is seen from a spot of a thing that is not as it should be; None: it is out of sight."""
    near = nearest_spot(setting, place, spot)
    if not is_in_sight(setting, spot, near):
        return None
    text, since, danger = condition
    has = text.partition(" ")[0].lower() in ("a", "an", "no", "two", "several")
    thing = f"the {place.rpartition(':')[2]}"
    return Percept(thing, "has" if has else "is", text, near, place=place, since=since, danger=danger)


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


def dangers_of(percepts: Sequence[Percept]) -> list[Percept]:
    """Return what of it nobody overlooks, and what wakes who sleeps: dangers."""
    return [each for each in percepts if each.danger]
