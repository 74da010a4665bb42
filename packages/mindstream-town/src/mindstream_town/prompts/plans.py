"""Prompts that plan a resident's day, the rest of a day, and the tasks of an hour; prompts that read the
descriptions in a town file (`town prepare`); memories and places in the form in which prompts show them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from mindstream import chance
from mindstream.frozen import Frozen
from mindstream.models.prompt import Prompt, rule
from mindstream_town.events import MENDED
from mindstream_town.residents.person import Appointment
from mindstream_town.world.world import DAY_MINUTES, clock, minute_of

MATTERS = 5.0
"""Minimum importance (1 to 10) of a memory that residents without a model tell others."""


class Memory(Frozen):
    """A memory in a prompt; a plain text is accepted instead.

    Attributes:
        written: the day on which the memory was created, in words; "": not shown.
        importance: from 1 to 10; 0: not rated.
        appointment: the appointment that the memory is about; None: the memory is about no appointment.
        where: the place of the appointment in words; "": not shown.
    """

    text: str
    written: str = ""
    importance: float = 0.0
    appointment: Appointment | None = None
    where: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        return {"text": given} if isinstance(given, str) else given

    @property
    def said(self) -> str:
        """The text of the memory, preceded by its day."""
        return f"({self.written}) {self.text}" if self.written else self.text

    @property
    def line(self) -> str:
        """The text with its appointment: `Ada bakes a cake (having tea, at the Inn, Wednesday 2024-05-01 16:00 to
        17:00, host: Ada, comes: Ben)`."""
        at = self.appointment
        if at is None:
            return self.said
        until = f"{at.end:%H:%M}" if at.end.date() == at.start.date() else f"{at.end:%Y-%m-%d %H:%M}"
        unnamed = [name for name in at.who if name not in self.text]
        parts = (
            at.what not in self.text and at.what,
            self.where and f"at {self.where}",
            f"{at.start:%A %Y-%m-%d %H:%M} to {until}",
            at.host and f"host: {at.host}",
            unnamed and f"comes: {', '.join(at.who)}",
        )
        return f"{self.said} ({', '.join(part for part in parts if part)})"


def _names(given: Any) -> Any:
    """Accept a single name or number as a list of one, and None or "" as an empty list."""
    if given is None or given == "":
        return []
    return [str(given)] if isinstance(given, str | int) else [str(each) for each in given]


Where = Annotated[list[str], BeforeValidator(_names), Field(max_length=4)]
"""A path of names such as `["Oak Cafe", "cafe", "counter"]`; `[]`: nowhere in particular.

A number alone refers to a line of the list in the prompt; small models may use it instead of spelling names.
"""


def path_of(names: object) -> str:
    """Return a place as prompts show it, without the name of the world: `Oak Cafe > cafe > counter`."""
    return " > ".join(str(names).split(":")[1:])


WAKE, BED, AT_HOME = 7 * 60, 23 * 60, "being at home"
LEAST_AWAKE = 60
"""Minimum minutes between getting up and going to bed, for a valid plan."""
GAP = 30
"""A gap in the plan of at least this many minutes is spent at home."""
Clock = Annotated[str, Field(pattern=r"^([01]?\d|2[0-4]):[0-5]\d$", description="As HH:MM.")]


class Place(Frozen):
    """A place that a person knows and may enter.

    Attributes:
        words: the place in words, such as "library of Oak Hill College".
        things: objects in the place.
        home: whether the place is the person's home.
        own: whether the person owns the place.
        hours: today's opening hours; "": always open, or not known.
        hosts: names of the residents of the place, if the person can only visit them.
        address: the address as in the town file; not part of the prompt.
    """

    words: str
    things: tuple[str, ...] = ()
    home: bool = False
    own: bool = False
    hours: str = ""
    hosts: tuple[str, ...] = ()
    address: str = ""

    @property
    def line(self) -> str:
        """One line: `cafe of Oak Cafe (open 08:00-20:00): counter, piano`."""
        visit = f"visiting {' and '.join(self.hosts)}" if self.hosts else ""
        whose = "at home" if self.home else "your own" if self.own else visit
        more = ", ".join(each for each in (whose, self.hours and _hours(self.hours)) if each)
        things = f": {', '.join(self.things)}" if self.things else ""
        return f"{self.words}{f' ({more})' if more else ''}{things}"


def _hours(hours: str) -> str:
    return "closed today" if hours == "closed" else f"open {hours}"


class Item(Frozen):
    """A part of a day."""

    start: Clock
    minutes: int = Field(ge=5, le=1_440)
    what: str = Field(min_length=1, max_length=200, description='What is done, as in "having lunch".')
    place: int = Field(0, ge=0, le=10_000, description="The number of the place; 0: at home, or anywhere.")
    keeps: int = Field(0, ge=0, le=10_000, description="The number of the memory whose appointment it is; 0: none.")


class Usual(Frozen):
    """A part of a usual day; times are minutes after midnight and may exceed 24 hours.

    Attributes:
        place: number of its place in the prompt; 0: none of these. duty: whether it is work or school.
        keeps: number of the memory whose appointment it is; 0: none.
    """

    start: int
    end: int
    what: str
    place: int = 0
    duty: bool = False
    keeps: int = 0

    @property
    def line(self) -> str:
        """One line: `09:00-12:00 serving guests (place 4, a duty)`."""
        more = ", ".join(each for each in (self.place and f"place {self.place}", self.duty and "a duty") if each)
        return f"{clock(self.start)}-{clock(self.end)} {self.what}{f' ({more})' if more else ''}"

    @property
    def item(self) -> Item:
        """The same part as an `Item` of a plan; it lasts at least 5 minutes."""
        minutes = max(5, self.end - self.start)
        return Item(start=clock(self.start), minutes=minutes, what=self.what, place=self.place, keeps=self.keeps)

    def around(self, other: Usual) -> list[Usual]:
        """Return what remains of this part before and after another part."""
        spans = (self.start, min(self.end, other.start)), (max(self.start, other.end), self.end)
        return [self.model_copy(update={"start": start, "end": end}) for start, end in spans if start < end]


class DayPlan(Frozen):
    """A resident's plan of a day."""

    wake: Clock
    bed: Clock
    items: list[Item] = Field(min_length=1, max_length=24, description="From getting up to going to bed, in order.")
    currently: str = Field("", max_length=800, description="What the person is about these days, as of today.")

    @model_validator(mode="after")
    def _has_waking_hours(self) -> Self:
        check_waking_hours(self.wake, self.bed, [each.start for each in self.items])
        return self


def check_waking_hours(wake: str, bed: str, starts: Sequence[str]) -> None:
    """Raise ValueError if a day has too few waking hours, or no item begins in them."""
    awake = (minute_of(bed) - minute_of(wake)) % DAY_MINUTES
    if awake < LEAST_AWAKE:
        raise ValueError(
            f"the day from wake {wake} to bed {bed} has {awake} waking minutes, but needs {LEAST_AWAKE}: `wake` is the"
            " time of getting up, `bed` that of going to bed"
        )
    if all((minute_of(each) - minute_of(wake)) % DAY_MINUTES >= awake for each in starts):
        raise ValueError(f"nothing begins between wake {wake} and bed {bed}: plan those hours")


class PlanDay(Prompt[DayPlan]):
    """What will this person do today?"""

    role = "planner"

    who: str
    identity: str
    date: str
    memories: tuple[Memory, ...] = ()
    """Memories of earlier days and of today, with the day of their creation, numbered from 1."""
    yesterday: tuple[str, ...] = ()
    """Yesterday in broad strokes."""
    places: tuple[Place, ...]
    """The places that the resident knows, numbered from 1."""
    usual: tuple[Usual, ...] = ()
    """The usual day for this weekday."""


def say_date(day: datetime.date) -> str:
    """Return a date in the form of `PlanDay.date`: "Tuesday February 14, 2023"."""
    return f"{day:%A %B} {day.day}, {day.year}"


@rule(PlanDay)
def keep_the_usual_day(ask: PlanDay) -> DayPlan:
    """Rule: follow the usual day, with the appointments that the person hosts or has accepted. Gaps of GAP minutes or
    more are spent at home."""
    wake, bed = (ask.usual[0].start, ask.usual[-1].end) if ask.usual else (WAKE, BED)
    day = list(ask.usual)
    for number, memory in enumerate(ask.memories, 1):
        at = memory.appointment
        if at is None or say_date(at.start) != ask.date or ask.who not in (at.host, *at.who):
            continue
        start, length = at.minute, int((at.end - at.start).total_seconds()) // 60
        agreed = Usual(start=start, end=start + length, what=at.what, keeps=number)
        day = [*(part for each in day for part in each.around(agreed)), agreed]
    day.sort(key=lambda each: each.start)
    bed = min(max(bed, *(each.end for each in day), 0), wake + DAY_MINUTES - 1)
    ends, starts = [wake, *(each.end for each in day)], [*(each.start for each in day), bed]
    gaps = zip(ends, starts, strict=True)
    day += [Usual(start=end, end=start, what=AT_HOME) for end, start in gaps if start - end >= GAP]
    day.sort(key=lambda each: each.start)
    ends = [*(each.start for each in day[1:]), bed]
    items = [each.model_copy(update={"end": end}).item for each, end in zip(day, ends, strict=True)]
    return DayPlan(wake=clock(wake), bed=clock(bed), items=items[:24])


class RestOfDay(Frozen):
    """A resident's new plan for the rest of a day."""

    items: list[Item] = Field(
        default_factory=list, max_length=16, description="From now to going to bed, in order; empty: as planned."
    )


class PlanRest(Prompt[RestOfDay]):
    """What will this person do from now on?"""

    role = "planner"

    who: str
    identity: str
    when: str
    done: tuple[str, ...] = ()
    """The last events, the oldest first."""
    planned: tuple[str, ...] = ()
    """The plan from now on, as `HH:MM what (place)`."""
    places: tuple[Place, ...]
    """The places that the resident knows, numbered from 1."""


@rule(PlanRest)
def keep_the_plan(ask: PlanRest) -> RestOfDay:  # noqa: ARG001
    """Rule: keep the plan."""
    return RestOfDay()


class Task(Frozen):
    """A task of some minutes."""

    minutes: int = Field(ge=1, le=240)
    what: str = Field(min_length=1, max_length=200)
    place: int = Field(0, ge=0, le=10_000, description="The number of the thing it is done at; 0: none.")
    leaves: str = Field("", max_length=80, description="The condition in which it leaves that thing; mostly empty.")
    danger: bool = Field(False, description="That condition is a danger to people, as a fire is.")
    mends: bool = Field(False, description="With it that thing is as it should be again.")

    @property
    def condition(self) -> str:
        """The condition in which the task leaves its object, as acts store it: "": unchanged; MENDED: repaired."""
        return MENDED if self.mends else self.leaves.strip()


class Tasks(Frozen):
    """Tasks, one after the other."""

    tasks: list[Task] = Field(min_length=1, max_length=60)


class BreakDown(Prompt[Tasks]):
    """What does this person do in this part of the day, in tasks of 5 to 15 minutes?"""

    role = "planner"

    who: str
    identity: str
    what: str
    where: str = ""
    """The place, in words."""
    is_home: bool = False
    """Whether the place is the person's home."""
    when: str
    already: int = 0
    """Minutes for which the activity has lasted already."""
    minutes: int
    around: tuple[str, ...]
    """Objects at which a task can be done, numbered from 1."""
    here: tuple[int, ...] = ()
    """Numbers of the objects at the place itself."""
    day: tuple[str, ...] = ()


A_TASK = 15


@rule(BreakDown)
def go_round(ask: BreakDown) -> Tasks:
    """Rule: do the planned activity.

    If the place has several objects, the activity is split into quarters of an hour, each at a random object. At home
    no object is used, unless the place is a single object.
    """
    tasks, left = list[Task](), ask.minutes
    things = () if ask.is_home and len(ask.here) > 1 else ask.here
    while left > 0:
        minutes = A_TASK if len(things) > 1 and left >= 2 * A_TASK else left
        at = chance.pick(things, ask.who, ask.what, ask.when, left) if things else 0
        tasks.append(Task(minutes=min(minutes, 240), what=ask.what, place=at))
        left -= tasks[-1].minutes
    return Tasks(tasks=tasks[:60])


Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
Number = Field(0, ge=0, le=100_000, description="Its number; 0: none.")


class DayPart(Frozen):
    """A part of a usual day."""

    start: Clock
    end: Clock
    what: str = Field(min_length=1, max_length=200)
    place: int = Number
    on: list[Weekday] = Field(default_factory=list, max_length=7)
    duty: bool = False


class Dated(Frozen):
    """An appointment that a resident's description mentions."""

    of: int = Number
    text: str = Field(min_length=1, max_length=1_000, description="One sentence that tells of it.")
    what: str = Field(min_length=1, max_length=200, description='What is done then, as in "having a party".')
    place: int = Number
    day: datetime.date
    start: Clock
    end: Clock
    host: str = ""
    who: list[str] = Field(default_factory=list, max_length=50)


class Acquaintance(Frozen):
    """A person whom the resident knows."""

    who: str
    kind: str = Field(min_length=1, max_length=100, description='As what: "wife", "neighbour".')


class ResidentKeys(Frozen):
    """The keys of a town file that can be read from a resident's description."""

    day: list[DayPart] = Field(min_length=1, max_length=60)
    bed: int = Number
    agreed: list[Dated] = Field(default_factory=list, max_length=20)
    knows: list[Acquaintance] = Field(default_factory=list, max_length=50)


class PrepareResident(Prompt[ResidentKeys]):
    """Which keys of a town file can be read from a resident's description?"""

    role = "planner"

    who: str
    prose: str
    sentences: tuple[str, ...] = ()
    """Memories from before the town began, numbered from 1."""
    home: str
    date: str
    places: tuple[str, ...]
    """Addresses of places and objects, numbered from 1."""
    people: tuple[str, ...]


Condition = Annotated[str, Field(min_length=1, max_length=80)]


class PlaceKeys(Frozen):
    """The missing keys of one place."""

    place: int = Field(ge=1, le=100_000, description="Its number.")
    purpose: list[Condition] = Field(default_factory=list, max_length=5)
    public: bool | None = None
    owners: list[str] = Field(default_factory=list, max_length=20)


class TownKeys(Frozen):
    """The missing keys of a town's places and things."""

    places: list[PlaceKeys] = Field(max_length=1_000)
    danger: list[Condition] = Field(min_length=1, max_length=40)
    fine: list[Condition] = Field(default_factory=list, max_length=40)


class PreparePlaces(Prompt[TownKeys]):
    """Which keys do the places of a town have?"""

    role = "planner"

    places: tuple[str, ...]
    """Addresses of places with their objects, numbered from 1."""
    people: tuple[str, ...]
    """Names of the residents with their homes and occupations."""
