"""Describe places in words, and decide which places a resident knows and may use."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache

from mindstream.errors import InputError
from mindstream_town.prompts.plans import Place
from mindstream_town.residents.person import Appointment, Person
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.setting import Setting
from mindstream_town.world.rules import PlaceRules
from mindstream_town.world.tree import ARENA, SECTOR, Address, Spot, sector_of
from mindstream_town.world.world import clock


@cache
def words_of(place: str) -> str:
    """Return a place in words: `stove in the kitchen of the Lin family's house`."""
    _, *names = place.split(":")
    if not names:
        return place
    said = names[-1].strip()
    for name in reversed(names[:-1]):
        said += f" {_joint(name) if name is names[-2] and len(names) == 3 else 'of'} {name.strip()}"
    return said


def with_article(words: str) -> str:
    """Put "the" before a place: `the stove in …`. A place that begins with "the" or with a capital letter stays as it
    is: `Ada Brook's room`."""
    return words if words[:1].isupper() or words.startswith("the ") else f"the {words}"


def _joint(room: str) -> str:
    return "in" if room.strip()[:1].isupper() or room.strip().startswith("the ") else "in the"


def things_around(turn: ResidentTurn, place: str) -> tuple[str, ...]:
    """Return the objects in the house of a place that a resident knows and may use. Objects in the same room as the
    place come first. () if the town has no such place."""
    address = turn.setting.addresses.get(place)
    if address is None:
        return ()
    sector, arena = str(address.upto(2)), str(address.upto(3))
    known = [each for each in turn.setting.objects_in(sector) if each in turn.state.knows]
    mine = [each for each in known if may_use(turn.setting, turn.person, each)]
    return tuple(sorted(mine, key=lambda each: not each.startswith(arena + ":")))


def things_open(turn: ResidentTurn, purpose: str) -> tuple[str, ...]:
    """Return the objects for a purpose ("shop", "eat") that a resident can use now: the resident knows the object and
    may use it, and the object's place has the purpose and is open. The resident's home is left out."""
    when, rules, addresses = turn.when, turn.setting.rules, turn.setting.addresses
    return tuple(
        thing
        for address, place in known_places(turn.setting, turn.person, turn.state.knows, when)
        if not place.home and purpose in rules.purposes(addresses[address]) and rules.is_open(addresses[address], when)
        for thing in turn.setting.objects_in(address)
        if thing in turn.state.knows and may_use(turn.setting, turn.person, thing)
    )


def known_places(setting: Setting, person: Person, knows: Collection[str], when: datetime) -> list[tuple[str, Place]]:
    """Return the places that a resident knows and may enter, as prompts show them, the home first.

    Places of the usual day that are not known yet come last.
    """
    found = []
    known, of_day = known_addresses(setting, person, knows)
    for address in known:
        things = tuple(each.rpartition(":")[2] for each in setting.objects_in(address) if each in knows)
        home = is_home(person, address)
        hours = hours_on(setting.rules, setting.addresses[address], when)
        own = person.name in setting.rules.owners(setting.addresses[address])
        place = Place(words=words_of(address), things=things, home=home, own=own, hours=hours, address=address)
        found.append((address, place))
    return [*found, *((each, Place(words=words_of(each), address=each)) for each in of_day)]


def known_addresses(setting: Setting, person: Person, knows: Collection[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the addresses of `known_places` as two lists.

    The first list has the rooms that the resident knows and may use. It has a house itself if the resident knows none
    of the rooms in the house. The second list has the other addresses of the resident's usual day.
    """
    asked, of, found = setting.known.get(person.name, (None, (), ([], [])))
    if asked is not person or of != knows:
        found = _known_addresses(setting, person, knows)
        setting.known[person.name] = person, knows, found
    return found


def _known_addresses(setting: Setting, person: Person, knows: Collection[str]) -> tuple[list[str], list[str]]:
    by_level: dict[int, list[str]] = {}
    for address in sorted(knows):
        by_level.setdefault(address.count(":"), []).append(address)
    arenas = by_level.get(2, [])
    within = {each.rpartition(":")[0] for each in arenas}
    every = [*arenas, *(each for each in by_level.get(1, ()) if each not in within)]
    known = [each for each in every if each in setting.addresses and may_use(setting, person, each)]
    of_day = sorted({each.place for each in person.day}.difference(known))
    known.sort(key=lambda each: not is_home(person, each))
    return known, [each for each in of_day if each in setting.addresses]


def is_home(person: Person, place: str) -> bool:
    """Return whether a place is part of a person's home."""
    return sector_of(place) == sector_of(person.home)


def home_to_visit(setting: Setting, name: str) -> str:
    """Return the room in which a resident receives visitors; "": the resident has no home in the town.

    The room is the first of these that exists:
    - a shared room at the entrance of the home,
    - any shared room,
    - the resident's own room.

    A shared room has no resident's bed, and several people may be in it at the same time.
    """
    host = setting.people.get(name)
    if host is None or host.home not in setting.addresses:
        return ""
    beds = {str(setting.addresses[each].upto(ARENA)) for p in setting.people.values() if (each := bed_of(setting, p))}
    shared = [each for each in rooms_of(setting, host) if each not in beds and _holds_several(setting, each)]
    own = str(setting.addresses[host.home].upto(ARENA))
    return next((each for each in shared if _is_entrance(setting, each)), shared[0] if shared else own)


def rooms_of(setting: Setting, person: Person) -> list[str]:
    """Return the rooms of a person's home that the person may use, sorted."""
    return [each for each in setting.rooms_in(sector_of(person.home)) if may_use(setting, person, each)]


def _holds_several(setting: Setting, room: str) -> bool:
    """Return whether more than one person may be in a room at the same time."""
    return setting.rules.capacity(setting.addresses[room]) != 1


def _is_entrance(setting: Setting, room: str) -> bool:
    """Return whether one enters the house through a room: one of its spots is next to a spot outside of the house."""
    world, house = setting.world, sector_of(room)
    around = (there for spot in world.spots(setting.addresses[room]) for there in world.near(spot, 1))
    return any(
        world.walkable(each) and not world.address_at(each).is_within(setting.addresses[house]) for each in around
    )


def is_common(setting: Setting, place: Address) -> bool:
    """Return whether everyone may walk through a place at all times, such as a square. This holds if the place is not
    part of a home and has neither owners nor opening hours."""
    rules, house = setting.rules, str(place.upto(min(place.level, SECTOR)))
    return not (setting.homes.get(house) or rules.owners(place) or rules.hours(place))


def hosts_of(setting: Setting, person: Person, place: str) -> frozenset[str]:
    """Return the inhabitants whom a person must visit to be let into a place. Empty if the person may use the place
    without an invitation, if the place is in no home, or if there is no such place."""
    if place not in setting.addresses or may_use(setting, person, place):
        return frozenset()
    return setting.homes.get(sector_of(place), frozenset()) - {person.name}


def avoided_by(turn: ResidentTurn) -> tuple[str, ...]:
    """Return the people that a resident avoids according to the town file, as changed by their meetings since."""
    avoids = {each.name: each.avoids for each in turn.person.relations} | turn.state.avoids
    return tuple(sorted(name for name, holds in avoids.items() if holds and name in turn.setting.people))


def shunned_houses(turn: ResidentTurn) -> frozenset[str]:
    """Return the houses that a resident avoids: the homes and workplaces of the people in `avoided_by`, except the
    resident's own home."""
    avoided = [turn.setting.people[name] for name in avoided_by(turn)]
    places = [place for p in avoided for place in (p.home, *(each.place for each in p.day if each.duty))]
    return frozenset(map(sector_of, places)) - {sector_of(turn.person.home)}


def may_use(setting: Setting, person: Person, place: str) -> bool:
    """Return whether a person may enter a place or use an object without an invitation.

    A place of the usual day may always be used. Else the town file decides. If the file has no rule, the place must be
    outside of all homes, or be in the person's own house but not in another person's room.
    """
    asked, known = setting.uses.get(person.name, (None, {}))
    if asked is not person:  # the cached results are for another description with this name
        known = {}
        setting.uses[person.name] = person, known
    if (may := known.get(place)) is None:
        may = known[place] = _may_use(setting, person, place)
    return may


def _may_use(setting: Setting, person: Person, place: str) -> bool:
    if any(f"{each.place}:".startswith(f"{place}:") for each in person.day):
        return True
    address = setting.addresses[place]
    let_in = setting.rules.lets_in(person.name, address)
    if let_in is not None:
        return let_in
    of_room, of_house = (setting.homes.get(str(address.upto(level)), frozenset()) for level in (3, 2))
    return person.name in of_room or (not of_room and (not of_house or person.name in of_house))


def is_let_in(setting: Setting, person: Person, at: Appointment) -> bool:
    """Return whether a person may go to an appointment: the person, the host or a guest may enter its place.

    An appointment without a place is open to all.
    """
    if at.place not in setting.addresses:
        return not at.place
    those = (person, *(setting.people[name] for name in (at.host, *at.who) if name in setting.people))
    return any(may_use(setting, each, at.place) for each in those)


def hours_on(rules: PlaceRules, address: Address, when: datetime) -> str:
    """Return the opening hours of a place on a day, such as "08:00-20:00" or "closed". "" if the place has no rule
    about hours, or is open the whole day."""
    rule = rules.hours(address)
    if rule is None:
        return ""
    if rule.days is not None and when.weekday() not in rule.days:
        return "closed"
    return ", ".join(f"{clock(each.start)}-{clock(each.end)}" for each in rule.hours or ())


def _is_of_the_town(setting: Setting, person: Person, place: Address) -> bool:
    """Return whether a resident knows this place from the beginning if its description lists no known places. It does
    if the place is not in a home, or if the resident may enter it."""
    address = str(place.upto(3))
    return not setting.homes.get(str(place.upto(2))) or may_use(setting, person, address)


def bed_of(setting: Setting, person: Person) -> str:
    """Return the address where a person sleeps: the bed, or the home if there is no bed."""
    return person.bed if person.bed in setting.addresses else person.home


def find_home(setting: Setting, person: Person) -> tuple[Spot, tuple[str, ...]]:
    """Return a resident's first position and the places that it knows.

    Raises:
        InputError: the world has no such home, or no spot at the bed.
    """
    if person.home not in setting.addresses:
        raise InputError(f"{person.name}: the home {person.home!r} is not a place of {setting.name}")
    home = setting.addresses[person.home].upto(2)
    within = [str(each) for each in setting.world.places if each.is_within(home)]
    told = person.knows or [str(each) for each in setting.world.places if _is_of_the_town(setting, person, each)]
    of_day = [each.place for each in person.day]
    knows = {place for place in (*within, *told, *of_day) if place in setting.addresses}
    knows |= {str(setting.addresses[place].upto(level)) for place in tuple(knows) for level in (2, 3)}
    within_town = tuple(sorted(place for place in knows if ":" in place))
    if person.start is not None:
        return person.start, within_town
    bed = bed_of(setting, person)
    free = [spot for spot in setting.world.spots(setting.addresses[bed]) if setting.world.walkable(spot)]
    if not free:
        raise InputError(f"{person.name}: no resident can stand at {bed!r}, where {person.name} sleeps")
    return free[0], within_town
