"""The surroundings and events of a controlled resident as data, for any user interface."""

from __future__ import annotations

from collections.abc import Iterator

from mindstream.frozen import Frozen
from mindstream_town.embody.happened import Happening, OpenTown, happenings
from mindstream_town.embody.living import doing, is_here
from mindstream_town.residents.places import hours_on, known_places, may_use, words_of
from mindstream_town.residents.sight import is_in_sight, nearest_spot
from mindstream_town.residents.turn import Resident
from mindstream_town.world.hours import DAY_MINUTES, clock


class PersonSeen(Frozen):
    """A person in sight; `known_as`: its relation to the controlled resident; `distance`: from the controlled resident,
    in tiles (a diagonal step counts as one), or in steps along roads."""

    name: str
    doing: str
    place: str
    asleep: bool
    talks_with: str
    known_as: str
    distance: int


class ThingSeen(Frozen):
    """An object in sight; `condition`: "" if it is in order; `used_by`: names of the people who use it."""

    address: str
    name: str
    condition: str
    danger: bool
    used_by: tuple[str, ...]
    distance: int


class PlaceKnown(Frozen):
    """A known place; `hours`: "" if it is always open; `open`: whether the resident may enter it now."""

    address: str
    name: str
    hours: str
    open: bool


class Line(Frozen):
    """A line of a talk."""

    by: str
    text: str


class Planned(Frozen):
    """A part of the day's plan, with its times."""

    start: str
    end: str
    what: str
    place: str


class Surroundings(Frozen):
    """Position, activity, surroundings, talk and events of a controlled resident.

    Attributes:
        until: time at which the activity ends; "" if no end is set.
        place: address of the narrowest place around the resident; `where`: the same in words.
        talks_with: the resident who waits for an answer; answer_by: until when; both "" if none waits. talk: the lines
            of the talk with that resident.
        plan: the rest of the day's plan, including agreements.
    """

    name: str
    person: str
    step: int
    time: str
    place: str
    where: str
    spot: tuple[int, int]
    doing: str
    on_the_way: bool
    until: str
    talks_with: str
    answer_by: str
    talk: tuple[Line, ...]
    people: tuple[PersonSeen, ...]
    things: tuple[ThingSeen, ...]
    places: tuple[PlaceKnown, ...]
    plan: tuple[Planned, ...]
    happened: tuple[Happening, ...] = ()


def people_around(town: OpenTown, resident: Resident) -> list[Resident]:
    """Return the people in sight, the nearest first."""
    setting, step = town.setting, max(town.step, 0)
    spot = resident.state.spot(step)
    seen = [
        (setting.world.distance(spot, there), other.name, other)
        for other in town.residents.values()
        if other is not resident and is_here(other) and is_in_sight(setting, spot, there := other.state.spot(step))
    ]
    return [other for _, _, other in sorted(seen, key=lambda each: each[:2])]


async def survey(town: OpenTown, resident: Resident, since: int | None) -> Surroundings:
    """Return the surroundings, and the events after step `since`; None: no events."""
    setting, state, step = town.setting, resident.state, max(town.step, 0)
    spot = state.spot(step)
    place, act = setting.world.address_at(spot), state.act
    return Surroundings(
        name=resident.name,
        person=state.embodied,
        step=town.step,
        time=setting.when(step).isoformat(),
        place=str(place),
        where=words_of(str(place)),
        spot=spot,
        doing=doing(state),
        on_the_way=act is not None and not act.has_arrived(step),
        until=f"{setting.when(act.until):%H:%M}" if act and not act.why else "",
        talks_with=state.talks_with if state.talk else "",
        answer_by=f"{setting.when(act.until - 1):%H:%M}" if act and state.talk else "",
        talk=tuple(Line(by=line.by, text=line.text) for line in state.talk),
        people=tuple(_seen(town, resident, other) for other in people_around(town, resident)),
        things=tuple(_things(town, resident)),
        places=tuple(_places(town, resident)),
        plan=tuple(_plan(town, resident)),
        happened=() if since is None else tuple([each async for each in happenings(town, resident, since)]),
    )


def _seen(town: OpenTown, resident: Resident, other: Resident) -> PersonSeen:
    setting, step, state = town.setting, max(town.step, 0), other.state
    there = state.spot(step)
    relation = next((each.what for each in resident.person.relations if each.name == other.name), "")
    return PersonSeen(
        name=other.name,
        doing=doing(state),
        place=words_of(str(setting.world.address_at(there))),
        asleep=state.asleep,
        talks_with=state.partner,
        known_as=relation,
        distance=setting.world.distance(resident.state.spot(step), there),
    )


def _things(town: OpenTown, resident: Resident) -> Iterator[ThingSeen]:
    """Yield the things in sight, the nearest first."""
    setting, step, world = town.setting, max(town.step, 0), town.setting.world
    spot = resident.state.spot(step)
    acts = {other.name: other.state.act for other in people_around(town, resident)}
    found = []
    for address in {str(world.places[number]) for _, number in world.objects_in(world.arena_of(spot))}:
        near = nearest_spot(setting, address, spot)
        if is_in_sight(setting, spot, near):
            condition = town.conditions.get(address)
            used_by = tuple(
                name for name, act in acts.items() if act and act.place == address and act.has_arrived(step)
            )
            thing = ThingSeen(
                address=address,
                name=address.rpartition(":")[2],
                condition=condition.text if condition else "",
                danger=bool(condition and condition.danger),
                used_by=used_by,
                distance=world.distance(spot, near),
            )
            found.append(thing)
    yield from sorted(found, key=lambda each: (each.distance, each.address))


def _places(town: OpenTown, resident: Resident) -> Iterator[PlaceKnown]:
    setting, person = town.setting, resident.person
    when = setting.when(max(town.step, 0))
    for address, place in known_places(setting, person, resident.state.knows, when):
        at = setting.addresses[address]
        is_open = setting.rules.is_open(at, when) or person.name in setting.rules.owners(at)
        yield PlaceKnown(
            address=address,
            name=place.words,
            hours=hours_on(setting.rules, at, when),
            open=is_open and may_use(setting, person, address),
        )


def _plan(town: OpenTown, resident: Resident) -> Iterator[Planned]:
    setting, state, step = town.setting, resident.state, max(town.step, 0)
    if state.day != setting.day(step):
        return
    for block in state.blocks:
        if block.end > setting.minute(step):
            start, end = (clock(each % DAY_MINUTES) for each in (block.start, block.end))
            yield Planned(start=start, end=end, what=block.what, place=words_of(block.place) if block.place else "")
