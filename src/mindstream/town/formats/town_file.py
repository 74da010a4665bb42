"""A town of one's own in one file: its map, what holds at its places, who lives there (docs/own-town.md)."""

from __future__ import annotations

import difflib
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from mindstream.errors import InputError
from mindstream.town.formats.drawing import Drawing, world_of_drawing
from mindstream.town.formats.files import load_text
from mindstream.town.formats.key_mistakes import Place, describe_mistakes, find_line
from mindstream.town.formats.maps import load_map
from mindstream.town.formats.town_tables import DayTable, MapTable, PlaceTable, ResidentTable, SeedTable, TownTables
from mindstream.town.residents.appointment import Appointment
from mindstream.town.residents.person import DayItem, FirstMemory, Person, Relation
from mindstream.town.world.address import OBJECT, SECTOR, Address, parse_address
from mindstream.town.world.conditions import Conditions
from mindstream.town.world.graph import PlaceWorld, Road, build_places
from mindstream.town.world.hours import DAY_MINUTES, minute_of
from mindstream.town.world.rules import PlaceRule, PlaceRules, parse_days, parse_hours
from mindstream.town.world.tiles import TileWorld
from mindstream.town.world.weather import Weather
from mindstream.town.world.world import Spot

MOST_BYTES = 32_000_000
BED = "bed"
"""The object at home in which a resident sleeps whose key `bed` says nothing."""
T = TypeVar("T")


@dataclass(frozen=True)
class TownFile:
    """A town as its file describes it; residents in the order of the file.

    Attributes:
        start: when the story begins, if the file says so.
    """

    name: str
    start: datetime | None
    world: TileWorld | PlaceWorld
    rules: PlaceRules
    residents: tuple[Person, ...]
    conditions: Conditions
    weather: Weather


class Faults:
    """Collects what is wrong with a town file, so that all of it is reported at once.

    Args:
        text: the file's, in which the lines of faults are found.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.found: list[tuple[int, str]] = []
        self.numbers: dict[str, int] = {}
        """Which of the residents in the file has which name."""

    def add(self, place: Place, said: str) -> None:
        """Note a fault; one that has several lines is as many."""
        line = find_line(self._text, place)
        self.found += [(line, each) for each in said.split("\n") if (line, each) not in self.found]

    def check(self, place: Place, read: Callable[[], T]) -> T | None:
        """Return what is read, or None where it is faulty."""
        try:
            return read()
        except InputError as error:
            self.add(place, str(error))
            return None

    def require_none(self, file: str = "") -> None:
        """Raise InputError with all faults, a line each, as `file:line: what`, if there are any."""
        if self.found:
            at = [f"{file}:{line}: " if line and file else f"line {line}: " if line else "" for line, _ in self.found]
            raise InputError("\n".join(f"{where}{said}" for where, (_, said) in zip(at, self.found, strict=True)))


def load_town(path: Path) -> TownFile:
    """Read a town file.

    Raises:
        InputError: it cannot be read, or something in it cannot be: all faults, with the file and the place in it.
    """
    try:
        return parse_town(load_text(path, MOST_BYTES), path.parent, str(path))
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(str(path)) else f"{path}: {text}") from None


def parse_town(text: str, folder: Path, file: str = "") -> TownFile:
    """Read the text of a town file; maps that it names are beside it, in `folder`.

    Raises:
        InputError: something in it is wrong: all faults, a line each, with the place in it.
    """
    faults = Faults(text)
    tables, names = _parse_tables(text, faults)
    if tables is None:
        faults.require_none(file)
        raise InputError("it cannot be read")
    name = Address((tables.town.name,))
    for each in [each for each, count in names.items() if count > 1]:
        faults.add(("residents",), f"residents: {each!r} stands there twice")
    world = faults.check(("map",), lambda: _build_world(name, tables, folder, faults))
    weather = faults.check(("town", "weather"), lambda: _weather(tables.town.weather))
    if world is None or weather is None:
        faults.require_none(file)
        raise InputError("it cannot be read")
    rules = PlaceRules(_rules(name, tables.places, world, names, faults))
    described = [_describe(each, name, world, names, faults) for each in tables.residents]
    residents = tuple(each for each in described if each is not None)
    faults.check(("map",), lambda: _check_ways(world, residents))
    faults.require_none(file)
    conditions = Conditions(danger=tuple(tables.conditions.danger), fine=tuple(tables.conditions.fine))
    return TownFile(tables.town.name, tables.town.start, world, rules, residents, conditions, weather)


def _weather(said: list[str] | dict[str, str]) -> Weather:
    try:
        return Weather(dates=said) if isinstance(said, dict) else Weather(days=tuple(said))
    except ValidationError:
        raise InputError("town: weather: a date is written as 2024-09-03, with no time") from None


def _parse_tables(text: str, faults: Faults) -> tuple[TownTables | None, Counter[str]]:
    """Return the tables without what is faulty in them, None where too little is left; and all residents' names."""
    try:
        given = tomllib.loads(unicodedata.normalize("NFC", text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is no TOML: {error}") from None
    except RecursionError:
        raise InputError("is nested too deeply") from None
    people = given.get("residents")
    named = [
        (each["name"], number)
        for number, each in enumerate(people if isinstance(people, list) else [])
        if isinstance(each, dict) and isinstance(each.get("name"), str)
    ]
    names, faults.numbers = Counter(name for name, _ in named), dict(named)
    places = {
        id(each): (table, number)
        for table in LISTS
        if isinstance(given.get(table), list)
        for number, each in enumerate(given[table])
    }
    for _ in range(3):
        try:
            return TownTables.model_validate(given), names
        except ValidationError as error:
            for loc, said in describe_mistakes(TownTables, error):
                here = given[loc[0]][loc[1]] if len(loc) > 1 and loc[0] in LISTS and isinstance(loc[1], int) else None
                faults.add((*places.get(id(here), loc[:2]), *loc[2:]), said)
            for loc in sorted({tuple(each["loc"]) for each in error.errors()}, key=str, reverse=True):
                _leave_out(given, loc)
    return None, names


LISTS = ("residents", "places", "roads")
"""Tables of which there are many."""


def _leave_out(given: dict[str, Any], place: Place) -> None:
    """Take away what is faulty: a key of a table; a whole entry of a list, whose other keys are not enough then."""
    holder: Any = given
    for part in place[:-1]:
        inner = holder[part] if isinstance(holder, dict) and part in holder else None
        if isinstance(holder, list) and isinstance(part, int) and part < len(holder):
            inner = holder[part]
        if inner is None:
            break
        if isinstance(inner, list) and len(place) > 1 and place[0] in LISTS and holder is given:
            at = place[1]
            if isinstance(at, int) and at < len(inner) and not _is_extra(inner[at], place):
                del inner[at]
                return
        holder = inner
    if isinstance(holder, dict):
        holder.pop(place[-1], None)


def _is_extra(entry: Any, place: Place) -> bool:
    """Tell whether a fault is of a key of an entry that can do without it."""
    return isinstance(entry, dict) and len(place) == 3 and place[2] in entry and place[2] not in ("name", "age", "home")


def _build_world(name: Address, tables: TownTables, folder: Path, faults: Faults) -> TileWorld | PlaceWorld:
    if (tables.map is not None) == bool(tables.roads):
        raise InputError("a town has either a [map] or [[roads]]")
    if tables.map is None:
        roads = [
            Road(_address(name, each.start, "roads"), _address(name, each.end, "roads"), each.steps)
            for each in tables.roads
        ]
        places = [_address(name, each.address, "places") for each in tables.places]
        things = [
            place.child(thing) for place, each in zip(places, tables.places, strict=True) for thing in each.objects
        ]
        return build_places(name, [*places, *things], roads)
    try:
        found = list[str]()
        world = _build_map(name, tables.map, folder, found)
    except InputError as error:
        raise InputError("\n".join(f"map: {each}" for each in str(error).split("\n"))) from None
    for each in found:
        faults.add(("map", "things"), f"map: {each}")
    return world


def _build_map(name: Address, table: MapTable, folder: Path, faults: list[str]) -> TileWorld:
    if bool(table.rows) == bool(table.file):
        raise InputError("either rows or a file is wanted")
    if table.file:
        tables = _beside(folder, table.tables) if table.tables else None
        world = load_map(_beside(folder, table.file), tables, frozenset(table.skip))
        if world.name != name.last:
            raise InputError(f"the world of {table.file} is called {world.name!r}, and the town {name.last!r}")
        return world
    drawing = Drawing(
        rows=tuple(table.rows.strip("\n").split("\n")),
        things=tuple(table.things.strip("\n").split("\n")) if table.things else (),
        wall=table.wall,
        ground=table.ground,
        places={mark: _address(name, text, "places") for mark, text in table.places.items()},
        objects=table.objects,
        spawns=table.spawns,
    )
    return world_of_drawing(name, drawing, faults)


def _beside(folder: Path, name: str) -> Path:
    """Return a file that a town file names; whoever is handed a town is not made to read what lies elsewhere."""
    path = Path(name)
    if path.is_absolute() or ".." in path.parts:
        raise InputError(f"{name!r:.99} is not beside the town file")
    return folder / path


def _rules(
    name: Address, tables: list[PlaceTable], world: TileWorld | PlaceWorld, residents: Collection[str], faults: Faults
) -> Mapping[Address, PlaceRule]:
    rules: dict[Address, PlaceRule] = {}
    for number, table in enumerate(tables, start=1):
        where = f"places.{number} ({table.address})"
        try:
            address = _address(name, table.address, "address")
            world.spots(address)
            if address in rules:
                raise InputError("the place stands there twice")
            if table.objects and isinstance(world, TileWorld):
                raise InputError("objects are drawn on a map, not listed")
            for owner in table.owners or ():
                _check_resident(owner, residents)
            rules[address] = PlaceRule(
                parse_hours(table.hours) if table.hours is not None else None,
                parse_days(table.days) if table.days is not None else None,
                table.capacity,
                frozenset(table.owners) if table.owners is not None else None,
                table.public,
                tuple(table.purpose) if table.purpose is not None else None,
            )
        except InputError as error:
            faults.add(("places", number - 1), f"{where}: {error}")
    return rules


def _describe(
    table: ResidentTable, name: Address, world: TileWorld | PlaceWorld, residents: Collection[str], faults: Faults
) -> Person | None:
    """Return a resident; None where that cannot be."""
    number = faults.numbers.get(table.name, 0)

    def check(key: str, read: Callable[[], T]) -> T | None:
        def named() -> T:
            try:
                return read()
            except InputError as error:
                raise InputError(f"residents: {table.name}: {error}") from None

        return faults.check(("residents", number, key), named)

    def find_start() -> tuple[Address, Address, tuple[Spot, ...]]:
        home = _address(name, table.home, "home")
        start = _address(name, table.start, "start") if table.start else home
        spots = world.spots(start)
        if not world.spots(home) or not spots:
            raise InputError(f"nobody can stand at {str(start if not spots else home)!r}")
        return home, start, tuple(spots)

    def find_known(text: str) -> Address:
        address = _address(name, text, "knows")
        world.number(address)
        return address

    def check_relation(who: str) -> None:
        _check_resident(who, residents)
        if who == table.name:
            raise InputError("relations: with themselves")

    knows = [each for text in table.knows if (each := check("knows", partial(find_known, text)))]
    for relation in table.relations:
        check("relations", partial(check_relation, relation.who))
    if (placed := check("home", find_start)) is None:
        return None
    home, start, spots = placed
    bed = check("bed", lambda: _bed(table, home, start, world)) or ""
    day = tuple(item for each in table.day if (item := check("day", partial(_day_item, each, home, world))))
    memories = tuple(
        memory
        for each in table.seeds
        if (memory := check("seeds", partial(_first_memory, each, home, world, residents)))
    )
    return Person(
        name=table.name,
        age=table.age,
        innate=table.innate,
        learned=table.learned,
        currently=table.currently,
        lifestyle=table.lifestyle,
        routine=table.routine,
        home=str(home),
        bed=bed,
        day=day,
        start=_first_spot(world, spots),
        knows=tuple(map(str, knows)),
        household=tuple(table.household),
        relations=tuple(Relation(each.who, each.kind) for each in table.relations),
        about=table.about,
        memories=memories,
    )


def _bed(table: ResidentTable, home: Address, start: Address, world: TileWorld | PlaceWorld) -> str:
    """Return where a resident sleeps: as the file says; else where it stands first, if that is an object at home; else
    in an object that is called BED, in the room or in the house; "": nowhere.
    """
    if table.bed:
        return _find_place(table.bed, home, world, "bed")
    if start.level == OBJECT and start.is_within(home):
        return str(start)
    beds = [each for each in world.places if each.last == BED and each.level == OBJECT]
    near = [each for at in (home, home.upto(SECTOR)) for each in beds if each.is_within(at) and world.spots(each)]
    return str(near[0]) if near else ""


def _day_item(table: DayTable, home: Address, world: TileWorld | PlaceWorld) -> DayItem:
    try:
        start, end, on = minute_of(table.start), minute_of(table.end), sorted(parse_days(table.on))
        if start in (end, DAY_MINUTES):
            raise InputError("it takes no time")
        place = _find_place(table.where, home, world, "where") if table.where else str(home)
    except InputError as error:
        raise InputError(f"day: {table.start} {table.what}: {error}") from None
    return DayItem(start=start, end=end, what=table.what, place=place, on=tuple(on), duty=table.duty)


def _first_memory(
    table: SeedTable, home: Address, world: TileWorld | PlaceWorld, residents: Collection[str]
) -> FirstMemory:
    """Return a memory, with its appointment where it tells of one."""
    begin, end, given = table.start, table.end, (table.what, table.start, table.end)
    if not any((*given, table.where, table.host, table.who)):
        return FirstMemory(text=table.text, weight=table.weight, secret=table.secret)
    try:
        if begin is None or end is None or not table.what:
            raise InputError("an appointment needs what, from and to")
        for name in (*table.who, *([table.host] if table.host else [])):
            _check_resident(name, residents)
        place = _find_place(table.where, home, world, "where") if table.where else ""
        agreed = Appointment(what=table.what, place=place, start=begin, end=end, host=table.host, who=tuple(table.who))
        if agreed.end <= agreed.start:
            raise InputError("it ends before it begins")
    except InputError as error:
        raise InputError(f"seeds: {table.text:.60}: {error}") from None
    return FirstMemory(text=table.text, weight=table.weight, appointment=agreed, secret=table.secret)


def _find_place(text: str, home: Address, world: TileWorld | PlaceWorld, where: str) -> str:
    """Read an address; what begins with no place of the town is looked for at home, in the room and in the house."""
    town = Address((home.names[0],))
    address = _address(town, text, where)
    inner = address.names[1:]
    within = [Address((*at.names, *inner)) for at in (home, home.upto(SECTOR)) if at.level + len(inner) <= OBJECT]
    for each in (address, *within):
        if each in world.places and world.spots(each):  # asking for one that is not there would look for a like name
            return str(each)
    world.number(address)
    raise InputError(f"{where}: nobody can stand at {text!r}")


def _first_spot(world: TileWorld | PlaceWorld, spots: tuple[Spot, ...]) -> Spot:
    """Return the first spot that is a spawn point, else the first."""
    spawns = world.spawns if isinstance(world, TileWorld) else {}
    return next((spot for spot in spots if spot in spawns), spots[0])


def _check_ways(world: TileWorld | PlaceWorld, residents: tuple[Person, ...]) -> None:
    """Refuse a town where somebody cannot reach a place that has been given a name."""
    placed = [(each, each.start) for each in residents if each.start is not None]
    if not placed:
        return
    first, begin = placed[0]
    for address in world.places:
        if not world.routes.is_reachable(begin, address):
            raise InputError(f"map: nobody can come to {str(address)!r} from {begin}, where {first.name} is")
    for resident, start in placed:
        if not world.routes.is_reachable(begin, start):
            raise InputError(f"residents: {resident.name}: there is no way from {start} to {first.home!r}")


def _address(world: Address, text: str, where: str) -> Address:
    """Read an address with or without the world's name before it."""
    try:
        address = parse_address(text)
        return address if address.is_within(world) else Address((*world.names, *address.names))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _check_resident(name: str, residents: Collection[str]) -> None:
    if name not in residents:
        near = difflib.get_close_matches(name, residents, 1)
        raise InputError(f"no resident is called {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
