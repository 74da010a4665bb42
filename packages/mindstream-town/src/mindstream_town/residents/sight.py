"""What a resident sees, the nearest first (Park 2023, 5), and which percepts are new to it (Park 2023, 4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mindstream.memory.lifecycle.importance import RateImportance
from mindstream.memory.store.record import RecordDraft, Triple
from mindstream_town.events import Act, Perceived
from mindstream_town.residents.places import with_article, words_of
from mindstream_town.residents.turn import Percept, Resident, ResidentTurn
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState
from mindstream_town.world.tree import ARENA, Spot
from mindstream_town.world.whereabouts import Condition, Whereabouts

OCCUPIED = "occupied"


def find_taken(
    setting: Setting, state: ResidentState, spot: Spot, others: Mapping[str, ResidentState], step: int
) -> list[Percept]:
    """Return a percept that the place of the resident's act is occupied; [] if it is not.

    A room or object has room for a certain number of residents. It is occupied if this many others were there first.

    Args:
        others: the residents in sight.
    """
    act = state.act
    place = _counted_place(setting, act) if act and others else None
    if act is None or place is None:
        return []
    where, most = place
    deeds = {name: other.act for name, other in others.items() if other.act and other.act.needs(where)}
    before = [name for name, deed in deeds.items() if _was_first(deed, name, act, state.name, step)]
    if len(before) < most:
        return []
    return [Percept(f"the {where.rpartition(':')[2]}", "is", OCCUPIED, spot, place=where, since=act.since)]


def _was_first(deed: Act, name: str, act: Act, own: str, step: int) -> bool:
    return deed.has_arrived(step) and (deed.arrives, name) < (act.arrives, own)


def _counted_place(setting: Setting, act: Act) -> tuple[str, int] | None:
    """Return the place whose users count towards the capacity at an act's place, and this capacity.

    Return None if there is no limit, or if the resident sleeps.
    """
    address = setting.addresses.get(act.place)
    if address is None or act.asleep:
        return None
    most = setting.rules.capacity(address)
    return None if most is None else (str(setting.rules.counted_at(address)), most)


def look(
    name: str,
    where: Whereabouts,
    residents: Mapping[str, Resident],
    step: int,
    known: Collection[tuple[str, str, str]] = (),
) -> list[Percept]:
    """Return what a resident notices: people, objects that are not in order, and a full place.

    - Of these, the resident notices the nearest, at most `profile.attention`, and in addition every danger.
    - A full place is noticed only if it is the room or object that the resident is about to use.
    - In the mode `paper`, objects in use are noticed, too.
    - The partner of the resident's current talk is left out.

    Args:
        known: percepts (as triples) that are no news. If the resident sees only people whose percepts are all known,
            the result is empty.
    """
    setting, profile, spot, state = where.setting, where.setting.profile, where.spots[name], residents[name].state
    if not profile.observes:
        return []
    around, odd = where.residents_around(name), where.odd_around(name)
    if len(around) == 1 and not odd:
        return []
    distance, vision = setting.world.distance, profile.vision
    seen = [
        Percept(*_deed(residents[other], act, where, step), there, other, act.place)
        for other in around  # residents in the same arena
        if other != name
        and distance(there := where.spots[other], spot) <= vision
        and (act := residents[other].state.act)
        and (act.why != "talk" or residents[other].state.partner)  # excludes a talk that is over
    ]
    others = people_seen(seen, residents)
    if profile.lives == "paper":
        seen += _used_things(setting, spot, others, step)
    seen += [thing for place, now in odd.items() if (thing := see_thing(setting, spot, place, now))]
    seen += find_taken(setting, state, spot, others, step)
    if len(seen) == len(others) and all(each[:3] in known for each in seen):
        return []
    noticed = nearest(seen, spot, profile.attention)
    dangers = dangers_of(seen) if odd else []
    return [
        *(each for each in dangers if each not in noticed),
        # the partner of a talk is no news
        *(each for each in noticed if not state.partner or each.who != state.partner),
    ]


def people_seen(percepts: Sequence[Percept], residents: Mapping[str, Resident]) -> dict[str, ResidentState]:
    """Return the states of the residents among the percepts."""
    return {each.who: residents[each.who].state for each in percepts if each.who}


def _used_things(setting: Setting, spot: Spot, others: Mapping[str, ResidentState], step: int) -> list[Percept]:
    """Return percepts of the objects in sight that other residents are using."""
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


def on_the_way(place: str) -> str:
    """Return the walk to a place in words, as an activity."""
    return f"on the way to {with_article(words_of(place))}"


def _deed(resident: Resident, act: Act, where: Whereabouts, step: int) -> tuple[str, str, str]:
    """Return an act as subject, predicate and object. A talk gives the same percept for both speakers.

    In the mode `paper`, a resident who walks to another room is seen "on the way", because the act has not begun.
    """
    state, setting = resident.state, where.setting
    if resident.is_paper(setting.profile) and not act.has_arrived(step) and act.place in setting.addresses:
        goal, here = setting.addresses[act.place].upto(ARENA), setting.world.address_at(where.spots[state.name])
        if not here.is_within(goal):
            return state.name, "is", on_the_way(act.place)
    if act.why != "talk" or state.name < state.partner:
        does = act.outwardly.removeprefix(f"{state.name} ")
        # The text of an act agreed with Ann may begin with her: "Ann bringing a cake".
        is_of_other = any(does.startswith(f"{name} ") for name in act.agreed)
        return state.name, "is busy with:" if is_of_other else "is", does
    return state.partner, "is", f"talking with {state.name}"


def nearest(percepts: Sequence[Percept], spot: Spot, most: int) -> list[Percept]:
    """Return up to `most` percepts by their Euclidean distance from `spot`, the nearest first.

    Of several percepts with the same text, only the nearest is returned. Its position in the order is that of the
    farthest.
    """
    if len(percepts) < 2:
        return list(percepts[:most])
    x, y = spot
    by_distance = sorted(
        percepts,
        key=lambda each: ((each.spot[0] - x) ** 2 + (each.spot[1] - y) ** 2, each[:3], each.place, each.who),
    )
    return list({each[:3]: each for each in reversed(by_distance)}.values())[::-1][:most]


def is_in_sight(setting: Setting, spot: Spot, other: Spot) -> bool:
    """Return whether one spot can be seen from another: in the same arena, at most `vision` tiles away."""
    world = setting.world
    return world.distance(other, spot) <= setting.profile.vision and world.arena_of(spot) == world.arena_of(other)


def nearest_spot(setting: Setting, place: str, spot: Spot) -> Spot:
    """Return the spot of a place that is nearest to a spot."""
    world = setting.world
    return min(world.spots(setting.addresses[place]), key=lambda each: world.distance(each, spot))


def see_thing(setting: Setting, spot: Spot, place: str, condition: Condition) -> Percept | None:
    """Return the percept of an object that is not in order; None if it is out of sight."""
    near = nearest_spot(setting, place, spot)
    if not is_in_sight(setting, spot, near):
        return None
    text, since, danger = condition
    has = text.partition(" ")[0].lower() in ("a", "an", "no", "two", "several")
    thing = f"the {place.rpartition(':')[2]}"
    return Percept(thing, "has" if has else "is", text, near, place=place, since=since, danger=danger)


def dangers_of(percepts: Sequence[Percept]) -> list[Percept]:
    """Return the percepts that are dangers; they are always noticed and wake sleepers."""
    return [each for each in percepts if each.danger]


PEOPLE, THING, ADDRESSED, DANGER = 1.0, 3.0, 4.0, 8.0
"""Importance of percepts in a town that runs in scenes, where no model rates percepts. In this order: acts of others,
conditions of objects, acts that name the resident, dangers."""


def is_news(percepts: Sequence[Percept], state: ResidentState) -> bool:
    """Return whether any percept is not in `state.seen`, or the resident must still decide about one."""
    return any(each[:3] not in state.seen or is_undecided(state, each) for each in percepts)


def is_undecided(state: ResidentState, percept: Percept) -> bool:
    """Return whether a resident still has to decide about an object in sight.

    A resident decides once, and again in these cases:

    - The condition of the object changes.
    - A new act needs the object.
    - The object is a danger, and the resident begins a new act.
    """
    if percept.who or percept.passing or state.act is None or state.act.sees_to == percept.place:
        return False
    decided = state.considered.get(percept.place, -2)
    return decided <= percept.since or (
        decided <= state.act.since and (state.act.needs(percept.place) or percept.danger)
    )


async def perceive(turn: ResidentTurn) -> list[Percept]:
    """Store what the resident newly sees (percepts) as memories, and note the newly seen places. Return the new
    percepts."""
    new = [each for each in turn.percepts if each.triple not in turn.state.seen]
    if not (new or turn.places):
        return []
    ratings = await _importance(turn, new)
    records = await turn.build(
        *(
            RecordDraft(
                text=each.text,
                kind="observation",
                by=turn.name,
                importance=rating,
                about=Triple(*each.triple),
                keywords=_keywords(each),
                data={"place": each.place} if each.place else {},
            )
            for each, rating in zip(new, ratings, strict=True)
        )
    )
    event = Perceived(
        step=turn.step,
        seen=tuple(each.triple for each in new),
        records=tuple(record.id for record in records),
        places=turn.places,
        gathered=sum(filter(None, ratings)),
        unrated=tuple(record.id for record in records if record.importance is None),
    )
    turn.write(event, records)
    return new


async def _importance(turn: ResidentTurn, new: Sequence[Percept]) -> list[float | None]:
    """Return the importance of each percept: by rule if the town runs in scenes, otherwise as rated by the model.

    In the mode `paper`, None means that the percept is rated later; an object in use gets 1.0.
    """
    if turn.lives_in_scenes:
        return [_by_rule(turn, each) for each in new]
    if turn.is_paper():
        return [1.0 if each.passing else None for each in new]  # an object in use has the lowest importance
    if not new:
        return []
    rated = await turn.ask(RateImportance(who=turn.name, memories=tuple(each.text for each in new)))
    return [float(each) for each in rated.ratings]


def _by_rule(turn: ResidentTurn, percept: Percept) -> float:
    """Return the importance of a percept by rule.

    If another resident's act names this resident, the act counts as addressed to this resident.
    """
    if percept.danger or not percept.who:
        return DANGER if percept.danger else THING
    return ADDRESSED if turn.name in percept.text else PEOPLE


def _keywords(percept: Percept) -> tuple[str, ...]:
    return tuple(dict.fromkeys((percept.subject.lower(), percept.object.lower())))
