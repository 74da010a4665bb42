"""A town file: map, rules of places, and residents (docs/own-town.md)."""

from __future__ import annotations

import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, cast, get_args

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    Strict,
    TypeAdapter,
    ValidationError,
    field_validator,
)

from mindstream.errors import InputError, prefixed
from mindstream.guidance import nearest
from mindstream.json_values import JsonObject
from mindstream_town.formats.files import expect_object, load_text, named_once
from mindstream_town.formats.maps import BED, Drawing, draw_places, load_map, world_of_drawing
from mindstream_town.residents.person import Appointment, DayItem, FirstMemory, Person, Relation
from mindstream_town.world.graph import Road, build_places
from mindstream_town.world.rules import PlaceRule, PlaceRules, parse_days, parse_hours
from mindstream_town.world.tiles import TileWorld
from mindstream_town.world.tree import OBJECT, SECTOR, Address, Spot, parse_address
from mindstream_town.world.world import DAY_MINUTES, Conditions, Weather, World, minute_of

MOST_RESIDENTS, MOST_LINES = 10_000, 1_000
ShortText = Annotated[str, Field(min_length=1, max_length=1_000)]
Paragraph = Annotated[str, Field(max_length=20_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Clock = Annotated[str, Field(pattern=r"^([01]?\d|2[0-4]):[0-5]\d$")]
Mark = Annotated[str, Field(min_length=1, max_length=1)]
Marks = Annotated[str, Field(min_length=1, max_length=20)]


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


class _Describing(ModelMetaclass):
    """Makes constructors of tables raise InputError with the same sentences as for a town file. For nested tables
    pydantic does not call these constructors."""

    if not TYPE_CHECKING:

        def __call__(cls, *args: Any, **given: Any) -> Any:  # noqa: N805 (in a metaclass, the first argument is a class)
            try:
                return super().__call__(*args, **given)
            except ValidationError as error:
                said = "; ".join(said for _, said in describe_mistakes(cls, error))
                raise InputError(f"{cls.__name__}(…): {said}") from None


class Table(BaseModel, metaclass=_Describing):
    """A table of a town file; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class TownTable(Table):
    """`[town]`: name, start, and weather by day of the town or by date."""

    name: Name
    start: datetime | None = None
    weather: list[Name] | dict[str, Name] = Field(default_factory=list, max_length=MOST_LINES)


class MapTable(Table):
    """`[map]`: a drawing, or the path of a map file in the folder of the town file."""

    rows: str = ""
    things: str = ""
    wall: Marks = "#"
    ground: Mark = "."
    places: dict[str, ShortText] = Field(default_factory=dict)
    objects: dict[str, Name] = Field(default_factory=dict)
    spawns: dict[str, Name] = Field(default_factory=dict)
    file: str = ""
    tables: str = ""
    skip: list[int] = Field(default_factory=list)


class RoadTable(Table):
    """`[[roads]]`: a road between two places, for a town without a map of tiles."""

    start: ShortText = Field(alias="from")
    end: ShortText = Field(alias="to")
    steps: int = Field(ge=1)


class Place(Table):
    """A place of a town: `[[places]]` in a town file.

    Attributes:
        name: name of a house, shop or square, or an address such as `Mill House:bathroom`; a town file may use the key
            `address` instead.
        hours: opening hours, such as `08:00-12:00, 14:00-18:00`; None: the hours of the surrounding place. If no
            surrounding place has hours, the place is always open.
        days: weekdays (in English) on which `hours` begin; None: all days.
        capacity: maximum number of residents in the place.
        owners: residents who may always enter; others need an invitation.
        public: True: open to all in spite of owners or inhabitants; False: open only to owners and to residents whose
            usual day includes the place; None: `owners` decides. Without owners, a home is open only to its
            inhabitants, and any other place to all.
        purpose: `eat`, `shop`: residents can eat out or buy something there; other words are only read by models.
        objects: objects in the place; not allowed with a drawn map.
    """

    name: ShortText = Field(validation_alias=AliasChoices("name", "address"))
    hours: str | None = None
    days: list[str] | None = None
    capacity: int | None = Field(default=None, ge=1)
    owners: list[Name] | None = None
    public: bool | None = None
    purpose: list[Name] | None = None
    objects: list[Name] = Field(default_factory=list)


class ConditionsTable(Table):
    """`[conditions]`: conditions of objects, in words. `danger`: dangerous conditions. `fine`: conditions that need no
    action."""

    danger: list[Name] = Field(default_factory=list, max_length=MOST_LINES)
    fine: list[Name] = Field(default_factory=list, max_length=MOST_LINES)


class DayTable(Table):
    """A part of a resident's usual day."""

    start: Clock = Field(alias="from")
    end: Clock = Field(alias="to")
    what: Name
    where: str = ""
    on: list[str] = Field(default_factory=list)
    duty: bool = False


class SeedTable(Table):
    """A memory from before the town began; with `what`, `from` and `to` it is also an appointment."""

    text: ShortText
    weight: int = Field(0, ge=0, le=10)
    secret: bool = False
    what: str = ""
    where: str = ""
    start: datetime | None = Field(None, alias="from")
    end: datetime | None = Field(None, alias="to")
    host: str = ""
    who: list[Name] = Field(default_factory=list)


if TYPE_CHECKING:  # constructors also accept texts and rows; validators convert them into tables
    Days: TypeAlias = Sequence[DayTable | tuple[str, str, str] | tuple[str, str, str, str]]
    Seeds: TypeAlias = Sequence[SeedTable | str | Mapping[str, object]]
else:
    Days, Seeds = list[DayTable], list[SeedTable]


class RelationTable(Table):
    """A person whom the resident knows at the beginning."""

    who: Name
    kind: Name = Field(alias="as")
    avoids: bool = False


class Resident(Table):
    """A resident of a town: `[[residents]]` in a town file.

    Without a model, only `home`, `bed`, `start`, `work`, `day`, `knows`, `relations` and `seeds` have an effect.

    Attributes:
        name: first and last name.
        age: in years; 0: not given.
        about: the life so far, in a few sentences.
        home: place where the resident lives and sleeps; it is added to the map if the map is drawn from the list of
            places.
        work: place of work on weekdays; it defines the usual day if `day` is empty.
        day: the usual day in parts, such as `("08:00", "12:00", "baking bread", "Bakery")`.
        seeds: memories from before the town began, one sentence each. The resident may tell others the memories that
            are not secret. Without a model, it tells only memories with a `weight` of 5 or more; a memory given as
            plain text has 4.
        innate, learned, currently, lifestyle, routine: traits, occupation, interest, sleeping hours, habits; for
            models.
    """

    name: Name
    age: int = Field(default=0, ge=0, le=200)
    innate: Paragraph = ""
    learned: Paragraph = ""
    currently: Paragraph = ""
    lifestyle: Paragraph = ""
    routine: Paragraph = ""
    about: Paragraph = ""
    home: ShortText
    bed: str = ""
    start: str = ""
    work: str = ""
    day: Days = Field(default_factory=list, max_length=MOST_LINES)
    knows: list[ShortText] = Field(default_factory=list, max_length=MOST_LINES)
    household: list[Name] = Field(default_factory=list, max_length=MOST_LINES)
    relations: list[RelationTable] = Field(default_factory=list, max_length=MOST_LINES)
    seeds: Seeds = Field(default_factory=list, max_length=MOST_LINES)

    @field_validator("seeds", mode="before")
    @classmethod
    def _of_texts(cls, seeds: Any) -> Any:
        """Accept a plain text as a memory that has no other keys."""
        every = seeds if isinstance(seeds, list) else []
        return [{"text": each} if isinstance(each, str) else each for each in every] or seeds

    @field_validator("day", mode="before")
    @classmethod
    def _of_rows(cls, day: Any) -> Any:
        """Accept each part of the day also as a list of three or four items: from, to, what, where (optional)."""
        every = day if isinstance(day, list) else []
        row = ("from", "to", "what", "where")
        return [
            dict(zip(row, each, strict=False)) if isinstance(each, tuple | list) and len(each) in (3, 4) else each
            for each in every
        ] or day


class TownTables(Table):
    """All tables of a town file."""

    town: TownTable
    map: MapTable | None = None
    roads: list[RoadTable] = Field(default_factory=list)
    places: list[Place] = Field(default_factory=list)
    conditions: ConditionsTable = Field(default_factory=ConditionsTable)
    residents: list[Resident] = Field(default_factory=list, max_length=MOST_RESIDENTS)


T = TypeVar("T")
EXTRA = "extra"
FIRST_YEAR, LAST_YEAR = 1970, 9000
LARGEST = 1e9
CLOCK = "%B %d, %Y, %H:%M:%S"
"""Format of times in saved simulations of Park 2023 ("February 13, 2023, 11:21:30")."""
DATE = "%B %d, %Y"
STAMP = "%Y-%m-%d %H:%M:%S"
"""Format of times in the memories of saved simulations of Park 2023 ("2023-02-13 11:21:30")."""


def parse_time(text: str, form: str = CLOCK) -> float:
    """Parse a time in a saved simulation of Park 2023, in the format `form` (CLOCK, DATE or STAMP), as seconds since
    1970.

    Raises:
        ValueError: the text has another format.
    """
    return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()


def _checked(form: str) -> AfterValidator:
    def check(text: str) -> str:
        if not FIRST_YEAR <= datetime.strptime(text, form).year <= LAST_YEAR:
            raise ValueError(f"expected a year from {FIRST_YEAR} to {LAST_YEAR}")
        return text

    return AfterValidator(check)


Whole = Annotated[int, Strict()]


def _is_sane(number: float) -> float:
    if not -LARGEST <= number <= LARGEST:
        raise ValueError(f"expected a number from -{LARGEST:.0e} to {LARGEST:.0e}")
    return number


Number = Annotated[Annotated[int, Strict()] | Annotated[float, Strict()], AfterValidator(_is_sane)]
ClockText = Annotated[str, _checked(CLOCK)]
DateText = Annotated[str, _checked(DATE)]
StampText = Annotated[str, _checked(STAMP)]


def parse_as(kind: type[T], data: JsonValue, where: str, **more: object) -> T:
    """Read an object as a frozen dataclass; unknown keys go into its field `extra`. `more`: values of further fields.

    Raises:
        InputError: a key is missing or invalid; the message begins with `where` and names the key.
    """
    known = {field.name for field in fields(kind)} - {EXTRA}  # type: ignore[arg-type]
    given = expect_object(data, where)
    held = {key: value for key, value in given.items() if key in known}
    rest = {key: value for key, value in given.items() if key not in known}
    try:
        read: T = _adapter(kind).validate_python({**held, **more, EXTRA: rest})  # type: ignore[arg-type]
        return read
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{where}: {place}: {first['msg']}; found {first['input']!r:.60}") from None


def to_plain(value: object, without: frozenset[str] = frozenset()) -> JsonValue:
    """Convert a frozen dataclass into plain data. The result has the fields of the dataclass, except the fields in
    `without`, and the keys of its `extra`."""
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.name not in without | {EXTRA}]
        plain = {name: to_plain(getattr(value, name)) for name in names}
        extra: JsonObject = dict(getattr(value, EXTRA, {}))
        return {**plain, **extra}
    if isinstance(value, Mapping):
        return {str(key): to_plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(each) for each in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{type(value).__name__} cannot be converted into plain JSON data")


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


WANTED = {
    "missing": "is missing",
    "string_type": "text in quotes is expected",
    "int_type": "a whole number is expected",
    "int_parsing": "a whole number is expected",
    "int_from_float": "a whole number is expected",
    "float_type": "a number is expected",
    "float_parsing": "a number is expected",
    "bool_type": "true or false is expected",
    "bool_parsing": "true or false is expected",
    "list_type": "a list in [ ] is expected",
    "dict_type": "a table of keys is expected",
    "model_type": "a table of keys is expected",
    "model_attributes_type": "a table of keys is expected",
    "datetime_type": "a moment is expected, as in 2023-02-13T00:00:00",
    "string_too_short": "at least {min_length} characters are expected",
    "string_too_long": "at most {max_length} characters are expected",
    "too_long": "at most {max_length} are expected",
    "greater_than": "more than {gt} is expected",
    "greater_than_equal": "at least {ge} is expected",
    "less_than": "less than {lt} is expected",
    "less_than_equal": "at most {le} is expected",
}
"""What was expected, by pydantic's error type."""


KeyPath: TypeAlias = tuple[int | str, ...]
"""The path of a key: names of tables and keys, and indexes in lists."""


def describe_mistake(model: type[BaseModel], error: ValidationError) -> str:
    """Return the first error as a sentence that begins with the key's path: `residents.2.age: …`."""
    return describe_mistakes(model, error)[0][1]


def describe_mistakes(model: type[BaseModel], error: ValidationError) -> list[tuple[KeyPath, str]]:
    """Return each error as the path of its key and a sentence."""
    return [(tuple(each["loc"]), _describe(model, each)) for each in error.errors(include_url=False)]


def find_line(text: str, place: KeyPath) -> int:
    """Return the line number of a table or key in a TOML text, or of its nearest parent; 0: not found."""
    header, count, quoted, section, found = "", dict[str, int](), False, "", 0
    names = [part for part in place if isinstance(part, str)]
    number = next((part for part in place[1:2] if isinstance(part, int)), 0)
    for at, line in enumerate(text.splitlines(), 1):
        bare, is_inside = line.strip(), quoted
        quoted ^= (line.count('"""') + line.count("'''")) % 2 == 1
        if is_inside:
            continue
        if bare.startswith("["):
            section = bare.partition("#")[0].strip().strip("[]").strip()
            top = section.partition(".")[0]
            if bare.startswith("[[") and section == top:
                count[top] = count.get(top, -1) + 1
            header = top if names[:1] == [top] and count.get(top, 0) == number else ""
            if header and (section == top or names[:2] == section.split(".")):
                found = at
        elif header and "=" in bare:
            key = bare.partition("=")[0].strip().strip("\"'")
            inner = names[1:] if section == header else names[2:]
            if inner and key == inner[0]:
                return at
    return found


def _describe(model: type[BaseModel], first: Any) -> str:
    place = ".".join(str(part + 1) if isinstance(part, int) else part for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"{place}: unknown key{_keys(model, first['loc'])}"
    wanted = WANTED.get(first["type"])
    if wanted is None:
        return f"{place}: {first['msg'].lower()}, not {first['input']!r:.60}"
    said = wanted.format(**first.get("ctx", {}))
    return f"{place}: {said}" if first["type"] == "missing" else f"{place}: {said}, not {first['input']!r:.60}"


def _keys(model: type[BaseModel], place: KeyPath) -> str:
    """Return the end of the error message about an unknown key: the most similar known key, if any, and a list of all
    known keys. Return "" if the table of the unknown key has no fixed keys."""
    holder: type[BaseModel] | None = model
    for part in place[:-1]:
        if isinstance(part, str) and holder is not None:
            holder = _table_of(holder, part)
    if holder is None:
        return ""
    known = [field.alias or name for name, field in holder.model_fields.items()]
    near = nearest(str(place[-1]), known)
    meant = f", did you mean {near!r}?" if near else ";"
    return f"{meant} known keys: {', '.join(known)}"


def _table_of(model: type[BaseModel], key: str) -> type[BaseModel] | None:
    """Return the model class of a key's table; None: the key has no table.

    The table may be optional, or a list of tables.
    """
    field = next((each for name, each in model.model_fields.items() if (each.alias or name) == key), None)
    found: Any = field.annotation if field is not None else None
    kinds = [found, *get_args(found)]
    return next((each for each in kinds if isinstance(each, type) and issubclass(each, BaseModel)), None)


MOST_BYTES = 32_000_000


@dataclass(frozen=True)
class TownFile:
    """The content of a town file; residents are in the order of the file; `start` None: the file has no start."""

    name: str
    start: datetime | None
    world: World
    rules: PlaceRules
    residents: tuple[Person, ...]
    conditions: Conditions
    weather: Weather


class Faults:
    """Collects the faults of a town file, so that one error reports all of them with their lines."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.found: list[tuple[int, str]] = []
        self.numbers: dict[str, int] = {}
        """Index of each resident in the file, by name."""

    def add(self, place: KeyPath, said: str) -> None:
        """Add a fault for each line of `said`."""
        line = find_line(self._text, place)
        self.found += [(line, each) for each in said.split("\n") if (line, each) not in self.found]

    @contextmanager
    def at(self, *place: int | str) -> Iterator[None]:
        """If the block raises InputError, record the error as a fault of the key at this path.

        Execution then continues after the block.
        """
        try:
            yield
        except InputError as error:
            self.add(place, str(error))

    def require_none(self, file: str = "") -> None:
        """Raise InputError with all faults, one per line as `file:line: fault`; do nothing if there are none."""
        if self.found:
            at = [f"{file}:{line}: " if line and file else f"line {line}: " if line else "" for line, _ in self.found]
            raise InputError("\n".join(f"{where}{said}" for where, (_, said) in zip(at, self.found, strict=True)))


def load_town(path: Path) -> TownFile:
    """Read a town file.

    Raises:
        InputError: the file cannot be read or is invalid; the message has all faults with lines and keys.
    """
    with named_once(path):
        return parse_town(load_text(path, MOST_BYTES), path.parent, str(path))


def parse_town(text: str, folder: Path, file: str = "") -> TownFile:
    """Parse a town file; `folder` contains the maps that the file names.

    Raises:
        InputError: the text is invalid; the message has all faults, one per line.
    """
    faults = Faults(text)
    tables, names = _parse_tables(text, faults)
    if tables is None:
        faults.require_none(file)
        raise InputError("the town file cannot be read")
    return _build_town(tables, names, folder, faults, file)


def build_town(
    name: str, residents: Iterable[Resident], places: Iterable[Place] = (), start: datetime | None = None
) -> TownFile:
    """Build a town from residents and places, on a map drawn from the list of places.

    Raises:
        InputError: the town is invalid; the message has all faults, one per line.
    """
    people, places = list(residents), list(places)
    for each, kind in [*((one, Resident) for one in people), *((one, Place) for one in places)]:
        if not isinstance(each, kind):
            raise InputError(f"expected {kind.__name__}(name=…, …), found {each!r}")
    town = TownTable(name=name, start=start)
    tables = TownTables(town=town, residents=people, places=places)
    faults = Faults("")
    faults.numbers = {each.name: number for number, each in enumerate(people)}
    return _build_town(tables, Counter(each.name for each in people), Path(), faults)


def _build_town(tables: TownTables, names: Counter[str], folder: Path, faults: Faults, file: str = "") -> TownFile:
    name = Address((tables.town.name,))
    for each in [each for each, count in names.items() if count > 1]:
        faults.add(("residents",), f"residents: {each!r} occurs twice")
    world = weather = None
    with faults.at("map"):
        world = _build_world(name, tables, folder, faults)
    with faults.at("town", "weather"):
        weather = _weather(tables.town.weather)
    if world is None or weather is None:
        faults.require_none(file)
        raise InputError("the town file cannot be read")
    rules = PlaceRules(_rules(name, tables.places, world, names, faults, tables.map is not None))
    working = [_with_usual_day(each, rules) for each in tables.residents]
    described = [_describe_person(each, name, world, names, faults) for each in working]
    residents = tuple(each for each in described if each is not None)
    with faults.at("map"):
        _check_ways(world, residents)
    faults.require_none(file)
    conditions = Conditions(danger=tuple(tables.conditions.danger), fine=tuple(tables.conditions.fine))
    return TownFile(tables.town.name, tables.town.start, world, rules, residents, conditions, weather)


def _weather(said: list[str] | dict[str, str]) -> Weather:
    try:
        return Weather(dates=said) if isinstance(said, dict) else Weather(days=tuple(said))
    except ValidationError:
        raise InputError(
            "town: weather: expected dates such as 2024-09-03, without a time, and a text for each"
        ) from None


def _parse_tables(text: str, faults: Faults) -> tuple[TownTables | None, Counter[str]]:
    """Return the tables without their invalid parts (None if too little is left), and the number of occurrences of each
    resident's name. Add the mistakes to `faults`."""
    try:
        given = tomllib.loads(unicodedata.normalize("NFC", text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"the file is not valid TOML: {error}") from None
    except RecursionError:
        raise InputError("the TOML is nested too deeply") from None
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
"""Names of the tables that are lists, such as [[places]]."""


def _leave_out(given: dict[str, Any], place: KeyPath) -> None:
    """Remove an invalid key; remove the whole list entry if the entry is invalid without that key."""
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


def _is_extra(entry: Any, place: KeyPath) -> bool:
    """Return whether an entry stays valid if the last key of `place` is removed from it."""
    return isinstance(entry, dict) and len(place) == 3 and place[2] in entry and place[2] not in ("name", "age", "home")


def _build_world(name: Address, tables: TownTables, folder: Path, faults: Faults) -> World:
    if tables.map is not None and tables.roads:
        raise InputError("a town can have a [map] or [[roads]], not both: remove one of them")
    if tables.map is None and not tables.roads:
        places = {_address(name, each.name, "places"): each for each in tables.places}
        objects: dict[Address, Sequence[str]] = {place: each.objects for place, each in places.items()}
        walled = {place for place, each in places.items() if each.hours or each.owners}
        homes = [_address(name, each.home, "residents") for each in tables.residents]
        known = {each.upto(SECTOR) for each in (*places, *homes)}
        for work in [_address(name, each.work, "residents") for each in tables.residents if each.work]:
            if work.upto(SECTOR) not in known:
                objects[work] = []
                walled.add(work)
        return world_of_drawing(name, draw_places(objects, homes, walled))
    if tables.map is None:
        roads = [
            Road(_address(name, each.start, "roads"), _address(name, each.end, "roads"), each.steps)
            for each in tables.roads
        ]
        listed = [_address(name, each.name, "places") for each in tables.places]
        things = [
            place.child(thing) for place, each in zip(listed, tables.places, strict=True) for thing in each.objects
        ]
        return build_places(name, [*listed, *things], roads)
    found = list[str]()
    try:
        world = _build_map(name, tables.map, folder, found)
    except InputError as error:
        raise InputError("\n".join(f"map: {each}" for each in str(error).split("\n"))) from None
    for each in found:
        faults.add(("map", "things"), f"map: {each}")
    return world


def _build_map(name: Address, table: MapTable, folder: Path, faults: list[str]) -> TileWorld:
    if bool(table.rows) == bool(table.file):
        found = "both" if table.file else "neither"
        raise InputError(f"expected either rows (a drawing) or file, found {found}")
    if table.file:
        tables = _beside(folder, table.tables) if table.tables else None
        world = load_map(_beside(folder, table.file), tables, frozenset(table.skip))
        if world.name != name.last:
            raise InputError(f"the world in {table.file} must have the town's name {name.last!r}; it is {world.name!r}")
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
    """Return the path of a file in the folder of the town file, or below it. Other folders are refused: a town file may
    be untrusted."""
    path = Path(name)
    if path.is_absolute() or ".." in path.parts:
        raise InputError(f"{name!r:.99} must be a relative path inside the folder of the town file, without `..`")
    return folder / path


def _rules(
    name: Address, tables: list[Place], world: World, residents: Collection[str], faults: Faults, is_drawn: bool
) -> Mapping[Address, PlaceRule]:
    rules: dict[Address, PlaceRule] = {}
    for number, table in enumerate(tables, start=1):
        with faults.at("places", number - 1), prefixed(f"places.{number} ({table.name}):"):
            address = _address(name, table.name, "address")
            world.spots(address)
            if address in rules:
                raise InputError("this place occurs twice: keep one entry")
            if table.objects and is_drawn:
                raise InputError("a place cannot list objects if the map is drawn: draw them in `things` of [map]")
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
    return rules


def _describe_person(
    table: Resident, name: Address, world: World, residents: Collection[str], faults: Faults
) -> Person | None:
    """Return a resident as a `Person`; None if its home or start is invalid. All faults are added to `faults`; faulty
    parts of the table are left out."""
    number = faults.numbers.get(table.name, 0)

    def check(key: str, read: Callable[[], T]) -> T | None:
        with faults.at("residents", number, key), prefixed(f"residents: {table.name}:"):
            return read()
        return None

    def find_start() -> tuple[Address, Address, tuple[Spot, ...]]:
        home = _address(name, table.home, "home")
        start = _address(name, table.start, "start") if table.start else home
        spots = world.spots(start)
        if not world.spots(home) or not spots:
            raise InputError(
                f"there is no free spot at {str(start if not spots else home)!r} for the resident to stand"
            )
        return home, start, tuple(spots)

    def find_known(text: str) -> Address:
        address = _address(name, text, "knows")
        world.number(address)
        return address

    def check_relation(who: str) -> None:
        _check_resident(who, residents)
        if who == table.name:
            raise InputError("relations: a resident cannot have a relation to itself")

    knows = [each for text in table.knows if (each := check("knows", partial(find_known, text)))]
    for relation in table.relations:
        check("relations", partial(check_relation, relation.who))
    if (placed := check("home", find_start)) is None:
        return None
    home, start, spots = placed
    bed = check("bed", lambda: _bed(table, home, start, world)) or ""
    day = tuple(
        item
        for each in cast(list[DayTable], table.day)
        if (item := check("day", partial(_day_item, each, home, world)))
    )
    memories = tuple(
        memory
        for each in cast(list[SeedTable], table.seeds)
        if (memory := check("seeds", partial(_first_memory, each, home, world, residents)))
    )
    return Person(
        **table.model_dump(include=COPIED),
        home=str(home),
        bed=bed,
        day=day,
        start=_first_spot(world, spots),
        knows=tuple(map(str, knows)),
        relations=tuple(Relation(each.who, each.kind, each.avoids) for each in table.relations),
        memories=memories,
    )


COPIED = {"name", "age", "innate", "learned", "currently", "lifestyle", "routine", "household", "about"}
"""Keys of a resident's table that are copied unchanged into its `Person`."""
WORKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday"]


def _with_usual_day(table: Resident, rules: PlaceRules) -> Resident:
    """If a resident has work but no usual day, return it with a usual day around its work, else unchanged. Lunch is at
    a place for eating that is open at noon and lets the resident in, if there is one."""
    if table.day or not table.work:
        return table
    noon = datetime(2024, 1, 1, 12)
    eating = [str(place) for place, rule in rules if "eat" in (rule.purpose or ()) and rules.is_open(place, noon)]
    lunch = next((place for place in eating if rules.lets_in(table.name, parse_address(place)) is not False), "")
    day: list[tuple[str, str, str, str, bool]] = [
        ("07:00", "08:00", "having breakfast", "", False),
        ("08:30", "12:00", "working", table.work, True),
        ("12:00", "13:00", "having lunch", lunch, False),
        ("13:00", "17:00", "working", table.work, True),
        ("18:30", "19:30", "having dinner", "", False),
        ("21:00", "22:30", "resting", "", False),
    ]
    parts = [
        DayTable.model_validate(
            {"from": start, "to": end, "what": what, "where": where, "duty": duty, "on": WORKDAYS if duty else []}
        )
        for start, end, what, where, duty in day
    ]
    return table.model_copy(update={"day": parts})


def _bed(table: Resident, home: Address, start: Address, world: World) -> str:
    """Return the address of the bed; "": there is no bed.

    The bed is the first of these that is given or exists:
    - the key `bed`,
    - `start`, if `start` is an object at home,
    - an object called BED in `home`,
    - an object called BED elsewhere in the house.
    """
    if table.bed:
        return _find_place(table.bed, home, world, "bed")
    if start.level == OBJECT and start.is_within(home):
        return str(start)
    beds = [each for each in world.places if each.last == BED and each.level == OBJECT]
    near = [each for at in (home, home.upto(SECTOR)) for each in beds if each.is_within(at) and world.spots(each)]
    return str(near[0]) if near else ""


def _day_item(table: DayTable, home: Address, world: World) -> DayItem:
    with prefixed(f"day: {table.start} {table.what}:"):
        start, end, on = minute_of(table.start), minute_of(table.end), sorted(parse_days(table.on))
        if start in (end, DAY_MINUTES):
            raise InputError(
                f"must not start and end at the same time, nor start at 24:00; found {table.start} to {table.end}"
            )
        place = _find_place(table.where, home, world, "where") if table.where else str(home)
    return DayItem(start=start, end=end, what=table.what, place=place, on=tuple(on), duty=table.duty)


def _first_memory(table: SeedTable, home: Address, world: World, residents: Collection[str]) -> FirstMemory:
    """Return the memory that a table describes, with its appointment if the table has one."""
    begin, end, given = table.start, table.end, (table.what, table.start, table.end)
    if not any((*given, table.where, table.host, table.who)):
        return FirstMemory(text=table.text, weight=table.weight, secret=table.secret)
    with prefixed(f"seeds: {table.text:.60}:"):
        if begin is None or end is None or not table.what:
            raise InputError("an appointment needs three keys: `what`, `from` and `to`")
        for name in (*table.who, *([table.host] if table.host else [])):
            _check_resident(name, residents)
        place = _find_place(table.where, home, world, "where") if table.where else ""
        agreed = Appointment(what=table.what, place=place, start=begin, end=end, host=table.host, who=tuple(table.who))
        if agreed.end <= agreed.start:
            raise InputError("the appointment must end after it begins")
    return FirstMemory(text=table.text, weight=table.weight, appointment=agreed, secret=table.secret)


def _find_place(text: str, home: Address, world: World, where: str) -> str:
    """Return the address of a place.

    The text is read as an address in the town. If there is no such place, it is read as an address in the home's room,
    then as an address in the house of the home. Finally, `Bakery:oven` is the oven in any room of the bakery, if the
    bakery has only one oven.
    """
    town = Address((home.names[0],))
    address = _address(town, text, where)
    inner = address.names[1:]
    within = [Address((*at.names, *inner)) for at in (home, home.upto(SECTOR)) if at.level + len(inner) <= OBJECT]
    for each in (address, *within):
        if each in world.places and world.spots(each):  # found; no expensive search for similar names
            return str(each)
    things = [each for each in world.places if each.level == OBJECT and each.last == address.last]
    of_house = [each for each in things if address.level == OBJECT - 1 and each.upto(SECTOR) == address.parent]
    if len(of_house) == 1:
        return str(of_house[0])
    world.number(address)
    raise InputError(f"{where}: no resident can stand at {text!r}")


def _first_spot(world: World, spots: tuple[Spot, ...]) -> Spot:
    """Return the first spot that is a spawn point; else the first spot."""
    spawns = world.spawns if isinstance(world, TileWorld) else {}
    return next((spot for spot in spots if spot in spawns), spots[0])


def _check_ways(world: World, residents: tuple[Person, ...]) -> None:
    """Check that every place and every resident's start can be reached from the first resident's start.

    The first resident is the first one that has a start. If no resident has a start, nothing is checked.

    Raises:
        InputError: a place or a start cannot be reached.
    """
    placed = [(each, each.start) for each in residents if each.start is not None]
    if not placed:
        return
    first, begin = placed[0]
    for address in world.places:
        if not world.routes.is_reachable(begin, address):
            raise InputError(f"map: {str(address)!r} cannot be reached from {begin}, where {first.name} starts")
    for resident, start in placed:
        if not world.routes.is_reachable(begin, start):
            raise InputError(
                f"residents: {resident.name}: its start {start} cannot be reached from {begin}, where {first.name}"
                " starts"
            )


def _address(world: Address, text: str, where: str) -> Address:
    """Parse an address; add the name of the world if it is missing."""
    with prefixed(f"{where}:"):
        address = parse_address(text)
        return address if address.is_within(world) else Address((*world.names, *address.names))


def _check_resident(name: str, residents: Collection[str]) -> None:
    if name not in residents:
        near = nearest(name, residents)
        raise InputError(f"there is no resident {name!r}" + (f"; did you mean {near!r}?" if near else ""))
