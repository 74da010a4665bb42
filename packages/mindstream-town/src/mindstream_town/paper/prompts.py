"""Prompts of the mode `paper`: plans by the hour, conversations, identities."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from mindstream import chance
from mindstream.frozen import Frozen
from mindstream.models.decide import Question, YesNo
from mindstream.models.prompt import Prompt, rule
from mindstream_town.events import MENDED
from mindstream_town.prompts.conduct import AboutOther, Meeting, Speaking
from mindstream_town.prompts.plans import BED, WAKE, Clock, Memory, Usual, Where, check_waking_hours
from mindstream_town.world.world import DAY_MINUTES, clock, minute_of

CONTINUE, TALK, WAIT, GO_ALONG, AVOID = "continue", "talk", "wait", "go along", "avoid"


class MeetPerson(Meeting, Question):
    """What would this person do about the other now?"""

    role = "decider"

    next: str = ""
    """The next block of the plan."""

    def answers(self) -> tuple[str, ...]:
        return CONTINUE, TALK, WAIT, GO_ALONG, AVOID


@rule(MeetPerson)
def meet_by_acquaintance(ask: MeetPerson) -> dict[str, float]:
    """Rule: the probability of a talk depends on acquaintance, important news, and whether the two have talked today;
    otherwise continue."""
    p = ask.wish_to_talk()
    return {CONTINUE: 1 - p, TALK: p, WAIT: 0.0, GO_ALONG: 0.0, AVOID: 0.0}


class Hour(BaseModel, frozen=True):
    """An activity of about an hour; it lasts until the next one starts."""

    start: Clock
    what: str = Field(min_length=1, max_length=200)
    place: Where = []


class Hours(Frozen):
    """A part of a day, hour by hour."""

    hours: list[Hour] = Field(min_length=1, max_length=24)


class PlanHours(Prompt[Hours]):
    """What does this person do in this part of the day, hour by hour?"""

    role = "planner"

    who: str
    identity: str
    what: str
    where: str = ""
    """The place, as names from the widest to the narrowest."""
    start: str
    end: str
    day: tuple[str, ...] = ()
    """The plan from now until bedtime, as `HH:MM what`."""
    done: tuple[str, ...] = ()
    """Activities of today, as `HH:MM-HH:MM what`."""
    lately: tuple[str, ...] = ()
    """Recent memories of today, with their times."""
    places: tuple[str, ...]
    """The places that the resident knows, one room per line, numbered from 1."""
    surroundings: str = ""


AN_HOUR = 60


@rule(PlanHours)
def go_on_for_hours(ask: PlanHours) -> Hours:
    """Rule: continue the same activity, hour after hour."""
    start, end = minute_of(ask.start), minute_of(ask.end)
    starts = range(start, max(end, start + 1), AN_HOUR)
    return Hours(hours=[Hour(start=clock(each), what=ask.what) for each in starts][:24])


class Stroke(BaseModel, frozen=True):
    """A part of a day; it lasts until the next one starts."""

    start: Clock
    what: str = Field(min_length=1, max_length=200)
    place: Where = []
    keeps: int = Field(0, ge=0, le=10_000)


class Strokes(Frozen):
    """A day in broad strokes."""

    wake: Clock
    bed: Clock
    strokes: list[Stroke] = Field(min_length=1, max_length=16)
    currently: str = Field("", max_length=800)

    @model_validator(mode="after")
    def _has_waking_hours(self) -> Self:
        check_waking_hours(self.wake, self.bed, [each.start for each in self.strokes])
        return self


class PlanStrokes(Prompt[Strokes]):
    """What will this person do today, in broad strokes?"""

    role = "planner"

    who: str
    identity: str
    date: str
    memories: tuple[Memory, ...] = ()
    """Memories of earlier days and of today, numbered from 1."""
    yesterday: tuple[str, ...] = ()
    """Yesterday in broad strokes."""
    places: tuple[str, ...]
    """The places that the resident knows, one room per line, numbered from 1."""
    usual: tuple[Usual, ...] = ()
    surroundings: str = ""
    """Household and weather."""


@rule(PlanStrokes)
def keep_the_usual_strokes(ask: PlanStrokes) -> Strokes:
    """Rule: follow the parts of the usual day in their order."""
    wake, bed = (ask.usual[0].start, ask.usual[-1].end) if ask.usual else (WAKE, BED)
    bed = min(bed, wake + DAY_MINUTES - 1)
    strokes = [
        Stroke(start=clock(each.start), what=each.what, place=[str(each.place)] if each.place else [])
        for each in ask.usual[:16]
    ]
    return Strokes(
        wake=clock(wake), bed=clock(bed), strokes=strokes or [Stroke(start=clock(wake), what="being at home")]
    )


SHORTEST, LONGEST = 5, 15
"""Minimum and maximum minutes of a task."""


def _within(given: Any) -> Any:
    """Limit a duration in minutes to the range from SHORTEST to LONGEST; further tasks fill the rest of the time."""
    return min(max(int(given), SHORTEST), LONGEST) if isinstance(given, int | float) and given > 0 else given


class PaperTask(BaseModel, frozen=True):
    """A task of 5 to 15 minutes."""

    minutes: Annotated[int, Field(ge=SHORTEST, le=LONGEST), BeforeValidator(_within)]
    what: str = Field(min_length=1, max_length=200)
    thing: Where = []
    state: str = Field("", max_length=60)
    leaves: str = Field("", max_length=80)
    danger: bool = False
    mends: bool = False

    @property
    def condition(self) -> str:
        """The condition in which the task leaves its object, as acts store it: "": unchanged; MENDED: repaired."""
        return MENDED if self.mends else self.leaves.strip()


class PaperTasks(Frozen):
    """Tasks, one after the other."""

    tasks: list[PaperTask] = Field(min_length=1, max_length=30)


class PlanTasks(Prompt[PaperTasks]):
    """What does this person do in the minutes that begin now?"""

    role = "planner"

    who: str
    identity: str
    what: str
    where: str = ""
    when: str
    minutes: int
    things: tuple[str, ...]
    """The known objects in the house, as paths of names, numbered from 1; those at the place itself first."""
    here: int = 0
    """The number of objects at the place itself, which are the first ones of `things`."""
    walk: int = 0
    """The minutes of the walk to the place."""
    plan: tuple[str, ...] = ()
    """The current hour of the plan, and the hours of the plan that start within the next three hours."""
    done: tuple[str, ...] = ()
    """The last activities of today."""
    lately: tuple[str, ...] = ()
    """Recent memories of today, with their times."""
    present: tuple[str, ...] = ()
    """The people in sight, with their activities; empty if the place is in another room."""
    surroundings: str = ""
    """Household, weather and light."""


@rule(PlanTasks)
def go_round_in_tasks(ask: PlanTasks) -> PaperTasks:
    """Rule: do the planned activity in quarters of an hour, each at an object of the place, drawn at random."""
    tasks = []
    for left in range(ask.minutes, 0, -LONGEST):
        at = chance.pick(range(1, ask.here + 1), ask.who, ask.what, ask.when, left) if ask.here else 0
        tasks.append(PaperTask(minutes=min(left, LONGEST), what=ask.what, thing=[str(at)] if at else []))
    return PaperTasks(tasks=tasks[:30])


class Identity(Frozen):
    """A resident's summary of itself."""

    summary: str = Field(min_length=1, max_length=1_200)


class RenewIdentity(Prompt[Identity]):
    """Who is this person by now?"""

    role = "reasoner"

    who: str
    person: str
    """The part that never changes: name, age, traits."""
    before: str = ""
    """The previous summary."""
    memories: tuple[str, ...] = ()
    """Memories about core characteristics, occupation, and feelings about recent progress."""
    date: str


@rule(RenewIdentity)
def stay_the_same(ask: RenewIdentity) -> Identity:
    """Rule: keep the previous summary; if there is none, use the part of the description that never changes."""
    return Identity(summary=(ask.before or ask.person)[:1_200])


class RestOfDay(Frozen):
    """The rest of a day, in broad strokes."""

    strokes: list[Stroke] = Field(min_length=1, max_length=16)


class RewriteDay(Prompt[RestOfDay]):
    """How does the rest of the day go on?"""

    role = "planner"

    who: str
    identity: str
    when: str
    bed: str
    agreed: tuple[Memory, ...]
    """Agreements for today, numbered from 1: new agreements, then earlier ones."""
    plan: tuple[str, ...]
    """The planned rest of the day, as `HH:MM what (where)`; HH:MM is the time of arrival."""
    places: tuple[str, ...]
    """The places that the resident knows, one room per line, numbered from 1."""


@rule(RewriteDay)
def put_it_in(ask: RewriteDay) -> RestOfDay:
    """Rule: plan only the agreements with an appointment; if there are none, plan the first agreement from now on."""
    kept = [
        Stroke(start=f"{at.start:%H:%M}", what=at.what[:200], keeps=number)
        for number, each in enumerate(ask.agreed, 1)
        if (at := each.appointment) is not None
    ]
    return RestOfDay(strokes=kept or [Stroke(start=ask.when, what=ask.agreed[0].text[:200])])


Manner = Literal["talks", "ends", "declines", "walks on", "leaves"]


class Line(Frozen):
    """The next line of a speaker, and whether the speaker continues the talk."""

    says: str = Field("", max_length=600)
    does: Manner = "talks"
    passes_on: list[int] = Field(default_factory=list, max_length=20)

    @model_validator(mode="after")
    def _has_words(self) -> Line:
        """Refuse an empty line, unless the speaker walks on."""
        if not self.says.strip() and self.does != "walks on":
            raise ValueError('says is empty: only a speaker who "walks on" says nothing')
        return self


class SayNext(Speaking, Prompt[Line]):
    """What does this person say next?"""

    role = "talker"

    standing: str = ""
    """The relation to the other, in a sentence or two."""
    plan: tuple[str, ...] = ()
    """The current and the next parts of the day's plan, at most AHEAD parts (`talk.py`), as `HH:MM what`."""


@rule(SayNext)
def say_the_next(ask: SayNext) -> Line:
    """Rule: greet, and tell the most important news that the other has not heard."""
    says, passes_on, ends = ask.by_rule()
    return Line(says=says, passes_on=passes_on, does="ends" if ends else "talks")


class ShouldAnswer(YesNo, AboutOther, Question):
    """Would this person stop and answer?"""

    role = "decider"

    busy: bool = False
    """Whether the person deals with something urgent."""
    said: str


@rule(ShouldAnswer)
def answer_unless_busy(ask: ShouldAnswer) -> dict[str, float]:
    """Rule: answer unless something is urgent."""
    return {"yes": float(not ask.busy), "no": float(ask.busy)}


class Standing(Frozen):
    """The relationship of one person to another, in words."""

    relation: str = Field(min_length=1, max_length=600)


class SumUpRelation(Prompt[Standing]):
    """What is this person's relation to the other one?"""

    role = "reasoner"

    who: str
    other: str
    relation: str = ""
    memories: tuple[str, ...]


@rule(SumUpRelation)
def stand_as_told(ask: SumUpRelation) -> Standing:
    """Rule: return the known relation, or else the first of the memories."""
    return Standing(relation=(ask.relation or ask.memories[0])[:600])
