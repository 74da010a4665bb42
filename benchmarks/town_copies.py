"""A town with many residents: copies of a town's map and residents side by side on one map, with a street between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mindstream_town.residents.person import Person, Relation
from mindstream_town.setting import Setting
from mindstream_town.world.rules import PlaceRules
from mindstream_town.world.tiles import TileWorld, build_tiles
from mindstream_town.world.tree import Address

ACROSS = 4


def copied_in_one(setting: Setting, copies: int) -> Setting:
    """Return a town of `count` copies; the names of its places and residents end in the copy's number."""
    world = setting.world
    assert isinstance(world, TileWorld)
    across = min(ACROSS, copies)
    down = -(-copies // across)
    width, height = across * (world.width + 1), down * (world.height + 1)
    walls, narrowest = bytearray(), list[Address | None]()
    for y in range(height):
        for x in range(width):
            number, (i, j) = (
                y // (world.height + 1) * across + x // (world.width + 1),
                (x % (world.width + 1), y % (world.height + 1)),
            )
            is_street = i == world.width or j == world.height or number >= copies
            cell = j * world.width + i
            walls.append(0 if is_street else world.walls[cell])
            narrowest.append(None if is_street else _named(world.places[world.here[cell]], number))
    people = {}
    for number in range(copies):
        x, y = number % across * (world.width + 1), number // across * (world.height + 1)
        for person in setting.people.values():
            copy = _copied(person, number, (x, y))
            people[copy.name] = copy
    rules = PlaceRules(
        {
            named: replace(rule, owners=rule.owners and frozenset(_name(owner, number) for owner in rule.owners))
            for address, rule in setting.rules for number in range(copies)
            if (named := _named(address, number)) is not None
        }
    )  # fmt: skip
    tiles = build_tiles(world.places[0], (width, height), bytes(walls), narrowest)
    return replace(setting, world=tiles, people=people, rules=rules, _near={})


def _name(name: str, number: int) -> str:
    return f"{name} {number + 1}"


def _named(address: Address, number: int) -> Address | None:
    world, *names = address.names
    return Address((world, _name(names[0], number), *names[1:])) if names else None


def _copied(person: Person, number: int, origin: tuple[int, int]) -> Person:
    def moved(place: str) -> str:
        world, sector, *rest = place.split(":")
        return ":".join((world, _name(sector, number), *rest))

    changed: Mapping[str, object] = {
        "name": _name(person.name, number),
        "home": moved(person.home),
        "start": person.start and (person.start[0] + origin[0], person.start[1] + origin[1]),
        "knows": tuple(moved(place) for place in person.knows if place.count(":")),
        "relations": tuple(Relation(_name(each.name, number), each.what) for each in person.relations),
    }
    return person.model_copy(update=dict(changed))
