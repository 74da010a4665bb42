"""Events of a town. The state of the town and of its residents is derived from the rows of these events (state.py).

Each row names its step. The canonical order of rows is by step, stream and row, with changes of objects last in a step;
it does not depend on the order of writing. No row contains a time of the machine.
"""

from __future__ import annotations

from operator import not_
from typing import Literal

from pydantic import Field

from mindstream.frozen import Frozen
from mindstream.identifiers import StreamName
from mindstream.log.declared import Name, Names, NoWords, Quotes
from mindstream.log.events import Event, add_kinds
from mindstream_town.world.routes import read_walk

TOWN = "town"
"""Author of the rows that belong to no resident."""
JOURNAL = StreamName("town", TOWN)
"""The stream of the rows that belong to no resident: the town's own stream."""


MENDED = "repaired"
"""Value of `Block.leaves` for an act that repairs its object."""


class Block(Frozen):
    """A block of a day's plan.

    Attributes:
        start, minutes: start in minutes after midnight, and duration in minutes.
        place: address of the place; "": anywhere.
        asleep: whether the resident sleeps, and so perceives nothing.
        fine: whether the block is not broken down any further. This holds for tasks of some minutes; if the town runs
            in scenes, for each part of a day.
        leaves: condition in which the block leaves its object; "": unchanged; MENDED: nothing is wrong with it.
        danger: whether the condition `leaves` is a danger.
        why: where the block comes from, which is the day's plan, a reaction to a percept, or waiting for a person or an
            object.
        sees_to: address of the object, or name of the person, that a reaction is about.
        busy: whether the resident must not be spoken to during the block.
        weight: importance of the memory of the block, 1 to 10; 0: not rated.
        hour: whether the block is part of an hourly plan, which is broken down into tasks later.
        state: state of the block's object during the act, such as "in use".
        seen: what others see of the act, if it is less than `what`; "": they see `what`.
        open: the question that the act answers, such as whether the projector runs; "": none.
        agreed: names of all who have agreed to do the act together; empty: the block is no appointment.
        whom: names of the act's partners, such as people to ask, tell or visit.
        secret: whether the act is planned because of a secret memory; others then know only `seen`.
        settled: whether a talk has already produced the result of the act.
    """

    start: int
    minutes: int
    what: Quotes[str]
    place: Name = ""
    asleep: bool = False
    fine: bool = False
    leaves: Quotes[str] = ""
    danger: bool = False
    why: Literal["plan", "react", "wait"] = "plan"
    sees_to: Name = ""
    busy: bool = Field(False, exclude_if=not_)
    weight: int = Field(0, exclude_if=not_)
    hour: bool = Field(False, exclude_if=not_)
    state: Quotes[str] = Field("", exclude_if=not_)
    seen: Quotes[str] = Field("", exclude_if=not_)
    open: Quotes[str] = Field("", exclude_if=not_)
    agreed: Names = Field((), exclude_if=not_)
    whom: Names = Field((), exclude_if=not_)
    secret: bool = Field(False, exclude_if=not_)
    settled: bool = Field(False, exclude_if=not_)

    @property
    def end(self) -> int:
        """The minute of the day at which the block ends."""
        return self.start + self.minutes


class Act(Frozen):
    """What a resident does from one step to another.

    Attributes:
        since, until: the first step, and the step at which the act ends; the walk to the place is included.
        path: tiles of the walk, one per step from `since` on (format: `routes.read_walk`).
        why: where the act comes from, which is the plan, a talk, waiting, or a percept; "": a user's command.
        sees_to: address of the object, or name of the person, that a reaction is about.
        busy, weight, state, seen, open, agreed, whom, secret: as in the `Block`; the state ends with the act.
    """

    what: Quotes[str]
    place: Name = ""
    since: int
    until: int
    path: Name
    asleep: bool = False
    why: Literal["plan", "talk", "wait", "react", ""] = "plan"
    leaves: Quotes[str] = ""
    danger: bool = False
    sees_to: Name = ""
    busy: bool = Field(False, exclude_if=not_)
    weight: int = Field(0, exclude_if=not_)
    state: Quotes[str] = Field("", exclude_if=not_)
    seen: Quotes[str] = Field("", exclude_if=not_)
    open: Quotes[str] = Field("", exclude_if=not_)
    agreed: Names = Field((), exclude_if=not_)
    whom: Names = Field((), exclude_if=not_)
    secret: bool = Field(False, exclude_if=not_)

    @property
    def outwardly(self) -> str:
        """The act as others see it."""
        return self.seen or self.what

    def spot(self, step: int) -> tuple[int, int]:
        """Return the resident's position at a step."""
        tiles = read_walk(self.path)
        return tiles[max(0, min(step - self.since, len(tiles) - 1))]

    def needs(self, place: str) -> bool:
        """Return whether the act takes place at this object, or in this room."""
        return self.place == place or self.place.startswith(f"{place}:")

    def has_arrived(self, step: int) -> bool:
        """Return whether the walk to the place is over."""
        return step >= self.arrives

    @property
    def arrives(self) -> int:
        """The step at which the walk to the place is over."""
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
    """The constants of the simulation, as JSON."""
    source: Quotes[str]
    """The town's world, rules, conditions, people and weather, as JSON."""


class MovedIn(TownEvent):
    """A resident's first position."""

    kind = "moved_in"
    spot: tuple[int, int]
    knows: Names
    """Addresses of the places that the resident knows."""


class TownImported(TownEvent):
    """The town continues a saved simulation, whose last step is this one. The event is in the town's own stream."""

    kind = "town_imported"
    source: Name
    """Name of the simulation from which the saved one was forked."""


class BroughtIn(TownEvent):
    """A resident was imported from a saved simulation."""

    kind = "brought_in"
    seen: Quotes[tuple[tuple[str, str, str], ...]]
    """The last percepts: subject, predicate, object."""
    gathered: float
    """Total importance of the memories since the last reflection."""
    rested: NoWords[dict[str, int]]
    """The residents that this resident begins no talk with for now, each with the step until which this holds."""


class Perceived(TownEvent):
    """What a resident perceived and learned in a step.

    The event has percepts, places that the resident did not know, and other new memories, such as the memory of an act
    in a scene.
    """

    kind = "resident_perceived"
    seen: Quotes[tuple[tuple[str, str, str], ...]]
    """Percepts: subject, predicate, object."""
    records: Names = ()
    gathered: float = 0.0
    """Total importance of these records; it counts toward the next reflection."""
    places: Names = ()
    """Addresses of places that the resident did not know before."""
    gone: Names = ()
    """Addresses of known places that no longer exist."""
    unrated: Names = Field((), exclude_if=not_)
    """Records whose importance is rated later, in a batch."""
    clears: Names = Field((), exclude_if=not_)
    """Records that cannot reveal the resident's secrets."""
    result: bool = Field(False, exclude_if=not_)
    """Whether the record tells the result of an act, and a model was asked for this result (`ResultAsked`)."""


class DayPlanned(TownEvent):
    """A resident planned its day."""

    kind = "day_planned"
    day: int
    """Days since the town began."""
    currently: Quotes[str]
    broad: Quotes[tuple[str, ...]]
    blocks: tuple[Block, ...]
    records: Names = ()
    cites: Names = Field((), exclude_if=not_)
    """Ids of the memories that the model named as reasons of the plan's items."""
    keeps: Names = Field((), exclude_if=not_)
    """Ids of the memories that the resident has decided to keep to itself. Memories that were secret from the beginning
    need not be included."""
    tells: NoWords[dict[str, tuple[str, ...]]] = Field(default_factory=dict, exclude_if=not_)
    """For each memory that the resident should pass on, by id: the names of the people who should hear it."""


class TasksPlanned(TownEvent):
    """A resident changed a part of its day's plan: it broke a block down into tasks, reacted to a percept, agreed on
    something, or changed the plan in a talk."""

    kind = "tasks_planned"
    blocks: tuple[Block, ...]
    """Blocks that replace the plan from the start of the first block to the end of the last."""
    because: Quotes[str] = ""


class Acted(TownEvent):
    """A resident began to do something."""

    kind = "resident_acted"
    act: Act
    because: Quotes[str] = ""
    """The reason for the act in words; "": none is given."""


class Decided(TownEvent):
    """A resident decided whether to react to a percept, or whether to answer a user."""

    kind = "resident_decided"
    about: Quotes[str]
    other: Name = ""
    """The resident that the decision is about; "": none."""
    place: Name = ""
    """The object that the decision is about; "": none."""
    question: Quotes[str]
    p: float
    yes: bool
    recalled: NoWords[tuple[tuple[str, float], ...]] = ()
    """Ids of the recalled records, with their scores."""
    choice: Name = Field("", exclude_if=not_)
    """The chosen answer, whose probability is `p`; "": the question was to be answered with yes or no."""


class SpokenLine(Frozen):
    """A line of a conversation; `told`: ids of the speaker's memories that the line passes on."""

    by: Name
    text: Quotes[str]
    told: Names = ()

    def __str__(self) -> str:
        return f"{self.by}: {self.text}"


class Talked(TownEvent):
    """Two residents talked; written to the streams of both."""

    kind = "residents_talked"
    partner: Name
    lines: tuple[SpokenLine, ...]
    until: int
    since: int = Field(0, exclude_if=not_)
    """The step at which the talk began, if it is a scene. 0: the talk began at `step`, or it is a talk with a user, of
    which each line is logged when it is said (`Spoke`)."""
    records: Names = ()
    known: Names = ()
    """Ids of memories that the resident already had when another resident told it the same text in the talk."""
    gathered: float = 0.0
    """Importance of the talk, 1 to 10; 0: it is rated later, or counted in `Met`."""
    unrated: Names = Field((), exclude_if=not_)
    """Records whose importance is rated later, in a batch."""


class ActFinished(TownEvent):
    """A resident's act, or its walk to the place of an act, ended or was interrupted.

    The resident remembers the act, except in two cases: it had not reached the place, or the act continues an equal
    one.
    """

    kind = "act_finished"
    what: Quotes[str]
    start: int
    """The minute of the day at which the act began."""
    minutes: int
    records: Names = ()


class MemoriesRated(TownEvent):
    """Unrated memories of a resident were rated in a batch."""

    kind = "memories_rated"
    records: Names
    ratings: tuple[int, ...]
    gathered: float
    """Total importance of these records."""


class IdentityRenewed(TownEvent):
    """A resident's summary of itself was written again from its memory."""

    kind = "identity_renewed"
    summary: Quotes[str]
    evidence: Names = ()


class Overheard(TownEvent):
    """A resident heard a talk of others, or what a user said to all."""

    kind = "talk_overheard"
    speakers: NoWords[tuple[str, str]]
    records: Names = ()
    said: Quotes[str] = Field("", exclude_if=not_)
    """The words, if a user said them to all residents nearby."""
    gathered: float = Field(0.0, exclude_if=not_)
    """Total importance of the records; 0 if they are rated later."""


class ResultAsked(TownEvent):
    """A model was asked for the result of an act. The reply is applied when the resident needs it: when its next act
    ends, when it goes to bed, when it reflects, or when it begins a scene or settles an appointment. No other resident
    can perceive the result before.

    Attributes:
        prompt: the model request as JSON, without the memories in it.
        used: ids of the memories in the prompt.
        record: id of the memory of the act.
        near: people in sight.
        place: the place of the act.
        secret: whether the act reveals a secret.
        is_clear: whether the prompt contains nothing that reveals a secret.
    """

    kind = "result_asked"
    prompt: Quotes[str]
    used: Names
    record: Name
    near: Names
    place: Name
    secret: bool
    is_clear: bool


class SceneBegan(TownEvent):
    """Two residents began a scene, and a model was asked about it. Each resident's stream gets an event with that
    resident's data. The reply is applied at the step `until`, or earlier if one of the two sees a danger or a user
    takes control of one of them. Before that, no resident can perceive anything that depends on the reply.

    Attributes:
        by: the resident who began the scene.
        prompt: the request as JSON, without the two residents.
        side: what the request says of this resident, as JSON, without the memories.
        mind: ids of this resident's memories in the prompt.
        heard: a remark about each of the memories in `mind`.
        plan: the parts of this resident's day plan in the prompt; if `short`, only the current part.
        later: if `short`, the later parts of this plan that are in the prompt.
        places: addresses of the places in the prompt.
        lets_on: whether this resident may reveal a secret.
        short: whether the reply gives only the result of the talk, without lines.
    """

    kind = "scene_began"
    partner: Name
    until: int
    by: Name
    prompt: Quotes[str]
    side: Quotes[str]
    mind: Names
    heard: Names
    plan: tuple[Block, ...]
    places: Names
    lets_on: bool
    short: bool = Field(False, exclude_if=not_)
    later: tuple[Block, ...] = Field((), exclude_if=not_)


class Met(TownEvent):
    """Two residents met in a scene; written to the streams of both."""

    kind = "residents_met"
    other: Name
    outcome: Literal["talked", "passed", "declined", "settled", "told"]
    """What the two residents did:

    - `talked`: they talked;
    - `passed`: they passed each other without a talk;
    - `declined`: one of them declined to talk;
    - `settled`: a short request gave the result of what they had met for;
    - `told`: one told the other news in passing, without a call of a model.
    """
    by: Name = ""
    """The resident who declined or ended the meeting."""
    records: Names = ()
    """The memories of the meeting. (): there are none, or they are in another event: in `Talked`, or, if more than two
    met, in the `Met` event about another of them."""
    gathered: float = 0.0
    """Importance that the meeting adds to the total since the last reflection. It includes the memories in `Talked`."""
    stance: Quotes[str] = Field("", exclude_if=not_)
    """The resident's attitude toward the other since this meeting, in words; "": unchanged."""
    avoids: bool | None = Field(None, exclude_if=lambda avoids: avoids is None)
    """Whether the resident keeps away from the other since this meeting; None: unchanged."""
    told: Names = Field((), exclude_if=not_)
    """Records that this resident told the other in passing."""
    clears: Names = Field((), exclude_if=not_)
    """Records of the meeting that cannot reveal the resident's secrets, because the prompt of the model that wrote
    these records did not contain the secrets."""


class Briefed(TownEvent):
    """A resident with secrets decided what its conversations of a day may show of it."""

    kind = "resident_briefed"
    day: int
    """Days since the town began."""
    secrets: Names
    """The secret memories that the decision is about."""
    shows: Names = ()
    hides: Names = ()
    """`shows`: memories that reveal nothing of the secrets. `hides`: memories that reveal something of them. Together
    they are all memories that have been judged."""
    lines: Quotes[tuple[str, ...]] = ()
    """The lines of the resident's own description that reveal nothing of the secrets."""
    plan: Quotes[tuple[str, ...]] = ()
    """The acts of the day's plan that reveal something of the secrets."""
    lets_on: Quotes[dict[str, tuple[str, ...]]] = Field(default_factory=dict)
    """For each person, by name: what the resident would tell this person of its secrets."""


class Asked(TownEvent):
    """A resident's use of models in a step, which counts toward its daily budget."""

    kind = "resident_asked"
    calls: int
    tokens: int
    """Input and output tokens, estimated from the number of characters, so that they do not depend on the model."""


class Resolved(TownEvent):
    """A resident updated the text of its present concerns."""

    kind = "resident_resolved"
    currently: Quotes[str]
    about: Quotes[str] = Field("", exclude_if=not_)
    """The resident's life so far, rewritten because a part of it is no longer true; "": unchanged."""


class VisitorCame(TownEvent):
    """A visitor became known to the town; in the town's own stream."""

    kind = "visitor_came"
    visitors: Quotes[tuple[str, ...]]
    """All visitors until now, each as the JSON of a `Person`."""


class Embodied(TownEvent):
    """A user controls a resident from now on."""

    kind = "resident_embodied"
    person: Name
    """The name of the user."""


class Released(TownEvent):
    """A user gave up control of a resident: it decides itself again; a visitor leaves the town."""

    kind = "resident_released"
    person: Name


class Spoke(TownEvent):
    """A line of a talk with a user that is still going on; written to the streams of both speakers.

    When the talk is over, `Talked` or `Declined` has all its lines.
    """

    kind = "resident_spoke"
    partner: Name
    line: SpokenLine
    until: int
    """The step at which the talk ends if the user does not answer."""


class Declined(TownEvent):
    """A resident did not answer when spoken to.

    The event is written to the streams of both residents. If the resident did not hear the words, it is written only to
    the stream of the speaker.
    """

    kind = "talk_declined"
    partner: Name
    by: Name
    """The resident who did not answer."""
    lines: tuple[SpokenLine, ...]
    records: Names = ()
    gathered: float = 0.0


class ObjectChanged(TownEvent):
    """The condition of an object changed; in the town's own stream."""

    kind = "object_changed"
    place: Name
    condition: Quotes[str]
    """The condition in words; "": nothing is wrong with the object."""
    danger: bool = False
    """Whether the condition wakes sleepers in the room and has priority over plans."""
    by: Name = ""


class StoodIn(TownEvent):
    """A model's reply could not be parsed. The rule that answers this prompt without a model was used instead.

    Two exceptions: a reflection yields no insights; in a town that runs in scenes, the usual day replaces a day's plan.
    """

    kind = "stood_in"
    prompt: Name
    reason: Quotes[str]


class TownRested(TownEvent):
    """All residents have finished this step. Written to the town's own stream after users' actions, and in forks,
    because possibly no other row names this step."""

    kind = "town_rested"


class TownForked(TownEvent):
    """The town is a fork that was changed at this step; in the town's own stream, not in the journal."""

    kind = "town_forked"
    seed: int
    """The seed of all random draws after this step."""
    lost: Names = ()
    """Ids of the memories that the fork does not have."""
    withheld: Quotes[dict[str, tuple[str, ...]]] = Field(default_factory=dict)
    """For each resident, by name: texts that the resident does not remember if others tell them."""


class TownReached(TownEvent):
    """The last finished steps of residents in a town whose residents may be at different steps.

    The row is in the town's own stream, not in the journal.
    """

    kind = "town_reached"
    reached: NoWords[dict[str, int]]
    """The last finished step of each resident that has finished steps since the previous row of this kind."""
    marked: Names = ()
    """The residents in `reached` who may see something new in the next step."""
    entered: Names = ()
    """The residents in `reached` who have not looked around in their arena yet."""


class TownSaved(TownEvent):
    """The complete state after a step, from which the town can be opened quickly; in the town's own stream."""

    kind = "town_saved"
    of_all = True
    state: Quotes[str]
    """The state as JSON (see `journal.Saved`)."""


EVENTS: tuple[type[Event], ...] = (
    TownBegan, TownImported, MovedIn, BroughtIn,
    Perceived, DayPlanned, TasksPlanned, Acted, Decided, Talked, SceneBegan, ResultAsked, Met, Briefed, Asked, Resolved,
    ActFinished, MemoriesRated, IdentityRenewed, Overheard, ObjectChanged, StoodIn, TownSaved,
    VisitorCame, Embodied, Released, Spoke, Declined, TownRested, TownReached, TownForked,
)  # fmt: skip
add_kinds("town", EVENTS)
