"""Prompts of scenes: the day's plan, the briefing about secrets, the talk, the outcome of an act, the reflection."""

from __future__ import annotations

import datetime
import re
from typing import Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from mindstream.frozen import Frozen
from mindstream.models.prompt import Prompt, rule
from mindstream_town.prompts.plans import AT_HOME, BED, LEAST_AWAKE, WAKE, Clock, Memory, Place
from mindstream_town.world.world import DAY_MINUTES, clock, minute_of

MOST = 60
LONGEST = 16 * 60
"""Maximum minutes of an item; a longer item indicates a mistake in its times."""
MOST_INSIGHTS = 2
"""Maximum insights of an evening; a reply's later ones are left out."""
AFTER_MIDNIGHT = re.compile(r"(2[4-9]):([0-5]\d)")
NIGHT_ENDS = 5 * 60
"""An item that starts before this minute of the day and follows an item of the evening is past midnight."""


def _listed(given: Any) -> Any:
    """Return the names in a reply as a list; the reply may give one name as a text."""
    return [given] if isinstance(given, str) and given else given or []


# The schemas that are sent name only the types of fields, which saves tokens. The prompts name the limits. A reply
# that exceeds a limit is requested again.
AS_TEXT = WithJsonSchema({"type": "string"})
OR_NOTHING = BeforeValidator(lambda given: given or None)
Short = Annotated[str, BeforeValidator(lambda given: given or ""), Field(max_length=200), AS_TEXT]
Words = Annotated[str, Field(min_length=1, max_length=200), AS_TEXT]
Sentences = Annotated[str, Field(min_length=1, max_length=400), AS_TEXT]
Hour = Annotated[Clock | None, OR_NOTHING, AS_TEXT]
Day = Annotated[datetime.date | None, OR_NOTHING, AS_TEXT]
Numbers = Annotated[list[int], Field(max_length=20), WithJsonSchema({"type": "array", "items": {"type": "integer"}})]
Names = Annotated[
    list[str],
    BeforeValidator(_listed),
    Field(max_length=30),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
]
Weight = Annotated[int, Field(ge=1, le=10), WithJsonSchema({"type": "integer"})]


class SceneItem(BaseModel, frozen=True, populate_by_name=True):
    """A part of a person's day.

    Attributes:
        thing, state: the object that is used, and the object's state during the act, such as "in use".
        busy: whether the person cannot be spoken to during the act.
        weight: how much the act will matter to the person, 1 to 10.
        whom: the people who are met, asked, told, visited or helped.
        open: the question that the act answers, such as whether the pump runs again; "": no question.
        seen: what others see of the act; "": the same as `what`.
        because: the numbers of the memories that are the reason for the act.
    """

    start: Annotated[Clock, AS_TEXT] = Field(alias="from")
    end: Annotated[Clock, AS_TEXT] = Field(alias="to")
    what: Words
    place: Short = ""
    thing: Annotated[str, Field(max_length=100), AS_TEXT] = ""
    state: Annotated[str, Field(max_length=80), AS_TEXT] = ""
    busy: bool = False
    weight: Weight = 1
    whom: Names = Field(default_factory=list, alias="with")
    open: Short = ""
    seen: Short = ""
    because: Numbers = Field(default_factory=list)

    @field_validator("start", "end", mode="before")
    @classmethod
    def _of_next_day(cls, given: Any) -> Any:
        """Convert a time after 24:00, such as `24:30`, to the time of the next day, `00:30`; `24:00` is unchanged."""
        after = AFTER_MIDNIGHT.fullmatch(given) if isinstance(given, str) else None
        return f"{int(after[1]) - 24:02d}:{after[2]}" if after and given != "24:00" else given

    @field_validator("thing", "state", mode="before")
    @classmethod
    def _nothing(cls, given: Any) -> Any:
        return given or ""


class SceneTell(Frozen):
    """News that a person should pass on. `number`: number of the memory. `to`: names of people who should hear it."""

    number: int = 0
    to: Names = Field(default_factory=list)


class SceneDay(Frozen):
    """The plan of a person's day. `keeps`: the numbers of the memories that the person keeps secret. `tell`: the news
    that the person should pass on."""

    items: list[SceneItem] = Field(min_length=1, max_length=MOST)
    keeps: Numbers = Field(default_factory=list)
    tell: list[SceneTell] = Field(default_factory=list, max_length=6)

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        """Refuse a day that is too short. Refuse a day with an item that is too long, or that does not end after its
        beginning.

        A last item for going to bed may end when it begins. An item for the whole day may have any length.
        """
        for number, each in enumerate(self.items, 1):
            is_bedtime = number == len(self.items) > 1 and each.start == each.end
            if not is_bedtime and not 0 < _length(each) <= LONGEST and not _is_whole_day(each):
                raise ValueError(
                    f"item {number}, {each.what!r:.60}, is from {each.start} to {each.end}: it must end"
                    f" after it begins, at most {LONGEST // 60} hours later"
                )
        spans = self.spans()
        if spans[-1][1] - spans[0][0] < LEAST_AWAKE:
            raise ValueError(
                f"the day has {spans[-1][1] - spans[0][0]} minutes, but needs {LEAST_AWAKE}: plan from getting up to"
                " going to bed"
            )
        return self

    def spans(self) -> list[tuple[int, int, SceneItem]]:
        """Return the items with their starts and ends in minutes after midnight, in the order of the day.

        A start or end after midnight exceeds 24 hours. If the items of the reply are not in the order of a day, they
        are sorted.
        """
        found, past = list[tuple[int, int, SceneItem]](), 0
        for each in self.items:
            start = minute_of(each.start) + past
            if found and start < found[-1][0]:
                if minute_of(each.start) >= NIGHT_ENDS and found[-1][1] <= past + DAY_MINUTES:
                    break  # the items are not in the order of a day
                past += DAY_MINUTES
                start += DAY_MINUTES
            found.append((start, start + _length(each), each))
        if len(found) < len(self.items) or found[-1][0] - found[0][0] >= DAY_MINUTES:
            starts = [minute_of(each.start) for each in self.items]
            starts = [start + DAY_MINUTES * (start < NIGHT_ENDS) for start in starts]
            found = [(start, start + _length(each), each) for start, each in zip(starts, self.items, strict=True)]
            found.sort(key=lambda span: span[0])
        return found


def _length(item: SceneItem) -> int:
    if _is_whole_day(item):
        return DAY_MINUTES
    return (minute_of(item.end) - minute_of(item.start)) % DAY_MINUTES


def _is_whole_day(item: SceneItem) -> bool:
    """Return whether an item lasts from one midnight to the next."""
    return minute_of(item.start) == 0 and minute_of(item.end) % DAY_MINUTES == 0


class PlanScenes(Prompt[SceneDay]):
    """What will this person do today?"""

    role: ClassVar[str] = "planner"

    who: str
    identity: str
    date: str
    weather: str = ""
    memories: tuple[Memory, ...] = ()
    """Memories, each with the day of its creation."""
    yesterday: tuple[str, ...] = ()
    """The person's acts of the last 24 hours, and their results."""
    places: tuple[Place, ...]
    """The places that the resident knows, and the homes of acquaintances."""
    usual: tuple[str, ...] = ()
    """The usual day for this weekday: `08:00-12:00 work (duty)`."""
    at_home: tuple[str, ...] = ()
    """When the others of the household are usually at home (`Ben Brook: 18:00-19:00 dinner`), or their habits."""
    habits: tuple[str, ...] = ()
    """Where acquaintances usually are, one line each."""
    avoids: tuple[str, ...] = ()
    """People from whom the person keeps away."""


@rule(PlanScenes)
def stay_at_home(ask: PlanScenes) -> SceneDay:  # noqa: ARG001
    """Rule: a day at home."""
    return SceneDay(items=[SceneItem(start=clock(WAKE), end=clock(BED), what=AT_HOME)])


class LetsOn(Frozen):
    """What a person with secrets would tell another person about these secrets."""

    to: Short
    says: Annotated[str, Field(min_length=1, max_length=300), AS_TEXT]


class Briefing(Frozen):
    """What a person with secrets may show of itself in today's conversations.

    Attributes:
        hides: the numbers of the lines of `LetOn` that reveal a secret.
        clear: the numbers of the lines of `LetOn.recent` that reveal nothing; its other lines are not shown.
        lets_on: the texts about its secrets that the person would tell particular people.
    """

    hides: list[int] = Field(default_factory=list, max_length=200)
    clear: Numbers = Field(default_factory=list)
    lets_on: list[LetsOn] = Field(default_factory=list, max_length=3)


class LetOn(Prompt[Briefing]):
    """What does this person reveal of its secrets today?

    The lines of `identity`, `recent`, `memories` and `plan` are numbered consecutively, each as `12. text`. If only new
    memories have to be judged, the other three are empty.
    """

    role: ClassVar[str] = "talker"

    who: str
    identity: tuple[str, ...]
    """The description from before the town began."""
    recent: tuple[str, ...] = ()
    """Sentences that the person's reflections have added to its description."""
    secrets: tuple[str, ...]
    memories: tuple[str, ...] = ()
    """Memories for which the person has not yet decided whether a conversation may show them."""
    plan: tuple[str, ...] = ()
    """The current act and the rest of the day's plan, without sleep and free time. Secret acts with other people come
    last and have no number; other secret acts are left out."""
    when: str


@rule(LetOn)
def keep_it(ask: LetOn) -> Briefing:
    """Rule: reveal nothing, and show neither memories nor plans."""
    numbers = (line.partition(".")[0] for line in (*ask.memories, *ask.plan))
    return Briefing(hides=[int(number) for number in numbers if number.isdigit()])


class SceneLine(Frozen):
    """One person's words in a talk."""

    who: Short
    says: Sentences
    tells: Numbers = Field(default_factory=list)


class ScenePart(Frozen):
    """What one person does in something agreed on, if it is not the same for all."""

    who: Short
    what: Words


class SceneAgreed(BaseModel, frozen=True, populate_by_name=True):
    """Something that people have agreed on in a scene.

    Attributes:
        what: the act, without the names of the people who do it.
        who: the people who do the act (together if there are several).
        parts: what each of these people does, if they do different things.
        whom: other people to ask, tell or meet then.
    """

    what: Words
    place: Short = ""
    day: Day = None
    start: Hour = Field(None, alias="from")
    end: Hour = Field(None, alias="to")
    who: Names = Field(default_factory=list)
    parts: list[ScenePart] = Field(default_factory=list, max_length=8)
    whom: Names = Field(default_factory=list, alias="with")


class SceneMemory(Frozen):
    """A memory that one of the two people keeps of the talk."""

    who: Short
    text: Sentences
    weight: Weight = 3
    corrects: Numbers = Field(default_factory=list)


class SceneChange(BaseModel, frozen=True, populate_by_name=True):
    """A part of a resident's plan for the day that the talk has changed. `number`: the number of the part in the list.
    `whom`: people to ask, tell or meet."""

    number: int
    becomes: Words
    place: Short = ""
    whom: Names = Field(default_factory=list, alias="with")


class SceneResult(Frozen):
    """The result of a planned act that the talk contained; `number`: the number of the act in the prompt."""

    number: int
    text: Sentences


class SceneStance(Frozen):
    """One person's attitude towards the other after a meeting. `avoids`: whether the person keeps away from the other
    (None: as before)."""

    who: Short
    text: Short = ""
    avoids: Annotated[bool | None, WithJsonSchema({"type": "boolean"})] = None


Overheard: TypeAlias = Annotated[str, BeforeValidator(lambda given: given or ""), Field(max_length=400), AS_TEXT]


class Scene(Frozen):
    """What happened between two people."""

    talk: bool
    declined_by: Short = ""
    lines: list[SceneLine] = Field(default_factory=list, max_length=12)
    agreed: list[SceneAgreed] = Field(default_factory=list, max_length=4)
    changes: list[SceneChange] = Field(default_factory=list, max_length=8)
    results: list[SceneResult] = Field(default_factory=list, max_length=6)
    stance: list[SceneStance] = Field(default_factory=list, max_length=2)
    remember: list[SceneMemory] = Field(default_factory=list, max_length=8)
    overheard: Overheard = ""


class Side(Frozen):
    """One of the two residents of a talk.

    Attributes:
        text: the description, without parts that this talk may not show.
        memories: numbered memories for this talk; then, without numbers, what the resident may say about secrets.
        plan: the numbered parts of the rest of today's plan, the current part first; then, without numbers, duties of
            the next day that are not also duties of today.
        stance: how the resident stands to the other; "": nothing is known beyond the memories.
    """

    who: str
    text: str
    doing: str
    memories: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()
    stance: str = ""


class TalkScene(Prompt[Scene]):
    """What happens between two people who are at the same place? The first begins."""

    role: ClassVar[str] = "talker"

    sides: tuple[Side, Side]
    when: str
    weather: str = ""
    place: str
    near: tuple[str, ...] = ()
    """Names of other people in sight."""
    before: str = ""
    """Time of the last meeting in words; "": never, or they live together."""
    strangers: bool = False
    """Whether the two persons of the scene have not met, and neither description names the other or anyone of the
    other's household."""
    at_home: bool = False
    """Whether the two live together and are both at home. If so, neither comes up to the other."""
    together: str = ""
    """The activity of the appointment for which both are here; "": they meet by chance."""
    places: tuple[str, ...] = ()
    """Places that the two people may mention, in words: rooms that at least one of them knows."""


@rule(TalkScene)
def nod(ask: TalkScene) -> Scene:  # noqa: ARG001
    """Rule: they do not speak."""
    return Scene(talk=False)


class Outcome(Frozen):
    """The result of an act."""

    text: Sentences
    weight: Weight = 5


class WhatCame(Prompt[Outcome]):
    """What was the result of an act with an open question?"""

    who: str
    identity: str
    did: str
    question: str
    """The open question of the act, such as whether the projector runs."""
    when: str
    place: str
    near: tuple[str, ...] = ()
    """Names of the people who were there."""
    memories: tuple[str, ...] = ()
    """The person's memories that matter for the question."""
    things: tuple[str, ...] = ()
    """The things at the place, with their conditions."""


class Settled(Outcome):
    """The result of a meeting of several people, and their agreements.

    Attributes:
        corrects: numbers of the memories that the people now know to be false or over.
        settles: numbers of later parts of their plans that the meeting has done, answered or made needless.
        overheard: what people near by remember of the meeting; "": nothing.
    """

    agreed: list[SceneAgreed] = Field(default_factory=list, max_length=4)
    corrects: Numbers = Field(default_factory=list)
    settles: Numbers = Field(default_factory=list)
    overheard: Overheard = ""


class Settle(Prompt[Settled]):
    """What do people settle at an appointment, or if one of them has come to speak to the other?

    It is a talk in short: without lines, for a group or where the budget allows no talk.
    """

    role: ClassVar[str] = "talker"

    sides: tuple[Side, ...]
    did: str
    """What they do there, as the first of `sides` plans it."""
    question: str = ""
    """The open question of this act."""
    when: str
    place: str


@rule(Settle)
def settle_nothing(ask: Settle) -> Settled:
    """Rule: the question stays open."""
    return Settled(text=f"{ask.question or ask.did} ({ask.sides[0].who}: ?)"[:400])


@rule(WhatCame)
def stay_open(ask: WhatCame) -> Outcome:
    """Rule: the question stays open."""
    return Outcome(text=f"{ask.question or ask.did} ({ask.who}: ?)"[:400])


class SceneInsight(Frozen):
    """One insight of a person, drawn from its memories.

    Attributes:
        weight: the importance, 1 to 10.
        words: the words of the memories on which it rests, copied. They are asked for so that the sentence follows from
            them, and are not stored.
        secret: whether the person would tell it to no one.
        then: what the person will do because of it in the next days; "": nothing.
    """

    because: Numbers
    words: Names = Field(default_factory=list)
    text: Sentences
    weight: Weight = 5
    secret: bool = False
    then: Short = ""

    @field_validator("then", mode="before")
    @classmethod
    def _nothing(cls, given: Any) -> Any:
        return given or ""


class Evening(Frozen):
    """The reflection of a person at the end of a day.

    Attributes:
        currently: the person's present concerns.
        about: the new description of the person's life; "": the old one is still true.
    """

    insights: list[SceneInsight] = Field(default_factory=list, max_length=MOST_INSIGHTS)
    currently: Annotated[str, Field(max_length=600), AS_TEXT] = ""
    about: Annotated[str, Field(max_length=600), AS_TEXT] = ""

    @field_validator("insights", mode="before")
    @classmethod
    def _first(cls, given: Any) -> Any:
        return given[:MOST_INSIGHTS] if isinstance(given, list) else given

    @field_validator("currently", "about", mode="before")
    @classmethod
    def _nothing(cls, given: Any) -> Any:
        return given or ""


class ReflectScenes(Prompt[Evening]):
    """What does a person conclude from its day, and what concerns it now?"""

    who: str
    identity: str
    memories: tuple[str, ...]
    when: str
    about: str = ""
    """The person's life so far, which is not part of `identity`."""
    currently: str = ""
    """The present concerns, as the person stated them last."""


@rule(ReflectScenes)
def think_nothing(ask: ReflectScenes) -> Evening:  # noqa: ARG001
    """Rule: no reflection."""
    return Evening()
