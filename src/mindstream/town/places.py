"""Places as residents speak of them, and where something is done: of what a resident knows, never from afar."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from functools import cache

from mindstream.errors import InputError
from mindstream.town.person import Person
from mindstream.town.prompts.plan_day import Place
from mindstream.town.rules.things import thing_for, without_place
from mindstream.town.rules.where import PUBLIC, is_open, purposes_of
from mindstream.town.setting import Setting
from mindstream.town.turn import Turn
from mindstream.town.world.address import OBJECT, Address, sector_of
from mindstream.town.world.hours import clock
from mindstream.town.world.rules import PlaceRule
from mindstream.town.world.world import Spot


@cache
def words_of(place: str) -> str:
    """Say a place in words: `stove in the kitchen of the Lin family's house`."""
    _, *names = place.split(":")
    if not names:
        return place
    said = names[-1].strip()
    for name in reversed(names[:-1]):
        said += f" {_joint(name) if name is names[-2] and len(names) == 3 else 'of'} {name.strip()}"
    return said


def with_article(words: str) -> str:
    """Put "the" before a place, where its words begin with no name: `the stove in …`, `Ada Brook's room`."""
    return words if words[:1].isupper() or words.startswith("the ") else f"the {words}"


def _joint(room: str) -> str:
    return "in" if room.strip()[:1].isupper() or room.strip().startswith("the ") else "in the"


def things_around(turn: Turn, place: str) -> tuple[str, ...]:
    """Name the objects that a resident knows and may use around a place, those of the place's own arena first."""
    address = turn.setting.addresses.get(place)
    if address is None:
        return ()
    sector, arena = str(address.upto(2)), str(address.upto(3))
    known = [each for each in turn.setting.objects_in(sector) if each in turn.state.knows]
    usable = {str(turn.setting.addresses[each].upto(3)) for each in known}
    usable = {each for each in usable if each == arena or may_use(turn.setting, turn.person, each)}
    mine = [each for each in known if each.rpartition(":")[0] in usable]
    return tuple(sorted(mine, key=lambda each: not each.startswith(arena + ":")))


def things_open(turn: Turn, purpose: str) -> tuple[str, ...]:
    """Name the objects that a resident knows in places for a purpose ("shop", "eat") that are open, not at home."""
    when = turn.setting.when(turn.step)
    minute = when.hour * 60 + when.minute
    return tuple(
        thing
        for address, place in known_places(turn.setting, turn.person, turn.state.knows, when)
        if not place.home and purpose in purposes_of(place) and is_open(place, minute, minute + 30)
        for thing in turn.setting.objects_in(address) if thing in turn.state.knows
    )  # fmt: skip


def known_places(setting: Setting, person: Person, knows: Collection[str], when: datetime) -> list[tuple[str, Place]]:
    """Return the places that a resident knows and may go to, its own first, each as it is told in a prompt."""
    rules = dict(setting.rules)
    arenas = [each for each in sorted(knows) if each.count(":") == 2]
    within = {each.rpartition(":")[0] for each in arenas}
    found = []
    for address in [*arenas, *(each for each in sorted(knows) if each.count(":") == 1 and each not in within)]:
        if address not in setting.addresses or not may_use(setting, person, address):
            continue
        things = tuple(each.rpartition(":")[2] for each in setting.objects_in(address) if each in knows)
        home = is_home(person, address)
        hours = hours_on(rules, setting.addresses[address], when)
        own = person.name in setting.rules.owners(setting.addresses[address])
        found.append((address, Place(words=words_of(address), things=things, home=home, own=own, hours=hours)))
    return sorted(found, key=lambda each: not each[1].home)


def is_home(person: Person, place: str) -> bool:
    """Tell whether a place belongs to where somebody lives."""
    return sector_of(place) == sector_of(person.home)


def may_use(setting: Setting, person: Person, place: str) -> bool:
    """Tell whether somebody may go to an arena or a sector unasked: it is no home and no room of others."""
    owners = setting.rules.owners(setting.addresses[place])
    if owners:
        return person.name in owners
    live_there = setting.homes.get(place, frozenset())
    if place == person.home or person.name in live_there:
        return True
    name = place.rpartition(":")[2]
    of, possessive, _ = name.partition("'s ")
    if live_there or (possessive and of != person.name and of in setting.people) or not _suits(name, person):
        return False
    sector = sector_of(place)
    if person.name in setting.homes.get(sector, frozenset()) or not setting.homes.get(sector):
        return True
    return bool(set(purposes_of(Place(words=name))) & set(PUBLIC))  # a shop in the house where its owner lives


def _suits(name: str, person: Person) -> bool:
    """Tell whether a room for men or for women is for this person, as far as its description says."""
    words = set(name.lower().replace("'", " ").split())
    said = set(f"{person.learned} {person.currently} {person.lifestyle}".lower().split())
    if words & {"man", "men", "mens", "gents", "boys"}:
        return not (said & {"she", "her"}) or bool(said & {"he", "his"})
    if words & {"woman", "women", "womens", "ladies", "girls"}:
        return not (said & {"he", "his"}) or bool(said & {"she", "her"})
    return True


def hours_on(rules: Mapping[Address, PlaceRule], address: Address, when: datetime) -> str:
    """Say when a place is open on a day: "08:00-20:00", "closed"; "" where nobody says or always."""
    for level in range(address.level, 0, -1):
        rule = rules.get(address.upto(level))
        if rule is not None and rule.hours is not None:
            if rule.days is not None and when.weekday() not in rule.days:
                return "closed"
            return ", ".join(f"{clock(each.start)}-{clock(each.end)}" for each in rule.hours)
    return ""


def _is_of_the_town(setting: Setting, person: Person, place: Address) -> bool:
    """Tell whether everybody who lives in a town knows a place of it: it is nobody's home, or anybody may go there."""
    address = str(place.upto(3))
    return not setting.homes.get(str(place.upto(2))) or may_use(setting, person, address)


def find_place(turn: Turn, what: str, place: str) -> str:
    """Return the object at which something is done in a place; the place itself where none comes to mind."""
    address = turn.setting.addresses.get(place)
    if address is None or address.level == OBJECT:
        return place
    known = [each for each in turn.setting.objects_in(place) if each in turn.state.knows]
    return thing_for(without_place(what, words_of(place)), known, guest=not is_home(turn.person, place)) or place


def bed_of(setting: Setting, person: Person) -> str:
    """Return where somebody sleeps: its bed, those who live together each at one as far as they go, else its home."""
    beds = [
        each for each in setting.objects_in(person.home)
        if "bed" in each.rpartition(":")[2].split() and may_use(setting, person, each.rpartition(":")[0])
    ]  # fmt: skip
    together = sorted(setting.homes.get(person.home, frozenset()))
    return beds[together.index(person.name) % len(beds)] if beds and person.name in together else person.home


def find_home(setting: Setting, person: Person) -> tuple[Spot, tuple[str, ...]]:
    """Return where a resident stands when the town begins, at its bed where it has one, and which places it knows.

    Raises:
        InputError: the world has no such home, or nobody can get there.
    """
    if person.home not in setting.addresses:
        raise InputError(f"{person.name} lives at {person.home!r}, and {setting.name} has no such place")
    home = setting.addresses[person.home].upto(2)
    within = [str(each) for each in setting.world.places if each.is_within(home)]
    told = person.knows or [str(each) for each in setting.world.places if _is_of_the_town(setting, person, each)]
    knows = {place for place in (*within, *told) if place in setting.addresses}
    knows |= {str(setting.addresses[place].upto(level)) for place in tuple(knows) for level in (2, 3)}
    if person.start is not None:
        return person.start, tuple(sorted(place for place in knows if place.count(":")))
    bed = bed_of(setting, person)
    free = [spot for spot in setting.world.spots(setting.addresses[bed]) if setting.world.walkable(spot)]
    if not free:
        raise InputError(f"nobody can stand at {bed!r}, where {person.name} is to sleep")
    return free[0], tuple(sorted(place for place in knows if place.count(":")))
