"""Events of a town. The state of residents and of the town is derived from these rows (state.py).

Each row names its step. The canonical order is (step, mind, row), changes of objects last, regardless of the order of
writing. No row contains a time of the machine.
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
"""Author of rows that belong to no resident."""
JOURNAL = StreamName("town", TOWN)
"""The stream of rows that belong to no resident."""


MENDED = "repaired"
"""Stored condition of an act that repairs its object."""


class Block(BaseModel):
    """A block of a day's plan.

    Attributes:
        start, minutes: start in minutes from midnight, and duration.
        place: the address; "": anywhere.
        asleep: the resident perceives nothing.
        fine: a task of some minutes; it is not broken down any further.
        leaves: the condition in which it leaves its object; "": unchanged, MENDED: in order.
        danger: that condition is a danger.
        why: the plan, a reaction to a percept, or waiting.
        sees_to: the address of the percept for reactions.
        busy: the resident cannot be spoken to. weight: importance of having done it, 1 to 10; 0: not known.
        hour: a part of an hourly plan; it is broken down into tasks.
        state: the state of its object during the act, such as "in use".
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
        since, until: first and last step, including the way there.
        path: the tiles of the way since the step `since`, one per step (`routes.read_walk`).
        why: the origin: the plan, a talk, waiting, or a percept.
        sees_to: the address of the percept for reactions.
        busy, weight, state: from the `Block`; the state ends with the act.
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
        """Return the resident's position at a step."""
        tiles = read_walk(self.path)
        return tiles[max(0, min(step - self.since, len(tiles) - 1))]

    def needs(self, place: str) -> bool:
        """Return whether it takes place at a thing, or in a room."""
        return self.place == place or self.place.startswith(f"{place}:")

    def has_arrived(self, step: int) -> bool:
        """Return whether the way there is over."""
        return step >= self.arrives

    @property
    def arrives(self) -> int:
        """The step at which the way there is over."""
        return self.since + len(read_walk(self.path)) - 1


class TownEvent(Event):
    """An event of a town at a step."""

    step: int


class TownBegan(TownEvent):
    """A town began; written once, to the town's own stream."""

    kind = "town_began"
    seed: int
    start: float
    """The moment of step 0, in seconds since 1970; the town's time counts as UTC."""
    profile: Quotes[str]
    """As JSON."""
    source: Quotes[str]
    """The town's world, rules and people, as JSON."""


class MovedIn(TownEvent):
    """A resident's first position."""

    kind = "moved_in"
    spot: tuple[int, int]
    knows: NoWords[tuple[str, ...]]
    """Addresses of known places."""


class TownImported(TownEvent):
    """A town continues a saved simulation after this step; in the town's own stream."""

    kind = "town_imported"
    source: NoWords[str]
    """The simulation from which the save was forked."""


class BroughtIn(TownEvent):
    """A resident was imported from a saved simulation."""

    kind = "brought_in"
    seen: Quotes[tuple[tuple[str, str, str], ...]]
    """The last percepts."""
    gathered: float
    """Importance since the last reflection."""
    rested: NoWords[dict[str, int]]
    """Residents that it will not talk to before a step."""


class Perceived(TownEvent):
    """A resident's new percepts."""

    kind = "resident_perceived"
    seen: Quotes[tuple[tuple[str, str, str], ...]]
    """Subject, predicate, object."""
    records: NoWords[tuple[str, ...]] = ()
    gathered: float = 0.0
    """Their total importance."""
    places: NoWords[tuple[str, ...]] = ()
    """Addresses that are new to the resident."""
    gone: NoWords[tuple[str, ...]] = ()
    """Known addresses that no longer exist."""
    unrated: NoWords[tuple[str, ...]] = Field((), exclude_if=not_)
    """Records that are rated later, in a batch."""


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
    """A part of the day was planned again: broken down, or changed by an event."""

    kind = "tasks_planned"
    blocks: tuple[Block, ...]
    """They replace the plan from the start of the first to the end of the last."""
    because: Quotes[str] = ""


class Acted(TownEvent):
    """A resident began to do something."""

    kind = "resident_acted"
    act: Act
    because: Quotes[str] = ""
    """The reason in words."""


class Decided(TownEvent):
    """A resident decided whether to react to a percept."""

    kind = "resident_decided"
    about: Quotes[str]
    other: NoWords[str] = ""
    """The resident that it is about."""
    place: NoWords[str] = ""
    """The object that it is about."""
    question: Quotes[str]
    p: float
    yes: bool
    recalled: NoWords[tuple[tuple[str, float], ...]] = ()
    """Ids of the recalled records, with their scores."""
    choice: NoWords[str] = Field("", exclude_if=not_)
    """The chosen answer of several; `p` is its probability."""


class SpokenLine(BaseModel):
    """A line of a conversation; `told`: ids of the speaker's records that it passes on."""

    model_config = ConfigDict(frozen=True)

    by: NoWords[str]
    text: Quotes[str]
    told: NoWords[tuple[str, ...]] = ()


class Talked(TownEvent):
    """Two residents talked; written to the streams of both."""

    kind = "residents_talked"
    partner: NoWords[str]
    lines: tuple[SpokenLine, ...]
    until: int
    records: NoWords[tuple[str, ...]] = ()
    known: NoWords[tuple[str, ...]] = ()
    """Records of the resident that the other repeated."""
    gathered: float = 0.0
    """Total importance."""
    unrated: NoWords[tuple[str, ...]] = Field((), exclude_if=not_)
    """Records that are rated later, in a batch."""


class ActFinished(TownEvent):
    """A resident finished an act and remembers it."""

    kind = "act_finished"
    what: Quotes[str]
    start: int
    """The minute of the day at which it began."""
    minutes: int
    records: NoWords[tuple[str, ...]] = ()


class MemoriesRated(TownEvent):
    """Unrated memories of a resident were rated in a batch."""

    kind = "memories_rated"
    records: NoWords[tuple[str, ...]]
    ratings: tuple[int, ...]
    gathered: float
    """Their total importance."""


class IdentityRenewed(TownEvent):
    """A resident's summary was derived from its memory again."""

    kind = "identity_renewed"
    summary: Quotes[str]
    evidence: NoWords[tuple[str, ...]] = ()


class Overheard(TownEvent):
    """A resident heard a talk of others, or what a user said to all."""

    kind = "talk_overheard"
    speakers: NoWords[tuple[str, str]]
    records: NoWords[tuple[str, ...]] = ()
    said: Quotes[str] = Field("", exclude_if=not_)
    """The words that the first speaker said to all."""
    gathered: float = Field(0.0, exclude_if=not_)
    """Importance, unless it is rated later."""


class Met(TownEvent):
    """Two residents met in a scene; written to the streams of both."""

    kind = "residents_met"
    other: NoWords[str]
    outcome: Literal["talked", "passed", "declined"]
    """They talked, passed by, or one of them declined."""
    by: NoWords[str] = ""
    """Who declined or ended it."""
    records: NoWords[tuple[str, ...]] = ()
    gathered: float = 0.0
    """Total importance."""


class Asked(TownEvent):
    """A resident's use of models in a step, for the daily budget."""

    kind = "resident_asked"
    calls: int
    tokens: int
    """In and out, estimated from the number of characters, so that it does not depend on the model."""


class Resolved(TownEvent):
    """A resident updated its present concerns."""

    kind = "resident_resolved"
    currently: Quotes[str]


class VisitorCame(TownEvent):
    """A visitor became known to the town; in the town's own stream."""

    kind = "visitor_came"
    visitors: Quotes[tuple[str, ...]]
    """All visitors until now, each as the JSON of a `Person`."""


class Embodied(TownEvent):
    """A user controls a resident from now on."""

    kind = "resident_embodied"
    person: NoWords[str]
    """The user."""


class Released(TownEvent):
    """A user no longer controls a resident: it lives by itself, a visitor leaves."""

    kind = "resident_released"
    person: NoWords[str]


class Spoke(TownEvent):
    """A line of a talk with a user that is not over; written to the streams of both.

    When the talk is over, all lines are in a `Talked` or `Declined`.
    """

    kind = "resident_spoke"
    partner: NoWords[str]
    line: SpokenLine
    until: int
    """The step at which the talk times out."""


class Declined(TownEvent):
    """A resident was spoken to and did not answer; written to the streams of both."""

    kind = "talk_declined"
    partner: NoWords[str]
    by: NoWords[str]
    """Who did not answer."""
    lines: tuple[SpokenLine, ...]
    records: NoWords[tuple[str, ...]] = ()
    gathered: float = 0.0


class ObjectChanged(TownEvent):
    """The condition of an object changed; in the town's own stream."""

    kind = "object_changed"
    place: NoWords[str]
    condition: Quotes[str]
    """In words; "": in order."""
    danger: bool = False
    """It wakes sleepers in the room, and has priority."""
    by: NoWords[str] = ""


class StoodIn(TownEvent):
    """A rule replaced an unreadable reply; only in logs of earlier versions."""

    kind = "stood_in"
    prompt: NoWords[str]
    reason: Quotes[str]


class TownRested(TownEvent):
    """Nothing happened up to this step, which was reported to a user; in the town's own stream."""

    kind = "town_rested"


class TownSaved(TownEvent):
    """The state after a step, to open the town quickly; in the town's own stream."""

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
