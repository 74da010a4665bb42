"""The description of a resident (identity, usual day, memories from before the town began), and its memory stream."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, date, datetime
from functools import cache
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, ValidationError, field_validator

from mindstream.frozen import Frozen
from mindstream.memory.memory import Memory
from mindstream.memory.recall.ranking import Generative, Policy
from mindstream.memory.recall.recall import Recollection, Touch
from mindstream.memory.store.store import Revision
from mindstream_town.profile import Profile
from mindstream_town.world.tree import Spot
from mindstream_town.world.world import DAY_MINUTES


@cache
def policy_of(profile: Profile) -> Policy:
    """Return the ranking of memories in a town: recency, importance and relevance (Park 2023, 4.1)."""
    return Generative(profile.recency, profile.importance, profile.relevance, profile.decay)


class ResidentMemory(Memory):
    """A memory stream that stores the effects of recalls only when the resident's turn is written."""

    policy: Policy | None = None
    _recalls: tuple[Touch, ...] = ()

    def begin_turn(self) -> None:
        """Clear the caches of this process, so that a turn has the same result in a newly started process."""
        self._recalls = ()
        self._lately.forget(self.key)
        self.ids.begin_again()

    async def recall(self, query: str, k: int = 10, *, touch: bool = True, **asked: Any) -> Recollection:
        """Return the k best records (see `Memory.recall`)."""
        found = await super().recall(query, k, touch=False, **({"policy": self.policy} | asked))
        if touch and found.touch is not None:
            self.touch_later(found.touch)
        return found

    def touch_later(self, touch: Touch) -> None:
        """Store the effect of a recall with the next turn that is written, at most once."""
        if touch not in self._recalls:
            self._recalls += (touch,)

    async def take_touched(self, written: Callable[[], Awaitable[None]]) -> list[Revision]:
        """Return and clear the collected effects of recalls. If there are any, first await `written`, which waits until
        earlier steps are written."""
        recalls, self._recalls = self._recalls, ()
        if not recalls:
            return []
        await written()
        return await self.touched(recalls)


KEY = "appointment"
"""Key of an appointment in a record's `data`; it is copied when the record is passed on."""


TownTime = Annotated[datetime, AfterValidator(lambda when: when if when.tzinfo else when.replace(tzinfo=UTC))]
"""A time of the town. A time without a time zone counts as UTC, as everywhere in a town."""


class Appointment(Frozen):
    """An appointment. The record of an appointment has KEY as an additional keyword, by which it is found.

    Attributes:
        what: the activity in a few words, as in a plan ("having lunch").
        place: address of the place; "": not known.
        start, end: in the town's time.
        host: the resident who invites; "": none.
        who: residents who have agreed to come. Others may know of the appointment without coming.
        whom: other people to ask, tell or visit then.
    """

    what: str
    place: str = ""
    start: TownTime
    end: TownTime
    host: str = ""
    who: tuple[str, ...] = ()
    whom: tuple[str, ...] = ()

    @property
    def minute(self) -> int:
        """The minute of the day at which it starts."""
        return self.start.hour * 60 + self.start.minute

    def is_same(self, other: Appointment) -> bool:
        """Return whether two descriptions are of the same appointment: start, place and host are equal; words and
        guests may differ."""
        return (self.start, self.place, self.host) == (other.start, other.place, other.host)

    def as_data(self) -> dict[str, Any]:
        """Return the data for a record: `{KEY: …}`."""
        return {KEY: self.model_dump(mode="json", exclude_defaults=True)}


def appointment_of(data: Mapping[str, Any]) -> Appointment | None:
    """Return the appointment in a record's data; None if there is none or it is invalid."""
    try:
        return Appointment.model_validate(data[KEY]) if KEY in data else None
    except ValidationError:
        return None


class Relation(NamedTuple):
    """A resident's relation to another person, such as `Relation("Mei Lin", "wife")`.

    Attributes:
        name: the other person.
        what: the relation in words.
        avoids: whether the resident avoids the other person.
    """

    name: str
    what: str
    avoids: bool = False


class DayItem(Frozen):
    """A part of a usual day.

    Attributes:
        start, end: minutes after midnight; the part lasts past midnight if the end is not after the start.
        place: address of a place or an object.
        on: weekdays (0 is Monday); empty: every day.
        duty: whether the part is work or school; an invitation does not move such a part.
    """

    start: int
    end: int
    what: str
    place: str
    on: tuple[int, ...] = ()
    duty: bool = False

    def is_on(self, day: date) -> bool:
        return not self.on or day.weekday() in self.on


class FirstMemory(Frozen):
    """A memory from before the town began.

    Attributes:
        weight: importance from 1 to 10; 0: the model rates it.
        appointment: the appointment that the memory is about; None: none.
        background: whether the memory is part of the resident's description. Such a memory is not passed on as news.
        secret: whether the resident keeps the memory from others.
    """

    text: str
    weight: int = 0
    appointment: Appointment | None = None
    background: bool = False
    secret: bool = False

    @property
    def data(self) -> dict[str, Any]:
        """The data of its record."""
        told = self.appointment.as_data() if self.appointment else {}
        return told | {name: True for name in ("background", "secret") if getattr(self, name)}


class Person(Frozen):
    """The description of a resident or visitor.

    Attributes:
        innate: traits. learned: occupation and life. currently: present concerns.
        lifestyle: sleeping hours. routine: fixed habits.
        home: address of the home. bed: address of the bed; "": anywhere at home.
        day: the usual day in order, from getting up to going to bed; the gaps between its parts are spent at home.
        start: position at the beginning; None: the bed.
        knows: addresses of known places in addition to the home; empty: all places except other people's homes.
        household: members who are not residents, such as a baby or a dog, a few words each.
        about: the life so far, in a few sentences; it is not passed on as news.
        memories: memories from before the town began.
        visits: whether it is a visitor, who is present only while a user controls it; its `home` is the town itself.
    """

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
        """Accept plain texts, which towns of earlier versions stored."""
        return tuple({"text": each} if isinstance(each, str) else each for each in memories)

    def identity(self, currently: str = "", summary: str = "") -> str:
        """Return a description in a few lines, as the "identity stable set" of Park 2023.

        Args:
            currently: what occupies the person these days; "": as in the town file.
            summary: description written from the resident's memory; "": none.
        """
        lines = [
            f"{self.name}, {self.age} years old" if self.age else self.name,
            self.innate and f"Traits: {self.innate}",
            self.learned,
            summary,
            currently or self.currently,
            self.lifestyle,
            self.routine,
            self.relations and "Knows: " + "; ".join(f"{name} ({what})" for name, what, _ in self.relations),
        ]
        return "\n".join(line for line in lines if line)

    def first_memories(self) -> tuple[FirstMemory, ...]:
        """Return the memories from before the town began, each text once."""
        news = (*(FirstMemory(text=each) for each in (self.learned, self.currently)), *self.memories)
        known = (self.about, *self.acquaintances(), self.lifestyle, self.routine)
        every = (*news, *(FirstMemory(text=each, background=True) for each in known))
        first: dict[str, FirstMemory] = {}
        for each in every:
            if text := each.text.strip():
                first.setdefault(text, each.model_copy(update={"text": text}))
        return tuple(first.values())

    def acquaintances(self) -> tuple[str, ...]:
        """Return one sentence for each relation."""
        return tuple(f"{self.name} knows {each.name} ({each.what})." for each in self.relations)

    def is_on_duty(self, at: Appointment) -> bool:
        """Return whether a duty of the usual day overlaps with an appointment that another person hosts."""
        start = at.minute
        end = start + int((at.end - at.start).total_seconds()) // 60
        duties = (each for each in self.day if each.duty and each.is_on(at.start.date()))
        return at.host != self.name and any(
            each.start < end and start < each.start + (each.end - each.start - 1) % DAY_MINUTES + 1 for each in duties
        )

    def has_duty_in(self, place: str) -> bool:
        """Return whether the usual day has a duty at a place or inside it."""
        return any(each.duty and f"{each.place}:".startswith(f"{place}:") for each in self.day)
