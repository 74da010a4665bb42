"""Convert a town's log into timelines: lists of values with the step from which each is valid.

The state is computed by the town's own code (state.py); a page only looks it up. A timeline is a list of entries in the
order of their steps. In a recording, the first number of an entry is the difference to the step of the entry before.

A recording also has the map of the town: its drawing, and the place at each spot. The recording of a running town is
extended by the new rows of the log, and each page gets the entries it lacks.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from mindstream.chance import token
from mindstream.errors import InputError, clipped
from mindstream.identifiers import StreamName
from mindstream.location import AnyData
from mindstream.log.events import Logged, Reflected, Unknown
from mindstream.memory.opening import open_store
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Store
from mindstream_town.events import (
    Act,
    Acted,
    Block,
    DayPlanned,
    Decided,
    Embodied,
    MovedIn,
    ObjectChanged,
    Perceived,
    Released,
    Talked,
    TownEvent,
    TownSaved,
)
from mindstream_town.inspect.history import History, read_history
from mindstream_town.inspect.layers import SHAPES, Layers, Name, layers_of
from mindstream_town.inspect.lookup import format_time
from mindstream_town.journal import TOWN, TownState, is_of_town, read_setting, resident_of, rows_after
from mindstream_town.residents.person import Person
from mindstream_town.setting import Setting
from mindstream_town.world.graph import PlaceWorld, spread
from mindstream_town.world.tiles import TileWorld

Timeline = list[list[object]]
WHYS = ("", "plan", "talk", "wait", "react")
CUT = ("acts", "days", "plans", "decisions", "lived")
"""Names of the timelines that leave out the entries which ended before the replay starts; the other timelines are
complete."""


@dataclass
class Table:
    """Assigns a number to each distinct value, so that timelines contain numbers instead of repeated values."""

    numbers: dict[object, int] = field(default_factory=dict)

    def number(self, each: object) -> int:
        """Return a value's number; assign the next number to a new value."""
        return self.numbers.setdefault(each, len(self.numbers))


@dataclass(frozen=True)
class Sizes:
    """The numbers of entries in a recording at some moment.

    `texts`, `blocks`, `things`: entries of these tables. `people`: entries of each timeline, by resident and by name of
    the timeline.
    """

    texts: int
    blocks: int
    things: int
    people: Mapping[str, Mapping[str, int]]


@dataclass
class Life:
    """The timelines of a resident; each entry begins with its step."""

    acts: Timeline = field(default_factory=list)
    days: Timeline = field(default_factory=list)
    plans: Timeline = field(default_factory=list)
    seen: Timeline = field(default_factory=list)
    decisions: Timeline = field(default_factory=list)
    talks: Timeline = field(default_factory=list)
    reflections: Timeline = field(default_factory=list)
    places: Timeline = field(default_factory=list)
    records: Timeline = field(default_factory=list)
    lived: Timeline = field(default_factory=list)
    """Name of the user who controls the resident from a step on; "": none."""
    numbers: dict[str, int] = field(default_factory=dict)
    """The index of each record in `records`, by the record's id."""
    thing_places: dict[str, str] = field(default_factory=dict)
    """Addresses of the objects that records are about, by record id."""


async def record(store: Store, setting: Setting, since: int | None, until: int | None) -> dict[str, object]:
    """Return the recording between two steps; `since` None: from the beginning; `until` None: to the end of the hour of
    the last event.

    Raises:
        InputError: `until` is not after `since`, or the town has not run beyond `since`.
    """
    rows = sorted([row async for row in rows_after(store) if counts(row, setting)], key=lambda row: order(row, setting))
    whole_hour = setting.profile.a_minute * 60
    last = (_step(rows[-1], setting) // whole_hour + 1) * whole_hour
    first, last = max(0, since or 0), last if until is None else min(until, last)
    if first >= last:
        begun, over = format_time(setting, first), format_time(setting, last)
        why = (
            "the town has not run that far"
            if until is None or until > first
            else "the end must be later than the beginning"
        )
        raise InputError(f"there is nothing to replay from {begun} to {over}: {why}")
    recorder = Recorder(setting)
    for name in setting.people:
        async with store.walk(store.key(StreamName("resident", name))) as (_, records):
            recorder.remember(name, [each async for each in records], last)
    for row in rows:
        if _step(row, setting) > last:
            break
        recorder.take(row)
    return recorder.whole(first, last)


def counts(row: Logged, setting: Setting) -> bool:
    """Return whether recordings of the town contain a row of its log."""
    return not isinstance(row.event, Unknown | TownSaved) and is_of_town(row, setting)


def _step(row: Logged, setting: Setting) -> int:
    return row.event.step if isinstance(row.event, TownEvent) else _step_at(row.at, setting)


def _step_at(moment: float, setting: Setting) -> int:
    return max(0, -(-int(moment - setting.start) // setting.profile.step_s))


def order(row: Logged, setting: Setting) -> tuple[int, str, int]:
    """Return the key by which rows are sorted: step, resident (or town), row number."""
    return _step(row, setting), resident_of(row) or TOWN, row.seq


class Recorder:
    """Converts rows of a town's log into timelines. Add records first, then the rows about them, sorted by `order`.

    Timelines and tables only grow, so a page can append the new entries.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting, self._town = setting, TownState(setting.profile)
        self._texts, self._blocks = Table(), Table()
        self._text = self._texts.number
        self._places = {str(place): number for number, place in enumerate(setting.world.places)}
        self._people = {name: number for number, name in enumerate(setting.people)}
        self._lives = {name: Life() for name in setting.people}
        self._homes: dict[str, tuple[int, int]] = {}
        self._things: Timeline = []

    def take(self, row: Logged) -> None:
        """Apply a row of the log to the recording."""
        step, name = _step(row, self._setting), resident_of(row)
        before = self._town.states.get(name)
        self._town.apply(row)
        after = self._town.states.get(name)
        if after is not None:
            self._homes.setdefault(name, after.home)
            if after.act is not None and (before is None or after.act is not before.act):
                self._act(self._lives[name], step, after.act, row)
            if before is not None and after.blocks is not before.blocks:
                blocks = [self._block(block) for block in after.blocks]
                self._lives[name].plans.append([step, blocks])
        self._take_in(row, step)

    def remember(self, name: str, records: Iterable[Record], last: int | None = None) -> None:
        """Add a resident's records up to the step `last` (None: all). Records that were added before are skipped."""
        life = self._lives[name]
        for each in records:
            step = _step_at(each.created, self._setting)
            if each.id not in life.numbers and (last is None or step <= last):
                life.numbers[each.id] = len(life.records)
                by = self._person(each.by) if each.by != name else -1
                life.records.append([step, each.kind, self._text(each.text), round(each.importance or 0, 1), by])
                if isinstance(place := each.data.get("place"), str):
                    life.thing_places[each.id] = place

    def _person(self, name: str) -> int:
        """Return the number of a resident; -1: no resident has this name."""
        return self._people.get(name, -1)

    def _place(self, place: str) -> int:
        return self._places.get(place, -1)

    def _numbers(self, places: Sequence[str]) -> list[int]:
        return [self._places[place] for place in places if place in self._places]

    def _block(self, block: Block) -> int:
        place, asleep = self._place(block.place), int(block.asleep)
        return self._blocks.number((block.start, block.minutes, self._text(block.what), place, asleep))

    def _act(self, life: Life, step: int, act: Act, row: Logged) -> None:
        because = row.event.because if isinstance(row.event, Acted) else ""
        life.acts.append(
            [
                step,
                act.until - step,
                self._text(act.what),
                self._place(act.place),
                WHYS.index(act.why),
                self._text(because),
                int(act.asleep),
                self._text(act.path),
            ]
        )

    def _take_in(self, row: Logged, step: int) -> None:
        # A row of the town (not of a resident) gets a Life that is discarded. Only its changes of objects are kept.
        life = self._lives.get(resident_of(row)) or Life()
        match event := row.event:
            case ObjectChanged():
                condition, by = self._text(event.condition), self._person(event.by)
                self._things.append([step, self._place(event.place), condition, by])
            case MovedIn():
                life.places.append([step, self._numbers(event.knows)])
            case DayPlanned():
                broad = [self._text(each) for each in event.broad]
                life.days.append([step, self._text(event.currently), broad])
            case Perceived():
                self._see(life, step, event)
            case Decided():
                recalled = [[life.numbers[id_], score] for id_, score in event.recalled if id_ in life.numbers]
                about, other = self._text(event.about), self._person(event.other)
                life.decisions.append([step, about, other, event.p, int(event.yes), recalled])
            case Talked():
                lines = [[self._person(line.by), self._text(line.text)] for line in event.lines]
                since = event.since or step
                life.talks.append([since, self._person(event.partner), event.until - since, lines])
            case Embodied():
                life.lived.append([step, self._text(event.person)])
            case Released():
                life.lived.append([step, self._text("")])
            case Reflected():
                thoughts = [life.numbers[id_] for id_ in event.thoughts if id_ in life.numbers]
                life.reflections.append([step, thoughts])
            case _:
                pass

    def _see(self, life: Life, step: int, event: Perceived) -> None:
        """Add percepts; residents are numbers, and -1 means that the subject is not a resident."""
        if places := self._numbers(event.places):
            life.places.append([step, places])
        ids = event.records or ("",) * len(event.seen)
        for (subject, _, what), id_ in zip(event.seen, ids, strict=False):
            place = self._place(life.thing_places.get(id_, ""))
            life.seen.append([step, self._person(subject), place, self._text(what)])

    def whole(self, first: int, last: int) -> dict[str, object]:
        """Return the recording between two steps."""
        setting = self._setting
        people = [
            self._life(person, self._lives[name], self._homes.get(name, (0, 0)), first)
            for name, person in setting.people.items()
        ]
        places = [[self._place(str(each.parent)) if each.parent else -1, each.last] for each in setting.world.places]
        return {
            "version": 1,
            "town": setting.name,
            "start": setting.start,
            "seconds": setting.profile.step_s,
            "first": first,
            "last": last,
            "vision": setting.profile.vision if setting.profile.observes else 0,
            "places": places,
            "people": people,
            "things": _delta(self._things),
            "texts": list(self._texts.numbers),
            "blocks": list(self._blocks.numbers),
        }

    def sizes(self) -> Sizes:
        """Return how many texts, blocks, changes of objects, and entries of each resident's timelines there are now."""
        people = {name: {key: len(line) for key, line in timelines(life)} for name, life in self._lives.items()}
        return Sizes(len(self._texts.numbers), len(self._blocks.numbers), len(self._things), people)

    def part(self, since: Sizes, last: int) -> dict[str, object]:
        """Return the entries that were added since `since`, up to a step."""
        people = [
            {"name": name} | {key: _delta(line, since.people[name][key]) for key, line in timelines(life)}
            for name, life in self._lives.items()
        ]
        return {
            "last": last,
            "people": people,
            "things": _delta(self._things, since.things),
            "texts": list(islice(self._texts.numbers, since.texts, None)),
            "blocks": list(islice(self._blocks.numbers, since.blocks, None)),
        }

    def _life(self, person: Person, life: Life, home: tuple[int, int], first: int) -> dict[str, object]:
        lines = {name: _delta(_cut(each, first) if name in CUT else each) for name, each in timelines(life)}
        told = person.model_dump(include={"name", "age", "innate", "learned", "currently", "lifestyle", "routine"})
        relations = [[self._person(each.name), each.name, each.what] for each in person.relations]
        visits = {"visits": True} if person.visits else {}
        return told | visits | {"relations": relations, "lives": self._place(person.home), "home": home} | lines


def timelines(life: Life) -> Iterator[tuple[str, Timeline]]:
    """Yield the timelines of a life by name."""
    yield from ((name, each) for name, each in vars(life).items() if isinstance(each, list))


def _cut(timeline: Timeline, first: int) -> Timeline:
    """Drop entries that are no longer valid when the replay starts."""
    over = sum(isinstance(entry[0], int) and entry[0] <= first for entry in timeline)
    return timeline[max(0, over - 1) :]


def _delta(timeline: Timeline, begin: int = 0) -> Timeline:
    """Encode the entries from a position on: each step is replaced by its difference from the step of the previous
    entry."""
    coded, before = [], timeline[begin - 1][0] if begin else 0
    for step, *others in timeline[begin:]:
        assert isinstance(step, int) and isinstance(before, int)
        coded.append([step - before, *others])
        before = step
    return coded


WIDE, HIGH = 14, 8
"""Width and height of a place's box, in units of spots."""
CORNER = 0.8
APART = 1.35
"""Minimum distance between the centres of two places' boxes, as a multiple of a box's size (WIDE, HIGH)."""
ROUNDS = 200
MOST_DRAWN = 80
"""Maximum number of places that are laid out by distance. A map with more places is drawn in rows, because the layout
would take too long."""
LONGEST_NAME = 22
Point = tuple[float, float]


class PlaceMap:
    """Positions of a world's places: places few steps apart are drawn near each other. `size`: size of the drawing."""

    def __init__(self, world: PlaceWorld) -> None:
        self._world = world
        middles = _rows(len(world.ends)) if len(world.ends) > MOST_DRAWN else _pulled(world)
        left, top = min(x for x, _ in middles) - WIDE, min(y for _, y in middles) - HIGH
        self._middles = [(round(x - left, 1), round(y - top, 1)) for x, y in middles]
        across, down = zip(*self._middles, strict=True)
        self.size = [math.ceil(max(across) + WIDE), math.ceil(max(down) + HIGH)]

    def boxes(self) -> list[list[float]]:
        """Return number, x, y, width and height of each place with a road."""
        numbers = (self._world.number(end) for end in self._world.ends)
        return [
            [number, round(x - WIDE / 2, 1), round(y - HIGH / 2, 1), WIDE, HIGH]
            for number, (x, y) in zip(numbers, self._middles, strict=True)
        ]

    def roads(self) -> list[list[int]]:
        """Return for each road the indexes of its two ends in the list `boxes`, and its length in steps."""
        ends = {end: i for i, end in enumerate(self._world.ends)}
        return [[ends[road.start], ends[road.end], road.steps] for road in self._world.roads]

    def layers(self) -> Layers:
        """Return the drawing: roads, a box for each place, and the names above the boxes."""
        roads = "".join("M{:g} {:g}L{:g} {:g}".format(*self._middles[a], *self._middles[b]) for a, b, _ in self.roads())
        c, wide, high = CORNER, WIDE - 2 * CORNER, HIGH - 2 * CORNER
        sites = "".join(
            f"M{x - wide / 2:g} {y - HIGH / 2:g}h{wide:g}q{c:g} 0 {c:g} {c:g}v{high:g}q0 {c:g}-{c:g} {c:g}"
            f"h-{wide:g}q-{c:g} 0-{c:g}-{c:g}v-{high:g}q0-{c:g} {c:g}-{c:g}z"
            for x, y in self._middles
        )
        names = [name for i in range(len(self._middles)) for name in self._names(i)]
        return Layers((("roads", roads), ("site", sites)), (), tuple(names))

    def _names(self, i: int) -> Iterable[Name]:
        x, y = self._middles[i]
        address = self._world.ends[i]
        yield Name(x, round(y - HIGH / 2 - 0.7, 1), 1.8, (clipped(address.last, LONGEST_NAME),))
        if address.level > 2:
            yield Name(x, round(y - HIGH / 2 - 2.7, 1), 1.3, (clipped(address.names[-2], LONGEST_NAME),))


def _rows(count: int) -> list[Point]:
    across = math.ceil(math.sqrt(count))
    return [(i % across * WIDE * 1.5, i // across * HIGH * 1.6) for i in range(count)]


def _pulled(world: PlaceWorld) -> list[Point]:
    """Lay places out by iteration, so that drawn distances follow the logarithm of the steps between places."""
    count = len(world.ends)
    apart = [
        [math.log1p(field[j, 0]) for j in range(count)]
        for field in (spread(world.neighbours, [(i, 0)]) for i in range(count))
    ]
    widest = max(map(max, apart)) or 1
    angles = [2 * math.pi * i / count for i in range(count)]
    spots = [[math.cos(angle) * widest / 2, math.sin(angle) * widest / 2] for angle in angles]
    for turn in range(ROUNDS):
        strength = 0.5 * (1 - turn / ROUNDS)
        for i in range(count):
            for j in range(i):
                dx, dy = spots[i][0] - spots[j][0], spots[i][1] - spots[j][1]
                far = math.hypot(dx, dy) or 1e-6
                pull = strength * (apart[i][j] - far) / far / 2
                for axis, way in enumerate((dx, dy)):
                    spots[i][axis] += way * pull
                    spots[j][axis] -= way * pull
    return _spaced([(x, y * 0.7) for x, y in spots])


def _spaced(points: list[Point]) -> list[Point]:
    """Scale positions so that the two nearest boxes are APART from each other; boxes at almost the same position may
    still touch."""
    pairs = [(a, b) for i, a in enumerate(points) for b in points[:i]]
    gaps = [max(abs(a[0] - b[0]) / WIDE, abs(a[1] - b[1]) / (HIGH + 5)) for a, b in pairs]
    times = max(APART / max(min(gaps, default=1), 0.02), 1e-6)
    return [(x * times, y * times) for x, y in points]


def ground_of(setting: Setting) -> dict[str, object]:
    """Return the size and the drawing of a town's map, and the place at each spot.

    - `size`: in tiles.
    - `map`: the drawing, from bottom to top: `grounds` (kind, path data), `shapes` (path data), `things` (place,
      material, outline, shape, centres), `names` (x, y, size, lines).
    - `tiles`, on a map of tiles: pairs of a place's number and its run length, row by row.
    - `boxes`, on a map of places with roads: each place as number, x, y, width, height.
    - `roads`, with `boxes`: the positions of both ends in `boxes`, and the number of steps.
    """
    world = setting.world
    if isinstance(world, TileWorld):
        size = [world.width, world.height]
        return {"size": size, "tiles": _runs(world.here), "map": _written(layers_of(world))}
    assert isinstance(world, PlaceWorld)
    places = PlaceMap(world)
    return {"size": places.size, "boxes": places.boxes(), "roads": places.roads(), "map": _written(places.layers())}


def _written(layers: Layers) -> dict[str, object]:
    things = [
        [each.place, each.stuff, each.outline, each.shape, [part for middle in each.middles for part in middle]]
        for each in layers.things
    ]
    return {
        "grounds": list(layers.grounds),
        "shapes": [shape for _, _, shape in SHAPES] if things else [],
        "things": things,
        "names": [[each.x, each.y, each.size, list(each.lines)] for each in layers.names],
    }


def _runs(cells: Iterable[int]) -> list[int]:
    """Encode numbers as pairs of a number and its run length."""
    runs: list[int] = []
    for cell in cells:
        if runs and runs[-2] == cell:
            runs[-1] += 1
        else:
            runs += [cell, 1]
    return runs


MOST_MARKS = 256
"""Maximum number of marks from which a page can continue; older marks are dropped."""


@dataclass(frozen=True)
class Growth:
    """A complete recording, or an addition to one.

    Attributes:
        mark: value of `since` for the next request.
        whole: whether it is the complete recording; else it has only the entries since the requested mark.
        step: the last finished step; -1: none.
    """

    mark: str
    whole: bool
    step: int
    recording: dict[str, object]


class GrowingRecording:
    """A town's recording from its first step, read once and then extended. It changes no data.

    After an erasure it is read again completely.
    """

    def __init__(self, data: AnyData) -> None:
        self._data, self._reading = data, asyncio.Lock()
        self._history: tuple[int, History] | None = None
        self._begin(None)

    def _begin(self, setting: Setting | None) -> None:
        self._recorder = Recorder(setting) if setting is not None else None
        self._setting = setting
        self._made, self._grown, self._version, self._seq, self._step = token(6), 0, -2, 0, -1
        self._points: dict[str, int] = {}
        self._marks: OrderedDict[str, Sizes] = OrderedDict()

    async def since(self, mark: str) -> Growth:
        """Return the additions since a mark; for "" or an unknown mark, return the complete recording.

        Raises:
            InputError: there is no town.
            StorageError: the data cannot be read.
        """
        async with self._reading:
            async with open_store(self._data) as store:
                await self._read(store)
            assert self._recorder is not None and self._setting is not None
            before, last = self._marks.get(mark), max(self._step, 0)
            now = f"{self._made}.{self._grown}"
            if before is not None:
                return Growth(now, False, self._step, self._recorder.part(before, last))
            whole = await asyncio.to_thread(self._recorder.whole, 0, last)
            return Growth(now, True, self._step, whole | ground_of(self._setting))

    async def history(self) -> History:
        """Return the town's history; it is read again whenever the store has changed."""
        async with self._reading:
            async with open_store(self._data) as store:
                version = await store.version()
                if self._history is None or self._history[0] != version:
                    self._history = version, await read_history(store)
            return self._history[1]

    async def _read(self, store: Store) -> None:
        """Read the new rows of the log."""
        version = await store.version()
        if version == self._version:
            return
        setting = await read_setting(store)
        if self._setting is None or tuple(setting.people) != tuple(self._setting.people):
            self._begin(setting)
        try:
            if not await self._add(store, setting):
                self._begin(setting)
                await self._add(store, setting)
        except BaseException:
            self._begin(None)  # some rows may have been applied, so the next call reads everything again
            raise
        self._version = version

    async def _add(self, store: Store, setting: Setting) -> bool:
        """Add new rows and records. Return False, without adding any, if records were erased since the last call.

        The caller must then begin again with all rows and records.
        """
        rows, records = [row async for row in rows_after(store, self._seq)], dict[str, list[Record]]()
        for name in setting.people:
            key = store.key(StreamName("resident", name))
            changes = await store.changes(key, self._points.get(name, 0))
            if changes.gone and name in self._points:
                return False
            self._points[name] = changes.upto
            records[name] = changes.records
        await asyncio.to_thread(self._take_in, rows, records, setting)
        if rows:
            self._seq, self._grown = rows[-1].seq, self._grown + 1
            done = (row.event.step for row in rows if isinstance(row.event, TownEvent))
            self._step = max(self._step, *done, -1)
        self._mark()
        return True

    def _take_in(self, rows: Sequence[Logged], records: Mapping[str, Sequence[Record]], setting: Setting) -> None:
        """Apply rows; called in a thread, because it can take long for a large town."""
        assert self._recorder is not None
        for name, each in records.items():
            self._recorder.remember(name, each)
        for row in sorted((row for row in rows if counts(row, setting)), key=lambda row: order(row, setting)):
            self._recorder.take(row)

    def _mark(self) -> None:
        assert self._recorder is not None
        self._marks[f"{self._made}.{self._grown}"] = self._recorder.sizes()
        if len(self._marks) > MOST_MARKS:
            self._marks.popitem(last=False)
