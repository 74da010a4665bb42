"""Places as residents speak of them, and where something is done: of what a resident knows, never from afar."""

from __future__ import annotations

from functools import cache

from mindstream.errors import InputError
from mindstream.town.person import Person
from mindstream.town.rules.things import thing_for
from mindstream.town.setting import Setting
from mindstream.town.turn import Turn
from mindstream.town.world.address import OBJECT
from mindstream.town.world.world import Spot


@cache
def words_of(place: str) -> str:
    """Say a place in words: `stove in the kitchen of the Lin family's house`."""
    _, *names = place.split(":")
    if not names:
        return place
    said = names[-1].strip()
    for name in reversed(names[:-1]):
        said += f" {'in the' if name is names[-2] and len(names) == 3 else 'of'} {name.strip()}"
    return said


def things_around(turn: Turn, place: str) -> tuple[str, ...]:
    """Name the objects that a resident knows in the sector of a place, those of the place's own arena first."""
    address = turn.setting.addresses.get(place)
    if address is None:
        return ()
    sector, arena = str(address.upto(2)), str(address.upto(3))
    known = [each for each in turn.setting.objects_in(sector) if each in turn.state.knows]
    return tuple(sorted(known, key=lambda each: not each.startswith(arena + ":")))


def find_place(turn: Turn, what: str, place: str) -> str:
    """Return the object at which something is done in a place; the place itself where none comes to mind."""
    address = turn.setting.addresses.get(place)
    if address is None or address.level == OBJECT:
        return place
    known = [each for each in turn.setting.objects_in(place) if each in turn.state.knows]
    return thing_for(what, known) or place


def find_home(setting: Setting, person: Person) -> tuple[Spot, tuple[str, ...]]:
    """Return where a resident stands when the town begins, at its bed where it has one, and which places it knows.

    Raises:
        InputError: the world has no such home, or nobody can get there.
    """
    if person.home not in setting.addresses:
        raise InputError(f"{person.name} lives at {person.home!r}, and {setting.name} has no such place")
    within = [str(each) for each in setting.world.places if each.is_within(setting.addresses[person.home].upto(2))]
    knows = {place for place in (*within, *person.knows) if place in setting.addresses}
    knows |= {str(setting.addresses[place].upto(level)) for place in tuple(knows) for level in (2, 3)}
    if person.start is not None:
        return person.start, tuple(sorted(place for place in knows if place.count(":")))
    objects = setting.objects_in(person.home)
    bed = next((each for each in objects if "bed" in each.rsplit(":", 1)[-1]), person.home)
    free = [spot for spot in setting.world.spots(setting.addresses[bed]) if setting.world.walkable(spot)]
    if not free:
        raise InputError(f"nobody can stand at {bed!r}, where {person.name} is to sleep")
    return free[0], tuple(sorted(place for place in knows if place.count(":")))
