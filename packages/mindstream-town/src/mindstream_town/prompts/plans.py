"""Prompts that plan a resident's day, the rest of it, and the tasks of an hour."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Annotated, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mindstream import chance
from mindstream.models.prompt import Prompt, rule
from mindstream_town.events import MENDED
from mindstream_town.prompts.context import Memory
from mindstream_town.world.hours import DAY_MINUTES, clock, minute_of

WAKE, BED, AT_HOME = 7 * 60, 23 * 60, "being at home"
LEAST_AWAKE = 60
"""Minimum minutes between getting up and going to bed."""
GAP = 30
"""Minimum minutes without an item that are spent at home."""
Clock = Annotated[str, Field(pattern=r"^([01]?\d|2[0-4]):[0-5]\d$", description="As HH:MM.")]


class Place(BaseModel):
    """A place that a person knows and may enter.

    Attributes:
        words: as in "library of Oak Hill College".
        things: its objects. home: it is the person's home. own: it belongs to the person.
        hours: today's opening hours; "": always open or not known.
        address: as in the town's file; not part of the prompt.
    """

    model_config = ConfigDict(frozen=True)

    words: str
    things: tuple[str, ...] = ()
    home: bool = False
    own: bool = False
    hours: str = ""
    address: str = ""

    @property
    def line(self) -> str:
        """One line: `cafe of Oak Cafe (open 08:00-20:00): counter, piano`."""
        whose = "at home" if self.home else "your own" if self.own else ""
        more = ", ".join(each for each in (whose, self.hours and _hours(self.hours)) if each)
        things = f": {', '.join(self.things)}" if self.things else ""
        return f"{self.words}{f' ({more})' if more else ''}{things}"


def _hours(hours: str) -> str:
    return "closed today" if hours == "closed" else f"open {hours}"


class Item(BaseModel):
    """A part of a day."""

    model_config = ConfigDict(frozen=True)

    start: Clock
    minutes: int = Field(ge=5, le=1_440)
    what: str = Field(min_length=1, max_length=200, description='What is done, as in "having lunch".')
    place: int = Field(0, ge=0, le=10_000, description="The number of the place; 0: at home, or anywhere.")
    keeps: int = Field(0, ge=0, le=10_000, description="The number of the memory whose appointment it is; 0: none.")


class Usual(BaseModel):
    """A part of a usual day, in minutes from midnight, on past the next one.

    Attributes:
        place: the number of its place; 0: none of them. duty: work or school.
        keeps: the number of the memory whose appointment takes its time.
    """

    model_config = ConfigDict(frozen=True)

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
        """The same as an item of a plan."""
        minutes = max(5, self.end - self.start)
        return Item(start=clock(self.start), minutes=minutes, what=self.what, place=self.place, keeps=self.keeps)

    def around(self, other: Usual) -> list[Usual]:
        """Return the rest before and after another part."""
        spans = (self.start, min(self.end, other.start)), (max(self.start, other.end), self.end)
        return [self.model_copy(update={"start": start, "end": end}) for start, end in spans if start < end]


class DayPlan(BaseModel):
    """A day."""

    model_config = ConfigDict(frozen=True)

    wake: Clock
    bed: Clock
    items: list[Item] = Field(min_length=1, max_length=24, description="From getting up to going to bed, in order.")
    currently: str = Field("", max_length=800, description="What the person is about these days, as of today.")

    @model_validator(mode="after")
    def _has_waking_hours(self) -> Self:
        check_waking_hours(self.wake, self.bed, [each.start for each in self.items])
        return self


def check_waking_hours(wake: str, bed: str, starts: Sequence[str]) -> None:
    """Raise ValueError for a day without waking hours, or without an item in them."""
    awake = (minute_of(bed) - minute_of(wake)) % DAY_MINUTES
    if awake < LEAST_AWAKE:
        raise ValueError(
            f"the day from wake {wake} to bed {bed} has {awake} waking minutes: give the times of getting up and of"
            " going to bed"
        )
    if all((minute_of(each) - minute_of(wake)) % DAY_MINUTES >= awake for each in starts):
        raise ValueError(f"nothing begins between wake {wake} and bed {bed}: plan those hours")


class PlanDay(Prompt[DayPlan]):
    """What will this person do today?"""

    role: ClassVar[str] = "planner"

    who: str
    identity: str
    date: str
    memories: tuple[Memory, ...] = ()
    """Memories of the days before and of today, each after the day of its creation, numbered from 1."""
    yesterday: tuple[str, ...] = ()
    """Yesterday in broad strokes."""
    places: tuple[Place, ...]
    """Known places, numbered from 1."""
    usual: tuple[Usual, ...] = ()
    """The usual day for this weekday."""


def say_date(day: datetime.date) -> str:
    """Return a date as in `PlanDay.date`: "Tuesday February 14, 2023"."""
    return f"{day:%A %B} {day.day}, {day.year}"


@rule(PlanDay)
def keep_the_usual_day(ask: PlanDay) -> DayPlan:
    """Without a model: the usual day, home in the gaps, and appointments that the person hosts or has agreed to."""
    wake, bed = (ask.usual[0].start, ask.usual[-1].end) if ask.usual else (WAKE, BED)
    day = list(ask.usual)
    for number, memory in enumerate(ask.memories, 1):
        at = memory.appointment
        if at is None or say_date(at.start) != ask.date or ask.who not in (at.host, *at.who):
            continue
        start, length = at.start.hour * 60 + at.start.minute, int((at.end - at.start).total_seconds()) // 60
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


class RestOfDay(BaseModel):
    """What is left of a day."""

    model_config = ConfigDict(frozen=True)

    items: list[Item] = Field(
        default_factory=list, max_length=16, description="From now to going to bed, in order; empty: as planned."
    )


class PlanRest(Prompt[RestOfDay]):
    """What will this person do from now on?"""

    role: ClassVar[str] = "planner"

    who: str
    identity: str
    when: str
    done: tuple[str, ...] = ()
    """The last events, the oldest first."""
    planned: tuple[str, ...] = ()
    """The plan from now on, as `HH:MM what`."""
    places: tuple[Place, ...]
    """Known places, numbered from 1."""


@rule(PlanRest)
def keep_the_plan(ask: PlanRest) -> RestOfDay:  # noqa: ARG001
    """Without a model: the plan stays."""
    return RestOfDay()


class Task(BaseModel):
    """A task of some minutes."""

    model_config = ConfigDict(frozen=True)

    minutes: int = Field(ge=1, le=240)
    what: str = Field(min_length=1, max_length=200)
    place: int = Field(0, ge=0, le=10_000, description="The number of the thing it is done at; 0: none.")
    leaves: str = Field("", max_length=80, description="The condition in which it leaves that thing; mostly empty.")
    danger: bool = Field(False, description="That condition is a danger to people, as a fire is.")
    mends: bool = Field(False, description="With it that thing is as it should be again.")

    @property
    def condition(self) -> str:
        """The condition in which it leaves the thing, as acts store it: "" unchanged, MENDED in order."""
        return MENDED if self.mends else self.leaves.strip()


class Tasks(BaseModel):
    """Tasks, one after the other."""

    model_config = ConfigDict(frozen=True)

    tasks: list[Task] = Field(min_length=1, max_length=60)


class BreakDown(Prompt[Tasks]):
    """What does this person do in this part of the day, in tasks of 5 to 15 minutes?"""

    role: ClassVar[str] = "planner"

    who: str
    identity: str
    what: str
    where: str = ""
    """The place, in words."""
    is_home: bool = False
    """The place is the person's home."""
    when: str
    already: int = 0
    """Minutes of it that are over."""
    minutes: int
    around: tuple[str, ...]
    """Things that it can be done at, numbered from 1."""
    here: tuple[int, ...] = ()
    """The numbers of those at the place itself."""
    day: tuple[str, ...] = ()


A_TASK = 15


@rule(BreakDown)
def go_round(ask: BreakDown) -> Tasks:
    """Without a model: the planned activity in quarters of an hour, each at a thing of the place by a draw.

    At home without a particular activity, no thing is used.
    """
    tasks, left = list[Task](), ask.minutes
    things = () if ask.is_home and len(ask.here) > 1 else ask.here
    while left > 0:
        minutes = A_TASK if len(things) > 1 and left >= 2 * A_TASK else left
        at = chance.pick(things, ask.who, ask.what, ask.when, left) if things else 0
        tasks.append(Task(minutes=min(minutes, 240), what=ask.what, place=at))
        left -= tasks[-1].minutes
    return Tasks(tasks=tasks[:60])
