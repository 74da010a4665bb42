"""What can happen in a town. Residents and the town are what these rows make of them (town/state).

Each row says at which step it happened. Canonical order is (step, mind, row), things last, whoever was first to write;
no row holds a time of the machine.
"""

from __future__ import annotations

from operator import not_
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from mindstream.log.declared import NoWords, Quotes
from mindstream.log.events import Event
from mindstream.log.names import StreamName
from mindstream_town.world.routes import read_walk

TOWN = "town"
"""By whom what belongs to no resident is."""
JOURNAL = StreamName("town", TOWN)
"""The stream of what belongs to no resident."""


MENDED = "repaired"
"""What is kept of an act that leaves its object as it should be."""


class Block(BaseModel):
    """A stretch of a day's plan.

    Attributes:
        start, minutes: from midnight, and how long, in minutes.
        place: the address where it is to be done; "" where it does not matter.
        asleep: nothing is perceived in it.
        fine: a task of some minutes; it is not broken down any more.
        leaves: in which condition it leaves the object it is done at; "" leaves it as it is, MENDED as it should be.
        danger: that condition is a danger.
        why: the day's plan, or something that was seen: it does something about it, or waits.
        sees_to: the address of what was seen; "" where it goes by plan.
        busy: nobody can be spoken to in it. weight: how much it will matter to have done it, 1 to 10; 0: nobody said.
        hour: a part of an hour-by-hour plan; it is broken down into tasks.
        state: what the thing it is done at is while it is done, as in "in use"; "" nothing to speak of.
    """

    model_config = ConfigDict(frozen=True)

    start: int
    minutes: int
    what: Quotes[str]
    place: NoWords[str] = ""
    asleep: bool = False
    fine: bool = False
    leaves: Quotes[str] = ""
    danger: bool = False
    why: Literal["plan", "react", "wait"] = "plan"
    sees_to: NoWords[str] = ""
    busy: bool = Field(False, exclude_if=not_)
    weight: int = Field(0, exclude_if=not_)
    hour: bool = Field(False, exclude_if=not_)
    state: Quotes[str] = Field("", exclude_if=not_)

    @property
    def end(self) -> int:
        """The minute at which it ends."""
        return self.start + self.minutes


class Act(BaseModel):
    """What a resident does.

    Attributes:
        since, until: the steps between which it is done, on the way there included.
        path: the tiles walked since the step `since`, one a step, the first where it began (see town/world/walk).
        why: what it comes from: the plan, a talk, a wait, or something that was perceived.
        sees_to: the address of what was perceived, where it is done about that.
        busy, weight, state: as of the `Block` that it follows; its thing's state is over when the act is.
    """

    model_config = ConfigDict(frozen=True)

    what: Quotes[str]
    place: NoWords[str] = ""
    since: int
    until: int
    path: NoWords[str]
    asleep: bool = False
    why: Literal["plan", "talk", "wait", "react", ""] = "plan"
    leaves: Quotes[str] = ""
    danger: bool = False
    sees_to: NoWords[str] = ""
    busy: bool = Field(False, exclude_if=not_)
    weight: int = Field(0, exclude_if=not_)
    state: Quotes[str] = Field("", exclude_if=not_)

    def spot(self, step: int) -> tuple[int, int]:
        """Return where it is done at a step."""
        tiles = read_walk(self.path)
        return tiles[max(0, min(step - self.since, len(tiles) - 1))]

    def needs(self, place: str) -> bool:
        """Tell whether it is done at a thing, or in a room."""
        return self.place == place or self.place.startswith(f"{place}:")

    def has_arrived(self, step: int) -> bool:
        """Tell whether the way there is behind."""
        return step >= self.arrives

    @property
    def arrives(self) -> int:
        """The step at which the way there is behind."""
        return self.since + len(read_walk(self.path)) - 1


class TownEvent(Event):
    """Something that happened in a town.

    Attributes:
        step: at which step.
    """

    step: int


class TownBegan(TownEvent):
    """A town began to live; written once, to the town's own stream."""

    kind = "town_began"
    seed: int
    start: float
    """The moment of step 0, in seconds since 1970; the town's own time is taken for UTC."""
    profile: Quotes[str]
    """As JSON."""
    source: Quotes[str]
    """The town file that it is made of, as JSON."""


class MovedIn(TownEvent):
    """A resident stands somewhere at the beginning."""

    kind = "moved_in"
    spot: tuple[int, int]
    knows: NoWords[tuple[str, ...]]
    """Addresses that it knows."""


class TownImported(TownEvent):
    """A town goes on from a saved simulation, after this step; in the town's own stream."""

    kind = "town_imported"
    source: NoWords[str]
    """What that simulation was forked from."""


class BroughtIn(TownEvent):
    """A resident comes from a saved simulation, in the midst of its life."""

    kind = "brought_in"
    seen: Quotes[tuple[tuple[str, str, str], ...]]
    """Its last percepts."""
    gathered: float
    """How much importance has gathered since it last reflected."""
    rested: NoWords[dict[str, int]]
    """With whom it will not talk again before a step."""


class Perceived(TownEvent):
    """What a resident saw and that was new to it."""

    kind = "resident_perceived"
    seen: Quotes[tuple[tuple[str, str, str], ...]]
    """Subject, predicate, object."""
    records: NoWords[tuple[str, ...]] = ()
    gathered: float = 0.0
    """How much importance it has together."""
    places: NoWords[tuple[str, ...]] = ()
    """Addresses that it sees for the first time."""
    gone: NoWords[tuple[str, ...]] = ()
    """Addresses that it knew and that are there no more."""
    unrated: NoWords[tuple[str, ...]] = Field((), exclude_if=not_)
    """Which of its records are rated later, many in one."""


class DayPlanned(TownEvent):
    """A resident planned its day."""

    kind = "day_planned"
    day: int
    """Days since the town began."""
    currently: Quotes[str]
    broad: Quotes[tuple[str, ...]]
    blocks: tuple[Block, ...]
    records: NoWords[tuple[str, ...]] = ()


class TasksPlanned(TownEvent):
    """A part of the day was planned anew: broken down as it came near, or changed by what happened."""

    kind = "tasks_planned"
    blocks: tuple[Block, ...]
    """They take the place of whatever was planned from the first one's start to the last one's end."""
    because: Quotes[str] = ""


class Acted(TownEvent):
    """A resident began to do something."""

    kind = "resident_acted"
    act: Act
    because: Quotes[str] = ""
    """What led to it, in words."""


class Decided(TownEvent):
    """A resident decided whether to do something about what it saw."""

    kind = "resident_decided"
    about: Quotes[str]
    other: NoWords[str] = ""
    """Whom it was to talk to."""
    place: NoWords[str] = ""
    """The object that it was about."""
    question: Quotes[str]
    p: float
    yes: bool
    recalled: NoWords[tuple[tuple[str, float], ...]] = ()
    """What came to mind (ids of records), with its score."""
    choice: NoWords[str] = Field("", exclude_if=not_)
    """Which of several answers it was; `p` is its probability."""


class SpokenLine(BaseModel):
    """A line of a conversation.

    Attributes:
        told: the ids of those of the speaker's records that it passes on.
    """

    model_config = ConfigDict(frozen=True)

    by: NoWords[str]
    text: Quotes[str]
    told: NoWords[tuple[str, ...]] = ()


class Talked(TownEvent):
    """Two residents talked; it stands in the streams of both."""

    kind = "residents_talked"
    partner: NoWords[str]
    lines: tuple[SpokenLine, ...]
    until: int
    records: NoWords[tuple[str, ...]] = ()
    known: NoWords[tuple[str, ...]] = ()
    """What one had in memory before, and was told again."""
    gathered: float = 0.0
    """How much importance it has."""
    unrated: NoWords[tuple[str, ...]] = Field((), exclude_if=not_)
    """Which of its records are rated later, many in one."""


class ActFinished(TownEvent):
    """A resident has done something, and remembers it as it remembers what it sees of others."""

    kind = "act_finished"
    what: Quotes[str]
    start: int
    """The minute of the day at which it began."""
    minutes: int
    records: NoWords[tuple[str, ...]] = ()


class MemoriesRated(TownEvent):
    """What a resident saw, did and said since the last time was rated, all in one."""

    kind = "memories_rated"
    records: NoWords[tuple[str, ...]]
    ratings: tuple[int, ...]
    gathered: float
    """How much importance it has together."""


class IdentityRenewed(TownEvent):
    """A resident's summary of itself was made anew from what it remembers."""

    kind = "identity_renewed"
    summary: Quotes[str]
    evidence: NoWords[tuple[str, ...]] = ()


class Overheard(TownEvent):
    """Somebody who was near heard what two others said to each other, or what a person said to all."""

    kind = "talk_overheard"
    speakers: NoWords[tuple[str, str]]
    records: NoWords[tuple[str, ...]] = ()
    said: Quotes[str] = Field("", exclude_if=not_)
    """Word for word, by the first of the two, to all who were near."""
    gathered: float = Field(0.0, exclude_if=not_)
    """How much importance it has, where it is not rated later."""


class Met(TownEvent):
    """Two residents met in a scene, whether they talked or not; it stands in the streams of both."""

    kind = "residents_met"
    other: NoWords[str]
    outcome: Literal["talked", "passed", "declined"]
    """They talked, went by with a nod at most, or one of them did not want to."""
    by: NoWords[str] = ""
    """Who did not want to, or broke it off."""
    records: NoWords[tuple[str, ...]] = ()
    gathered: float = 0.0
    """How much importance it has."""


class Asked(TownEvent):
    """What was asked of models for a resident in a step, as a day's budget counts it."""

    kind = "resident_asked"
    calls: int
    tokens: int
    """In and out, estimated from the letters: the same for the same words."""


class Resolved(TownEvent):
    """A resident has thought about its days, and sees anew what these are about."""

    kind = "resident_resolved"
    currently: Quotes[str]


class VisitorCame(TownEvent):
    """Somebody whom a person lives, and who lives nowhere in the town, is known to it; in the town's own stream."""

    kind = "visitor_came"
    visitors: Quotes[tuple[str, ...]]
    """All who have come so far, each as JSON (residents/person)."""


class Embodied(TownEvent):
    """A person lives as somebody from now on."""

    kind = "resident_embodied"
    person: NoWords[str]
    """Who."""


class Released(TownEvent):
    """Nobody lives as somebody any more: a resident is its own again, a visitor is gone."""

    kind = "resident_released"
    person: NoWords[str]


class Spoke(TownEvent):
    """Something was said in a talk of which nobody knows yet how it goes on; it stands in the streams of both.

    When it is over, all of it is a `Talked`, or a `Declined`.
    """

    kind = "resident_spoke"
    partner: NoWords[str]
    line: SpokenLine
    until: int
    """So long it waits to be gone on with."""


class Declined(TownEvent):
    """Somebody was spoken to and did not answer; it stands in the streams of both."""

    kind = "talk_declined"
    partner: NoWords[str]
    by: NoWords[str]
    """Who did not answer."""
    lines: tuple[SpokenLine, ...]
    records: NoWords[tuple[str, ...]] = ()
    gathered: float = 0.0


class ObjectChanged(TownEvent):
    """An object of the town is in another condition; in the town's own stream."""

    kind = "object_changed"
    place: NoWords[str]
    condition: Quotes[str]
    """In words; "" where it is as it should be."""
    danger: bool = False
    """It wakes who sleeps beside it, and comes before everything."""
    by: NoWords[str] = ""


class StoodIn(TownEvent):
    """A reply could not be read, and a rule stood in for the model: in logs of before, never written any more."""

    kind = "stood_in"
    prompt: NoWords[str]
    reason: Quotes[str]


class TownRested(TownEvent):
    """Nothing happened up to this step, and somebody was told so; in the town's own stream."""

    kind = "town_rested"


class TownSaved(TownEvent):
    """The state of all after a step, so that it need not be made again from the first row; in the town's own stream."""

    kind = "town_saved"
    of_all = True
    state: Quotes[str]
    """As JSON."""


EVENTS: tuple[type[Event], ...] = (
    TownBegan, TownImported, MovedIn, BroughtIn,
    Perceived, DayPlanned, TasksPlanned, Acted, Decided, Talked, Met, Asked, Resolved,
    ActFinished, MemoriesRated, IdentityRenewed, Overheard, ObjectChanged, StoodIn, TownSaved,
    VisitorCame, Embodied, Released, Spoke, Declined, TownRested,
)  # fmt: skip
