"""Decide which places a controlled resident may enter, and where visitors enter the town."""

from __future__ import annotations

from mindstream.errors import InputError
from mindstream_town.embody.happened import OpenTown
from mindstream_town.embody.living import WAYS, Way
from mindstream_town.inspect.lookup import find_place
from mindstream_town.residents.person import Person
from mindstream_town.residents.places import may_use, words_of
from mindstream_town.world.tiles import TileWorld
from mindstream_town.world.tree import ARENA, WORLD, Spot


def find_entrance(town: OpenTown, person: Person, typed: str) -> str:
    """Return the place where a visitor enters: the typed place, or a public one that is open.

    Raises:
        InputError: there is no such place, the visitor may not enter it now, or no public place is open.
    """
    setting = town.setting
    if typed:
        return find_open_place(town, person, typed)
    when = setting.when(max(town.step, 0))
    open_to_all = [
        str(each)
        for each in setting.world.places
        if each.level == ARENA and may_use(setting, person, str(each)) and setting.rules.is_open(each, when)
    ]
    if not open_to_all:
        raise InputError(
            f"no public place in {setting.name} is open now: wait, or name a place with --at where a resident can let"
            " you in"
        )
    return open_to_all[0]


def find_open_place(town: OpenTown, person: Person, typed: str) -> str:
    """Return the address of the typed place, if the person may enter it now.

    Raises:
        InputError: there is no such place, it is closed, or it is private and no resident is there to admit the person.
    """
    setting, place = town.setting, find_place(town.setting, typed)
    address = setting.addresses[place]
    if not may_use(setting, person, place) and not _is_let_in(town, person, place):
        raise InputError(f"{words_of(place)} is not open to you, and no resident is there to let you in")
    when = setting.when(max(town.step, 0))
    if person.name not in setting.rules.owners(address) and not setting.rules.is_open(address, when):
        raise InputError(f"{words_of(place)} is closed now")
    return place


def find_beside(town: OpenTown, person: Person, spot: Spot, way: Way) -> Spot:
    """Return the neighbouring spot in a direction, if the person can enter it now.

    Raises:
        InputError: a wall, or a closed or private place is there; or the town has no map of tiles.
    """
    world = town.setting.world
    if not isinstance(world, TileWorld):
        raise InputError(f"{town.setting.name} has no map of tiles, so single steps are not possible: go to a place")
    there = (spot[0] + WAYS[way][0], spot[1] + WAYS[way][1])
    if not world.walkable(there):
        raise InputError("a wall blocks this direction")
    place = world.address_at(there)
    if place.level > WORLD and world.arena_of(there) != world.arena_of(spot):
        find_open_place(town, person, str(place.upto(ARENA)))
    return there


def _is_let_in(town: OpenTown, person: Person, place: str) -> bool:
    """Return whether a resident who may use the place is awake in the house, and so can let the person in."""
    setting, step = town.setting, max(town.step, 0)
    house = setting.addresses[place].upto(2)
    return any(
        name != person.name
        and not other.state.asleep
        and may_use(setting, other.person, place)
        and setting.world.address_at(other.state.spot(step)).is_within(house)
        for name, other in town.residents.items()
    )
