"""Prompts about conduct: reactions, talks, notes on a talk, interviews."""

from __future__ import annotations

import datetime
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from mindstream import chance
from mindstream.frozen import Frozen
from mindstream.models.decide import Question, YesNo
from mindstream.models.prompt import Prompt, rule
from mindstream_town.prompts.plans import MATTERS, Clock, Memory, Task


class Remedy(Frozen):
    """The tasks with which a resident reacts to an object that is not in order.

    Attributes:
        waits: the resident repairs nothing: it waits, or leaves the matter to others.
        resumes: afterwards the resident continues its plan; False: the reaction replaces the planned act.
    """

    tasks: list[Task] = Field(min_length=1, max_length=8)
    waits: bool = False
    resumes: bool = True


class SeeTo(Prompt[Remedy]):
    """What does this person do about a thing that is not as it should be?"""

    role = "planner"

    who: str
    identity: str
    sees: str
    """The percept, such as `the shower is leaking`."""
    danger: bool = False
    """Whether the condition is a danger."""
    taken: bool = False
    """Whether the object is in use by others, with no room for more people."""
    doing: str
    """What the person plans to do now; if nothing is planned for now, what the person is doing."""
    when: str
    at: int
    """The object's number in `around`."""
    around: tuple[str, ...]
    """Objects that the resident knows and may use, numbered from 1.

    Objects in the same house come first, then objects of open shops and restaurants.
    """
    sells: tuple[int, ...] = ()
    """Numbers of the objects in other houses at which one can buy something now."""
    serves: tuple[int, ...] = ()
    """Numbers of the objects in other houses at which one can eat out now."""
    aside: int = 0
    """Number of an object in another room of the same house, where the person can wait; 0: there is none."""
    in_charge: bool = True
    """Whether the person owns the place, or lives or works there."""
    others: tuple[str, ...] = ()
    """Names of the people who deal with the object already."""
    present: tuple[str, ...] = ()
    """Names of other people in sight who are awake."""
    waited: int = 0
    """Minutes that the person has waited for the object, in waits that ended in the last hour."""
    memories: tuple[str, ...] = ()


PATIENCE = 15
"""Maximum minutes of waiting for an object that others use or repair."""


@rule(SeeTo)
def see_to_by_charge(ask: SeeTo) -> Remedy:
    """Rule: end a danger. Wait for an object that others use or repair; after PATIENCE minutes, do without the object.

    Repair objects in one's charge, and report other objects.
    """
    if ask.danger:
        return Remedy(tasks=[Task(minutes=3, what=f"ending a danger: {ask.sees}"[:200], place=ask.at, mends=True)])
    if ask.taken or ask.others:
        if ask.waited >= PATIENCE:
            return Remedy(tasks=[Task(minutes=20, what="doing without")], waits=True, resumes=False)
        return Remedy(tasks=[Task(minutes=5, what=f"waiting: {ask.sees}"[:200], place=ask.aside)], waits=True)
    if not ask.in_charge:
        return Remedy(tasks=[Task(minutes=5, what=f"telling who looks after it: {ask.sees}"[:200])], waits=True)
    return Remedy(
        tasks=[Task(minutes=20, what=f"mending what is not in order: {ask.sees}"[:200], place=ask.at, mends=True)]
    )


class ShouldAct(YesNo, Question):
    """Would this person do something about what it sees, instead of going on?"""

    role = "decider"

    who: str
    identity: str
    doing: str
    sees: str
    """The percept, such as `the shower is leaking`."""
    danger: bool = False
    """Whether the condition is a danger."""
    taken: bool = False
    """Whether the object is in use by others, with no room for more people."""
    fine: bool = False
    """Whether the town file says that this condition needs no action."""
    uses_it: bool = False
    """Whether the current activity takes place at the object."""
    at_it: bool = False
    """Whether the person uses the object or is on the way to it. Always False unless a model plans the person's days in
    the mode `scenes`."""
    in_charge: bool = False
    """Whether the person owns the place, or lives or works there."""
    others: tuple[str, ...] = ()
    """Names of the people who deal with the object already."""
    memories: tuple[str, ...] = ()


@rule(ShouldAct)
def act_by_charge(ask: ShouldAct) -> dict[str, float]:
    """Rule: decide whether to act, by the first of these cases that applies.

    - The condition is a danger: act.
    - The condition needs no action: do not act.
    - Other people use or repair the object, and the person does not need it (`uses_it`): do not act.
    - The person needs the object or is in charge of it: act.
    - Otherwise: act with a probability of 0.6.
    """
    if ask.danger:
        p = 1.0
    elif ask.fine or (not ask.uses_it and (ask.taken or ask.others)):
        p = 0.0
    else:
        p = 1.0 if ask.uses_it or ask.in_charge else 0.6
    return {"yes": p, "no": 1 - p}


class AboutOther(Frozen):
    """The variables of prompts that ask what a resident would do about another person."""

    who: str
    identity: str
    doing: str
    other: str
    when: str
    relation: str = ""
    """The relation to the other person; "": none."""
    memories: tuple[str, ...] = ()
    last_talk: str = ""


class Meeting(AboutOther):
    """The variables of questions about a person who has come into sight."""

    other_doing: str
    news: tuple[Memory, ...] = ()
    """News that the other person has not heard yet."""

    def wish_to_talk(self) -> float:
        """Return the probability that rules begin a talk: higher with acquaintances and with important news, lower if
        the two have talked today."""
        p = (0.4 if self.relation else 0.2) * (0.3 if self.last_talk == "today" else 1.0)
        return p + 0.3 * any(each.importance >= MATTERS for each in self.news)


class ShouldTalk(YesNo, Meeting, Question):
    """Would this person begin a conversation with the other now?"""

    role = "decider"


@rule(ShouldTalk)
def talk_by_acquaintance(ask: ShouldTalk) -> dict[str, float]:
    """Rule: the probability of a talk depends on acquaintance, important news, and whether the two have talked
    today."""
    return {"yes": ask.wish_to_talk(), "no": 1 - ask.wish_to_talk()}


class Learned(Frozen):
    """Something that a resident learned from the other in a talk."""

    text: str = Field(min_length=1, max_length=400, description="One sentence.")
    of: int = Field(0, ge=0, le=100, description="The number of the news that it tells of; 0: none.")

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        return {"text": given} if isinstance(given, str) else given


class Agreed(Frozen):
    """Something that the person has agreed to, or has declined."""

    text: str = Field(min_length=1, max_length=400, description="One sentence: who does what, when and where.")
    comes: bool = Field(True, description="The person will; false: has declined.")
    of: int = Field(0, ge=0, le=100, description="The number of the news that it is about; the rest is then left out.")
    what: str = Field("", max_length=200, description='What is done then, as in "having lunch with Ada".')
    place: int = Field(0, ge=0, le=10_000, description="The number of the place; 0: none of them.")
    day: datetime.date | None = Field(None, description="As YYYY-MM-DD.")
    start: Clock | None = None
    end: Clock | None = None
    who: list[str] = Field(default_factory=list, max_length=20, description="Names of all who have agreed to it.")
    whom: SkipJsonSchema[tuple[str, ...]] = ()
    host: str = Field("", max_length=100, description="Who gives it, if somebody does.")


class Taken(Frozen):
    """What a resident remembers of a conversation."""

    about: str = Field(min_length=1, max_length=200, description='What it was about, as in "the new bakery".')
    memo: list[Learned] = Field(default_factory=list, max_length=6, description="What was learned of the other.")
    agreed: list[Agreed] = Field(default_factory=list, max_length=6, description="What was really agreed on.")

    @field_validator("memo", mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        return [each for each in [given] if each] if isinstance(given, str) else given


class TakeFromTalk(Prompt[Taken]):
    """What does this person remember of a conversation?"""

    role = "reasoner"

    who: str
    other: str
    identity: str = ""
    date: str
    lines: tuple[str, ...]
    told: tuple[Memory, ...] = ()
    """Memories that the other person passed on, numbered from 1."""
    busy: tuple[int, ...] = ()
    """Numbers of the memories in `told` whose appointment is during the person's work or school hours."""
    places: tuple[str, ...] = ()
    """Possible meeting places in words, numbered from 1."""
    day: tuple[str, ...] = ()
    """The day in broad strokes, as `HH:MM what`."""


COMES = 0.6
"""Probability that the rule accepts an invitation."""


@rule(TakeFromTalk)
def keep_what_was_told(ask: TakeFromTalk) -> Taken:
    """Rule: keep the first six news items word for word. A random draw for each person decides whether an invitation is
    accepted; one during work or school hours is declined."""
    kept, agreed = list[Learned](), list[Agreed]()
    for number, news in enumerate(ask.told[:6], 1):
        at, text = news.appointment, news.text[:400]
        if at is None or ask.who in (at.host, *at.who):
            kept.append(Learned(text=text, of=number))
        else:
            comes = chance.fraction("comes", ask.who, at.what, at.host, at.start.isoformat()) < COMES
            comes = comes and number not in ask.busy
            agreed.append(Agreed(text=text, comes=comes, of=number))
    last = next((line for line in reversed(ask.lines) if line.startswith(f"{ask.other}: ")), f": {ask.other}")
    about = ask.told[0].text if ask.told else last.partition(": ")[2]
    return Taken(about=about[:200], memo=kept, agreed=agreed)


class Utterance(Frozen):
    """The next line of a speaker in a conversation."""

    text: str = Field(min_length=1, max_length=600)
    passes_on: list[int] = Field(default_factory=list, max_length=20, description="Numbers of memories that it tells.")
    ends: bool = Field(False, description="The conversation is over with it.")


class Speaking(Frozen):
    """The variables of prompts for the next line of a conversation."""

    who: str
    identity: str
    other: str
    relation: str = ""
    situation: str
    memories: tuple[Memory, ...] = ()
    """Memories about the other and possible news, numbered from 1."""
    told: tuple[int, ...] = ()
    """Numbers of the memories that the other person knows already."""
    lines: tuple[str, ...] = ()
    """The conversation so far, `name: words`."""
    last_talk: str = ""
    """When the two last talked: "today", "before"; "": never."""
    left: int = 8
    """Number of lines that remain, including this one."""

    def by_rule(self) -> tuple[str, list[int], bool]:
        """Return the line by rules, the numbers of the memories that it passes on, and whether it ends the talk.

        - The speaker's first line greets.
        - The speaker's first line also passes on, word for word, the most important memory that was not told yet, if
          its importance is at least MATTERS.
        - To an acquaintance, the speaker's second line passes on another such memory.
        - A line that neither greets nor passes on a memory says goodbye.
        - A line that passes on no memory ends the talk, unless it is the first line of the talk.
        """
        mine = sum(line.startswith(f"{self.who}: ") for line in self.lines)
        untold = [n for n, each in enumerate(self.memories, 1) if n not in self.told and each.importance >= MATTERS]
        tells = max(untold, key=lambda n: self.memories[n - 1].importance, default=0)
        if mine >= (2 if self.relation else 1):
            tells = 0
        words = ["" if mine else f"Hello, {self.other}.", self.memories[tells - 1].text if tells else ""]
        said = " ".join(word for word in words if word) or f"See you, {self.other}."
        return said[:600], [tells] if tells else [], not tells and bool(self.lines)


class Utter(Speaking, Prompt[Utterance]):
    """What does this person say next?"""

    role = "talker"

    day: tuple[str, ...] = ()
    """The day in broad strokes, as `HH:MM what`."""


@rule(Utter)
def tell_the_next(ask: Utter) -> Utterance:
    """Rule: greet, and tell the most important news that the other has not heard."""
    text, passes_on, ends = ask.by_rule()
    return Utterance(text=text, passes_on=passes_on, ends=ends)


class IsDanger(YesNo, Question):
    """Is a thing in this condition a danger?"""

    role = "decider"

    thing: str
    condition: str
    dangers: tuple[str, ...] = ()
    """Conditions that the town file lists as dangers."""


@rule(IsDanger)
def is_named(ask: IsDanger) -> dict[str, float]:
    """Rule: only conditions that the town file lists are dangers."""
    known = ask.condition.casefold() in {each.casefold() for each in ask.dangers}
    return {"yes": float(known), "no": float(not known)}


MOST_QUOTED, LONGEST = 3, 160
NOBODY = "(No model answers."
"""Prefix of the rule's answers; memories that contain it are not quoted again."""


class AnswerInterview(Prompt[str]):
    """What does this person answer in an interview?"""

    role = "talker"

    who: str
    identity: str
    when: str
    doing: str
    place: str = ""
    """The current place."""
    home: str = ""
    memories: tuple[str, ...] = ()
    day: tuple[str, ...] = ()
    """The day's plan, in detail around the current time; empty if plans are hidden."""
    begun: int = 0
    """Number of lines of `day` that have begun; not part of the prompt."""
    asleep: bool = False
    near: tuple[str, ...] = ()
    """Names of other people in sight."""
    places: tuple[str, ...] = ()
    """Names of the houses and shops that the resident knows."""
    question: str
    most: Literal["four", "six"] = "four"
    """Maximum number of sentences."""
    lines: tuple[str, ...] = ()
    """The interview so far, `name: words`."""


@rule(AnswerInterview)
def quote(ask: AnswerInterview) -> str:
    """Rule: say that no model answers, and quote the first MOST_QUOTED memories in the prompt. Memories of earlier
    answers of this rule are not quoted."""
    own = [each for each in ask.memories if NOBODY not in each][:MOST_QUOTED]
    quoted = "; ".join(f"“{each[:LONGEST]}{'…' * (len(each) > LONGEST)}”" for each in own)
    return f"{NOBODY} {ask.who} remembers: {quoted or 'nothing of it'})"
