"""The stored text of a town's description, and the check that it has the keys that a town without a model needs."""

from __future__ import annotations

import base64
import json
import zlib
from array import array
from collections.abc import Mapping
from datetime import UTC
from typing import Any

from mindstream.errors import InputError
from mindstream_town.formats.town_file import TownFile
from mindstream_town.profile import Profile
from mindstream_town.residents.person import Person
from mindstream_town.setting import START, Setting
from mindstream_town.world.graph import PlaceWorld, Road, build_places
from mindstream_town.world.rules import Hours, PlaceRule, PlaceRules
from mindstream_town.world.tiles import TileWorld
from mindstream_town.world.tree import ARENA, Address, parse_address
from mindstream_town.world.world import Conditions, Weather, World

MOST = 64_000_000
"""Maximum bytes of an unpacked map."""


def setting_of(town: TownFile, *, seed: int = 0, profile: Profile | None = None) -> Setting:
    """Return the setting of a new town from its file."""
    start = START if town.start is None else town.start.replace(tzinfo=town.start.tzinfo or UTC).timestamp()
    people = {person.name: person for person in town.residents}
    return Setting(
        town.name, town.world, people, town.rules, profile or Profile(), seed, start, town.conditions, town.weather
    )


def dump_source(setting: Setting) -> str:
    """Return a town's world, rules, conditions, people and weather as JSON."""
    weather = setting.weather.model_dump(mode="json", exclude_defaults=True)
    source = {
        "name": setting.name,
        "world": _dump_world(setting.world),
        "rules": [[str(address), _dump_rule(rule)] for address, rule in setting.rules],
        "conditions": setting.conditions.model_dump(exclude_defaults=True),
        "people": [person.model_dump(mode="json", exclude_defaults=True) for person in setting.people.values()],
    } | ({"weather": weather} if weather else {})
    return json.dumps(source, ensure_ascii=False, separators=(",", ":"))


def load_source(text: str, *, seed: int, profile: Profile, start: float) -> Setting:
    """Parse the result of `dump_source`.

    Raises:
        InputError: the text is damaged.
    """
    try:
        source = json.loads(text)
        world = _load_world(source["name"], source["world"])
        rules = {parse_address(address): _load_rule(rule) for address, rule in source["rules"]}
        conditions = Conditions.model_validate(source.get("conditions", {}))
        weather = Weather.model_validate(source.get("weather", {}))
        people = [Person.model_validate(person) for person in source["people"]]
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise InputError(f"the stored description of the town is damaged ({error}): create the town again") from None
    named = {person.name: person for person in people}
    return Setting(source["name"], world, named, PlaceRules(rules), profile, seed, start, conditions, weather)


def _dump_world(world: World) -> dict[str, Any]:
    if isinstance(world, PlaceWorld):
        return {
            "places": [str(place) for place in world.places],
            "roads": [[str(road.start), str(road.end), road.steps] for road in world.roads],
        }
    return {
        "width": world.width,
        "height": world.height,
        "walls": _pack(world.walls),
        "here": _pack(world.here.tobytes()),
        "places": [str(place) for place in world.places],
        "spawns": [[*spot, name] for spot, name in world.spawns.items()],
    }


def _load_world(name: str, kept: Mapping[str, Any]) -> World:
    places = tuple(parse_address(place) for place in kept["places"])
    if "roads" in kept:
        roads = [Road(parse_address(a), parse_address(b), int(steps)) for a, b, steps in kept["roads"]]
        return build_places(Address((name,)), places, roads)
    numbers = {place: number for number, place in enumerate(places)}
    here = array("H")
    here.frombytes(_unpack(kept["here"]))
    arenas = [numbers[place.upto(ARENA)] for place in places]
    return TileWorld(
        name=name,
        width=int(kept["width"]),
        height=int(kept["height"]),
        walls=_unpack(kept["walls"]),
        places=places,
        here=here,
        arenas=array("H", [arenas[place] for place in here]),
        spawns={(x, y): spawn for x, y, spawn in kept["spawns"]},
    )


def _dump_rule(rule: PlaceRule) -> dict[str, Any]:
    return {
        "hours": None if rule.hours is None else [[each.start, each.end] for each in rule.hours],
        "days": None if rule.days is None else sorted(rule.days),
        "capacity": rule.capacity,
        "owners": None if rule.owners is None else sorted(rule.owners),
        "public": rule.public,
        "purpose": rule.purpose,
    }


def _load_rule(kept: Mapping[str, Any]) -> PlaceRule:
    hours, days, owners, purpose = kept["hours"], kept["days"], kept["owners"], kept.get("purpose")
    return PlaceRule(
        None if hours is None else tuple(Hours(*each) for each in hours),
        None if days is None else frozenset(days),
        kept["capacity"],
        None if owners is None else frozenset(owners),
        kept.get("public"),
        None if purpose is None else tuple(purpose),
    )


def _pack(data: bytes) -> str:
    return base64.b85encode(zlib.compress(data, 9)).decode()


def _unpack(text: str) -> bytes:
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(base64.b85decode(text), MOST)
    if unpacker.unconsumed_tail:
        raise ValueError(f"the map is larger than {MOST:,} bytes")
    return data


def missing_keys(setting: Setting) -> tuple[str, ...]:
    """Return the keys that a town without a model needs and that the town file lacks.

    Without `day`, a resident is at home from 7:00 to 23:00. Without `danger`, a fire is treated like any other
    condition.
    """
    people = setting.people.values()
    idle = [person.name for person in people if not person.day]
    bedless = [person.name for person in people if not person.bed]
    lacking = [f"{key} of {_names(names)}" for key, names in (("day", idle), ("bed", bedless)) if names]
    if not setting.conditions.danger:
        lacking.append("danger of [conditions]")
    if not any(rule.purpose for _, rule in setting.rules):
        lacking.append("purpose of places (eat, shop)")
    return tuple(lacking)


def _names(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
