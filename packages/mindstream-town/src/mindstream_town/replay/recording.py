"""Convert a town's log into timelines: lists of values with the step from which each is valid.

The state is computed by the town's own code (state.py); a page only looks it up. A timeline is a list of entries in the
order of their steps. In a recording, the first number of an entry is the difference to the step of the entry before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from mindstream.errors import InputError
from mindstream.log.events import Logged, Reflected, Unknown
from mindstream.log.names import StreamName
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
from mindstream_town.inspect.lookup import format_time
from mindstream_town.journal import TOWN, TownState, is_of_town, resident_of, rows_after
from mindstream_town.residents.person import Person
from mindstream_town.setting import Setting

Timeline = list[list[object]]
WHYS = ("", "plan", "talk", "wait", "react")
CUT = ("acts", "days", "plans", "decisions", "lived")
"""Timelines without the entries that are over when the replay starts; the other timelines are complete."""


@dataclass
class Table:
    """Assigns a number to each distinct value, so that timelines contain numbers instead of repeated values."""

    numbers: dict[object, int] = field(default_factory=dict)

    def number(self, each: object) -> int:
        """Return a value's number; assign the next number to a new value."""
        return self.numbers.setdefault(each, len(self.numbers))


@dataclass(frozen=True)
class Sizes:
    """The numbers of entries in tables and timelines at some moment."""

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
    """Numbers of its records by record id."""
    thing_places: dict[str, str] = field(default_factory=dict)
    """Addresses of the objects that records are about, by record id."""


async def record(store: Store, setting: Setting, since: int | None, until: int | None) -> dict[str, object]:
    """Return the recording between two steps.

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
    """Return whether a row is part of recordings."""
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
        """Apply a row."""
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
        """Add a resident's records up to a step; None: all. Records that were added before are ignored."""
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
        # the town itself has no life: only changes of its objects are recorded
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
                life.talks.append([step, self._person(event.partner), event.until - step, lines])
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
        """Return the current numbers of entries."""
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
    """Encode the entries from a position on, with differences of steps."""
    coded, before = [], timeline[begin - 1][0] if begin else 0
    for step, *others in timeline[begin:]:
        assert isinstance(step, int) and isinstance(before, int)
        coded.append([step - before, *others])
        before = step
    return coded
