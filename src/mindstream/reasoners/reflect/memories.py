"""Records of somebody, numbered, and what is read from them: people, talks, deeds, what was said and what it names."""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mindstream.clock import Moment
from mindstream.memory.record import Record, Triple
from mindstream.text.words import terms

LONGEST_QUOTATION, FEWEST_TERMS = 200, 5
TOPIC = re.compile(r"(?<![.!?:;] )(?<=\S )[A-Z][\w’']+(?: (?:of |and |the )?[A-Z][\w’']+)+")
SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n")
FIRST_PERSON = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Ww]e|[Oo]ur|[Yy]ou|[Yy]our)\b")
DATES = frozenset((*calendar.month_name[1:], *calendar.day_name))


@dataclass(frozen=True, slots=True)
class Memory:
    """A record as a rule reads it.

    Attributes:
        is_drawn: it was drawn from other records.
        to: to whom a line was said; "" where it is no line of two.
        place: the address of what is seen.
        by_agent: an agent said it, not its user.
    """

    kind: str
    text: str
    by: str
    created: Moment
    episode: str = ""
    importance: float | None = None
    about: Triple | None = None
    keywords: tuple[str, ...] = ()
    is_drawn: bool = False
    to: str = ""
    place: str = ""
    by_agent: bool = False


def memory_of(record: Record) -> Memory:
    """Return a record as a rule reads it."""
    to, place = (each if isinstance(each := record.data.get(name), str) else "" for name in ("to", "place"))
    return Memory(
        record.kind, record.text, record.by, record.created, record.episode, record.importance, record.about,
        record.keywords, bool(record.evidence), to, place, record.data.get("by_user") is False,
    )  # fmt: skip


@dataclass(frozen=True)
class Memories:
    """Numbered records of somebody, and what is read from them."""

    who: str
    records: Sequence[Memory]

    @cached_property
    def numbered(self) -> list[tuple[int, Memory]]:
        """The records by time of writing, with their numbers."""
        return sorted(enumerate(self.records, 1), key=lambda each: (each[1].created, each[0]))

    @cached_property
    def people(self) -> frozenset[str]:
        """The others who speak, are spoken to, or are seen to do something, by whole name."""
        names = {name for record in self.records if record.to for name in (record.by, record.to)}
        names |= {
            each.about.subject
            for each in self.records
            if each.about
            and each.about.predicate == "is"
            and re.fullmatch(r"[A-Z]\S*(?: [A-Z]\S*)+", each.about.subject)
        }
        return frozenset(names - {self.who, ""})

    @cached_property
    def deeds(self) -> list[tuple[int, Memory, str, str]]:
        """What others were seen to do, without the part of it that was just under way: (number, record, who, what)."""
        return [
            (number, record, record.about.subject, record.about.object.partition(" (")[0])
            for number, record in self.numbered
            if record.about and record.about.predicate == "is" and record.about.subject in self.people
        ]

    @cached_property
    def heard(self) -> list[tuple[int, Memory]]:
        """What others said to who remembers it."""
        return [each for each in self.numbered if each[1].to and each[1].by != self.who]

    @cached_property
    def talks(self) -> list[tuple[int, Memory, str]]:
        """What is remembered of talks with one other, lines and what was kept: all of one talk are of one moment."""
        found = [
            (number, each, each.to if each.by == self.who else each.by) for number, each in self.numbered if each.to
        ]
        others = {name.lower(): name for name in self.people}
        found += [
            (number, each, others[each.keywords[0]])
            for number, each in self.numbered
            if each.kind == "observation" and each.is_drawn and len(each.keywords) == 1 and each.keywords[0] in others
        ]
        return found

    @cached_property
    def own_thoughts(self) -> list[tuple[int, str]]:
        """What earlier reflections came to."""
        return [
            (number, each.text) for number, each in self.numbered if each.kind == "thought" and each.by == "reflect"
        ]


def house_of(place: str) -> str:
    """Return the house of an address `world:house:room:thing`, the place itself where it is none."""
    parts = place.split(":")
    return parts[1] if len(parts) > 1 else parts[0]


def topics_of(text: str, memories: Memories) -> list[str]:
    """Return the names in a text: of others, and of what is written with capitals, by several words."""
    people = [name for name in sorted(memories.people) if name in text]
    words = {word for name in (memories.who, *memories.people) for word in name.split()}
    names = (each.removesuffix("'s").removesuffix("’s") for each in TOPIC.findall(text))
    return people + [each for each in names if not (words | DATES) & {*re.split(r"[ ’']", each)}]


def statements(text: str, own: bool = False) -> list[str]:
    """Return the sentences of a line that state something; unless `own`, of the world, not of "me" and "you"."""
    return [
        each
        for each in map(str.strip, SENTENCE.split(text))
        if len(each) <= LONGEST_QUOTATION and not each.endswith(("?", "？"))
        and (own or not FIRST_PERSON.search(each)) and len(set(terms(each))) >= FEWEST_TERMS
    ]  # fmt: skip
