"""The surroundings and events of a controlled resident as data, for any user interface.

The events are those that the resident experiences; they are derived from its log rows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Protocol

from mindstream.frozen import Frozen
from mindstream.log.events import Logged
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Store, read_log
from mindstream_town.embody.living import Deed, doing, is_here
from mindstream_town.events import (
    Acted,
    Declined,
    Overheard,
    Perceived,
    Released,
    Spoke,
    SpokenLine,
    Talked,
    TasksPlanned,
)
from mindstream_town.residents.places import hours_on, known_places, may_use, words_of
from mindstream_town.residents.sight import is_in_sight, nearest_spot
from mindstream_town.residents.turn import Resident
from mindstream_town.setting import Setting
from mindstream_town.world.whereabouts import Condition
from mindstream_town.world.world import DAY_MINUTES, clock


class OpenTown(Protocol):
    """The part of the interface of `Town` that a controlled resident needs."""

    setting: Setting
    store: Store
    residents: dict[str, Resident]

    @property
    def step(self) -> int:
        """The last finished step."""

    @property
    def conditions(self) -> Mapping[str, Condition]:
        """Conditions of the objects that are not in order, by address."""

    async def live_with(
        self, deeds: Mapping[str, Deed], until: int, stop: Callable[[], bool], on_step: Callable[[int], None]
    ) -> None:
        """Run the next step with users' actions; then run up to a step, or until `stop` returns True."""

    async def save(self) -> None:
        """Write the state of all residents."""

    async def whisper(self, name: str, text: str) -> Record:
        """Add a thought to a resident's memory."""

    async def set_object(self, place: str, condition: str, by: str = "", danger: bool | None = None) -> bool:
        """Change the condition of an object, given in words; return whether the condition is a danger. `by`: name of
        the person who changes the condition. `danger`: whether the condition is a danger; None: a model decides."""


TOLD = tuple(each.kind for each in (Perceived, Overheard, Spoke, Talked, Declined, TasksPlanned, Acted, Released))


class Happening(Frozen):
    """An event from the view of a controlled resident.

    Attributes:
        kind: saw, heard, said, did, talked (a talk is over), agreed, left (the user's control has ended), or
            unanswered.
        who: for `unanswered`, the person who did not answer: the resident or the partner.
        text: for `unanswered`, the partner.
        waited: whether the partner has waited for an answer of the resident and has stopped waiting.
    """

    step: int
    time: str
    kind: str
    who: str = ""
    text: str = ""
    waited: bool = False


async def happenings(town: OpenTown, resident: Resident, since: int) -> AsyncIterator[Happening]:
    """Yield the resident's events after a step, in order."""
    await resident.written()
    setting, telling = town.setting, _Telling(resident.name)
    first = setting.moment(since)
    async for row in read_log(town.store, resident.memory.key, kinds=TOLD):
        step = round((row.at - setting.start) / setting.profile.step_s)
        when = {"step": step, "time": setting.when(step).isoformat()}
        for each in telling.tell(row):
            if row.at > first:
                yield Happening.model_validate(each | when)


def _told(kind: str, who: str = "", text: str = "", waited: bool = False) -> dict[str, object]:
    return {"kind": kind, "who": who, "text": text, "waited": waited}


class _Telling:
    """Converts log rows to events in order; it remembers which lines of a talk it has yielded already."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._told: list[SpokenLine] = []
        self._stood = -1
        """The step at which the resident last began to wait for its user."""

    def tell(self, row: Logged) -> Iterator[dict[str, object]]:
        """Yield what the user is shown of a row of the log; nothing if rows of its kind are not shown."""
        match row.event:
            case Perceived():
                yield from (_told("saw", subject, f"{subject} {verb} {what}") for subject, verb, what in row.event.seen)
            case Overheard() if row.event.said:
                yield _told("heard", row.event.speakers[0], row.event.said)
            case Spoke() | Talked() | Declined():
                yield from self._tell_talk(row.event)
            case TasksPlanned() if row.event.because:
                planned = (f"{clock(each.start % DAY_MINUTES)} {each.what}" for each in row.event.blocks)
                yield _told("agreed", "", "; ".join(planned))
            case Acted() if row.event.act.why in ("", "plan", "react"):
                yield _told("did", "", row.event.act.what)
            case Acted() if row.event.act.why == "wait":
                self._stood = row.event.step
            case Released():
                yield _told("left", row.event.person)

    def _tell_talk(self, event: Spoke | Talked | Declined) -> Iterator[dict[str, object]]:
        if isinstance(event, Spoke):
            self._told.append(event.line)
            yield self._line(event.line, event.partner)
            return
        before, self._told = self._told, []
        waited = self._stood == event.step and event.lines[-1].by != self.name
        if isinstance(event, Talked):
            yield _told("talked", event.partner, "", waited)
            return
        yield from (self._line(line, event.partner) for line in event.lines if line not in before)
        yield _told("unanswered", event.by, event.partner, waited)

    def _line(self, line: SpokenLine, partner: str) -> dict[str, object]:
        return _told("said", partner, line.text) if line.by == self.name else _told("heard", line.by, line.text)


class PersonSeen(Frozen):
    """A person in sight of the controlled resident.

    Attributes:
        known_as: relation of the person to the controlled resident.
        distance: distance from the controlled resident, in tiles (a diagonal step counts as one) or in steps along
            roads.
    """

    name: str
    doing: str
    place: str
    asleep: bool
    talks_with: str
    known_as: str
    distance: int


class ThingSeen(Frozen):
    """An object in sight; `condition`: "" if nothing is wrong with it; `used_by`: names of the people who use it."""

    address: str
    name: str
    condition: str
    danger: bool
    used_by: tuple[str, ...]
    distance: int


class PlaceKnown(Frozen):
    """A known place; `hours`: "" if it is always open; `open`: whether the resident may enter it now."""

    address: str
    name: str
    hours: str
    open: bool


class Line(Frozen):
    """A line of a talk."""

    by: str
    text: str


class Planned(Frozen):
    """A part of the day's plan, with its times."""

    start: str
    end: str
    what: str
    place: str


class Surroundings(Frozen):
    """Position, activity, surroundings, talk and events of a controlled resident.

    Attributes:
        until: time at which the activity ends; "" if no end is set.
        place: address of the narrowest place around the resident.
        where: the same place in words.
        talks_with: the resident who waits for an answer; "" if none waits.
        answer_by: the time until which `talks_with` waits; "" if none waits.
        talk: the lines of the talk with `talks_with`.
        plan: the rest of the day's plan, including agreements.
    """

    name: str
    person: str
    step: int
    time: str
    place: str
    where: str
    spot: tuple[int, int]
    doing: str
    on_the_way: bool
    until: str
    talks_with: str
    answer_by: str
    talk: tuple[Line, ...]
    people: tuple[PersonSeen, ...]
    things: tuple[ThingSeen, ...]
    places: tuple[PlaceKnown, ...]
    plan: tuple[Planned, ...]
    happened: tuple[Happening, ...] = ()


def people_around(town: OpenTown, resident: Resident) -> list[Resident]:
    """Return the people in sight, the nearest first."""
    setting, step = town.setting, max(town.step, 0)
    spot = resident.state.spot(step)
    seen = [
        (setting.world.distance(spot, there), other.name, other)
        for other in town.residents.values()
        if other is not resident and is_here(other) and is_in_sight(setting, spot, there := other.state.spot(step))
    ]
    return [other for _, _, other in sorted(seen, key=lambda each: each[:2])]


async def survey(town: OpenTown, resident: Resident, since: int | None) -> Surroundings:
    """Return a resident's surroundings, and the events after the step `since`; None: no events."""
    setting, state, step = town.setting, resident.state, max(town.step, 0)
    spot = state.spot(step)
    place, act = setting.world.address_at(spot), state.act
    return Surroundings(
        name=resident.name,
        person=state.embodied,
        step=town.step,
        time=setting.when(step).isoformat(),
        place=str(place),
        where=words_of(str(place)),
        spot=spot,
        doing=doing(state),
        on_the_way=act is not None and not act.has_arrived(step),
        until=f"{setting.when(act.until):%H:%M}" if act and not act.why else "",
        talks_with=state.talks_with if state.talk else "",
        answer_by=f"{setting.when(act.until - 1):%H:%M}" if act and state.talk else "",
        talk=tuple(Line(by=line.by, text=line.text) for line in state.talk),
        people=tuple(_seen(town, resident, other) for other in people_around(town, resident)),
        things=tuple(_things(town, resident)),
        places=tuple(_places(town, resident)),
        plan=tuple(_plan(town, resident)),
        happened=() if since is None else tuple([each async for each in happenings(town, resident, since)]),
    )


def _seen(town: OpenTown, resident: Resident, other: Resident) -> PersonSeen:
    setting, step, state = town.setting, max(town.step, 0), other.state
    there = state.spot(step)
    relation = next((each.what for each in resident.person.relations if each.name == other.name), "")
    return PersonSeen(
        name=other.name,
        doing=doing(state),
        place=words_of(str(setting.world.address_at(there))),
        asleep=state.asleep,
        talks_with=state.partner,
        known_as=relation,
        distance=setting.world.distance(resident.state.spot(step), there),
    )


def _things(town: OpenTown, resident: Resident) -> Iterator[ThingSeen]:
    """Yield the things in sight, the nearest first."""
    setting, step, world = town.setting, max(town.step, 0), town.setting.world
    spot = resident.state.spot(step)
    acts = {other.name: other.state.act for other in people_around(town, resident)}
    found = []
    for address in {str(world.places[number]) for _, number in world.objects_in(world.arena_of(spot))}:
        near = nearest_spot(setting, address, spot)
        if is_in_sight(setting, spot, near):
            condition = town.conditions.get(address)
            used_by = tuple(
                name for name, act in acts.items() if act and act.place == address and act.has_arrived(step)
            )
            thing = ThingSeen(
                address=address,
                name=address.rpartition(":")[2],
                condition=condition.text if condition else "",
                danger=bool(condition and condition.danger),
                used_by=used_by,
                distance=world.distance(spot, near),
            )
            found.append(thing)
    yield from sorted(found, key=lambda each: (each.distance, each.address))


def _places(town: OpenTown, resident: Resident) -> Iterator[PlaceKnown]:
    setting, person = town.setting, resident.person
    when = setting.when(max(town.step, 0))
    for address, place in known_places(setting, person, resident.state.knows, when):
        at = setting.addresses[address]
        is_open = setting.rules.is_open(at, when) or person.name in setting.rules.owners(at)
        yield PlaceKnown(
            address=address,
            name=place.words,
            hours=hours_on(setting.rules, at, when),
            open=is_open and may_use(setting, person, address),
        )


def _plan(town: OpenTown, resident: Resident) -> Iterator[Planned]:
    setting, state, step = town.setting, resident.state, max(town.step, 0)
    if state.day != setting.day(step):
        return
    for block in state.blocks:
        if block.end > setting.minute(step):
            start, end = (clock(each % DAY_MINUTES) for each in (block.start, block.end))
            yield Planned(start=start, end=end, what=block.what, place=words_of(block.place) if block.place else "")
