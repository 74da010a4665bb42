"""Who a resident is: what is told of it before it lives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, field_validator

from mindstream.memory.memory import Memory
from mindstream.memory.recall.policies import Candidates, Floats, Generative, Policy, Ranking, Rows, best, rated, spread
from mindstream.memory.recall.recall import Recollection
from mindstream.memory.recall.touch import Touch
from mindstream.memory.store.columns import KIND_CODES
from mindstream.memory.store.record import Ids
from mindstream.memory.store.store import Revision
from mindstream_town.profile import Profile
from mindstream_town.world.hours import DAY_MINUTES
from mindstream_town.world.world import Spot

IDLE = "idle"
"""The keyword of what was seen as it should be."""


@cache
def policy_of(profile: Profile) -> Policy:
    """Return the ranking of a town: recency, importance and relevance (Park 2023, 4.1)."""
    weights = profile.recency, profile.importance, profile.relevance, profile.decay
    return ByRank(*weights) if profile.compat else Generative(*weights)


@dataclass(frozen=True, slots=True)
class ByRank:
    """As the published code ranks: recency by rank instead of hours, relevance by vectors alone.

    It begins to count at the memory that was returned longest ago, so that the oldest counts as the most recent; that
    is a defect, and `newest_first` is what was meant. `without`: rows that are no candidates;
    `thoughts`: those that come after what was seen at the same moment.
    """

    recency: float = 0.5
    importance: float = 2.0
    relevance: float = 3.0
    decay: float = 0.995
    newest_first: bool = False
    without: tuple[int, ...] = ()
    thoughts: tuple[int, ...] = ()

    async def within(self, stream: Memory) -> ByRank:
        """Return it for a stream: what was said and what was seen idle is left out."""
        columns = await stream.columns()
        chats = np.flatnonzero(columns.kind.values == KIND_CODES["chat"]).tolist()
        thoughts = np.flatnonzero(columns.kind.values != KIND_CODES["observation"]).tolist()
        return replace(self, without=(*chats, *columns.keywords.of(IDLE).tolist()), thoughts=tuple(thoughts))

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        rows = np.setdiff1d(candidates.rows, self.without)
        signals = candidates.signals(rows)
        parts = {
            "recency": self.recency * spread(self._recency(rows, signals.accessed)),
            "importance": self.importance * spread(rated(signals.importance)),
            "relevance": self.relevance * spread(candidates.cosines(rows)),
        }
        return best(rows, parts["recency"] + parts["importance"] + parts["relevance"], n, parts)

    def _recency(self, rows: Rows, accessed: Floats) -> Floats:
        order = np.lexsort((-rows, np.isin(rows, self.thoughts), accessed))
        places = np.empty(len(order))
        places[order[::-1] if self.newest_first else order] = np.arange(1, len(order) + 1)
        return np.power(self.decay, places)


class ResidentMemory(Memory):
    """A stream whose recalls wait to be written until its resident's turn is."""

    policy: Policy | None = None
    _recalls: tuple[Touch, ...] = ()

    def begin_turn(self) -> None:
        """Let go of what this process keeps between writes: a turn is the same for one that has just begun."""
        self._recalls = ()
        self._lately.forget(self.key)
        self.ids = Ids(self.name, self.ids.seed)

    async def recall(self, query: str, k: int = 10, *, touch: bool = True, **asked: Any) -> Recollection:
        """Return the k records that answer best (see `Stream.recall`)."""
        policy = await self.policy.within(self) if isinstance(self.policy, ByRank) else self.policy
        found = await super().recall(query, k, touch=False, **({"policy": policy} | asked))
        if touch and found.touch is not None:
            self.touch_later(found.touch)
        return found

    def touch_later(self, touch: Touch) -> None:
        """Let a recall do to memories what it does, with the next turn that is written; each counts once."""
        if touch not in self._recalls:
            self._recalls += (touch,)

    async def take_touched(self, written: Callable[[], Awaitable[None]]) -> list[Revision]:
        """Return what the recalls since the last time do to memories, once all that came before is `written`."""
        recalls, self._recalls = self._recalls, ()
        if not recalls:
            return []
        await written()
        return await self.touched(recalls)


KEY = "appointment"
"""Under this key an appointment stands in the `data` of the record that tells of it; it goes where the news goes."""


TownTime = Annotated[datetime, AfterValidator(lambda when: when if when.tzinfo else when.replace(tzinfo=UTC))]
"""A moment of the town's own time, which is taken for UTC as everywhere in a town."""


class Appointment(BaseModel):
    """Something that takes place. A record that has one has KEY among its keywords too, so that it is found.

    Attributes:
        what: what is done there, in a few words, as a plan says it ("having lunch").
        place: the address of where it is, as in the town's file; "" where nobody said.
        start, end: the town's own time.
        host: who gives it; "" nobody.
        who: who has agreed to come; others may know of it and stay away.
    """

    model_config = ConfigDict(frozen=True)

    what: str
    place: str = ""
    start: TownTime
    end: TownTime
    host: str = ""
    who: tuple[str, ...] = ()

    def is_same(self, other: Appointment) -> bool:
        """Tell whether another tells of the same, in whatever words and whoever comes."""
        return (self.start, self.place, self.host) == (other.start, other.place, other.host)

    def as_data(self) -> dict[str, Any]:
        """Return what a record keeps of it: `{KEY: …}`."""
        return {KEY: self.model_dump(mode="json", exclude_defaults=True)}


def appointment_of(data: Mapping[str, Any]) -> Appointment | None:
    """Return the appointment that a record's data hold; None: there is none, or it cannot be read."""
    try:
        return Appointment.model_validate(data[KEY]) if KEY in data else None
    except ValidationError:
        return None


class Relation(NamedTuple):
    """Whom somebody knows, and as what: `Relation("Mei Lin", "wife")`."""

    name: str
    what: str


class DayItem(BaseModel):
    """A part of somebody's usual day.

    Attributes:
        start, end: minutes of the day; past midnight where the end is not after the start.
        place: the address of a place or an object.
        on: on which weekdays (0 is Monday); empty: on all.
        duty: work or school, which an invitation does not move.
    """

    model_config = ConfigDict(frozen=True)

    start: int
    end: int
    what: str
    place: str
    on: tuple[int, ...] = ()
    duty: bool = False

    def is_on(self, day: date) -> bool:
        """Tell whether a day has it."""
        return not self.on or day.weekday() in self.on


class FirstMemory(BaseModel):
    """What somebody remembers from before.

    Attributes:
        weight: how important it is, 1 to 10; 0: whoever rates memories says.
        appointment: what takes place by it.
        background: who somebody is; known, and no news.
        secret: it is kept from others.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    weight: int = 0
    appointment: Appointment | None = None
    background: bool = False
    secret: bool = False

    @property
    def data(self) -> dict[str, Any]:
        """What its record holds."""
        told = self.appointment.as_data() if self.appointment else {}
        return told | {name: True for name in ("background", "secret") if getattr(self, name)}


class Person(BaseModel):
    """A resident as it is described.

    Attributes:
        innate: traits, in words. learned: what it is and does. currently: what it is about these days.
        lifestyle: when it sleeps and wakes. routine: what its days are bound to.
        home: the address of where it lives. bed: of where it sleeps; "": anywhere at home.
        day: its usual day, from getting up to going to bed, in order; what lies between is spent at home.
        start: where it stands when the town begins; None: at its bed.
        knows: addresses that it knows from the beginning, besides its home.
        household: who lives with it and is no resident: a baby, a dog; a few words each.
        about: its life so far, in a few sentences: known to it, and no news.
        memories: what it remembers from before.
        visits: it lives nowhere in the town, which is its `home` then: it is there while a person lives as it.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    age: int = 0
    innate: str = ""
    learned: str = ""
    currently: str = ""
    lifestyle: str = ""
    routine: str = ""
    home: str
    bed: str = ""
    day: tuple[DayItem, ...] = ()
    start: Spot | None = None
    knows: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    household: tuple[str, ...] = ()
    about: str = ""
    memories: tuple[FirstMemory, ...] = ()
    visits: bool = False

    @field_validator("memories", mode="before")
    @classmethod
    def _of_texts(cls, memories: Any) -> Any:
        """Take a text for a memory that says nothing more: so they stood in towns of before."""
        return tuple({"text": each} if isinstance(each, str) else each for each in memories)

    def identity(self, currently: str = "", summary: str = "") -> str:
        """Return who it is, in a few lines; after the identity stable set of Park 2023.

        Args:
            summary: who it is by now, drawn from its memory.
        """
        lines = [
            f"{self.name}, {self.age} years old" if self.age else self.name,
            self.innate and f"Traits: {self.innate}",
            self.learned,
            summary,
            currently or self.currently,
            self.lifestyle,
            self.routine,
            self.relations and "Knows: " + "; ".join(f"{name} ({what})" for name, what in self.relations),
        ]
        return "\n".join(line for line in lines if line)

    def first_memories(self) -> tuple[FirstMemory, ...]:
        """Return what its stream holds before it lives, each text once."""
        news = (*(FirstMemory(text=each) for each in (self.learned, self.currently)), *self.memories)
        known = (self.about, *self.acquaintances(), self.lifestyle, self.routine)
        every = (*news, *(FirstMemory(text=each, background=True) for each in known))
        first: dict[str, FirstMemory] = {}
        for each in every:
            if text := each.text.strip():
                first.setdefault(text, each.model_copy(update={"text": text}))
        return tuple(first.values())

    def acquaintances(self) -> tuple[str, ...]:
        """Return whom it knows, a sentence each."""
        return tuple(f"{each.name} is {self.name}'s {each.what}." for each in self.relations)

    def is_on_duty(self, at: Appointment) -> bool:
        """Tell whether its usual day binds it elsewhere while something takes place that others give."""
        start = at.start.hour * 60 + at.start.minute
        end = start + int((at.end - at.start).total_seconds()) // 60
        duties = (each for each in self.day if each.duty and each.is_on(at.start.date()))
        return at.host != self.name and any(
            each.start < end and start < each.start + (each.end - each.start - 1) % DAY_MINUTES + 1 for each in duties
        )

    def has_duty_in(self, place: str) -> bool:
        """Tell whether its days bind it to a place, or to something in it."""
        return any(each.duty and f"{each.place}:".startswith(f"{place}:") for each in self.day)
