"""Audit a stream for duplicates, junk, echoes (records that repeat an older one of another kind) and unused records;
nothing is changed."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mindstream.clock import DAY_S, Moment
from mindstream.memory.lifecycle import duplicates
from mindstream.memory.store.record import FADING, UNIQUE, Kind, Record, normalised
from mindstream.memory.store.store import read_all
from mindstream.text.words import terms

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream

ONCE: frozenset[Kind] = UNIQUE | {"document", "dream"}
"""Kinds of which two records with the same words are duplicates. In other kinds they are not: a user can send the same
message twice, or the same thing can be observed twice."""
WRITTEN: frozenset[Kind] = frozenset({"note", "thought"})
"""Kinds that models write, where junk accumulates."""
JUNK = {
    "a question": re.compile(r"[?？][^\w?？]*$"),
    "marks of a prompt": re.compile(r"</?(system|user|data)>"),
    "code or data": re.compile(r"^\s*[\[{].*[\]}]\s*$|```|^Traceback "),
}
"""Patterns of texts that are not proper notes. Each key is the reason that the audit reports."""


@dataclass(frozen=True, slots=True)
class Junk:
    """A note or thought without useful content, and why."""

    id: str
    why: str


@dataclass(frozen=True, slots=True)
class Echo:
    """A record (`id`) with the same words as an older record (`of`) of another kind.

    Such a record was derived from the memory itself, not from an observation. Copies of chat messages do not count.
    """

    id: str
    of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The findings. All ids are in the order of writing.

    Attributes:
        held: number of current records by kind, without superseded, expired and archived ones.
        superseded, forgotten: number of superseded records, and of archived records.
        exact: groups of records of one kind (in ONCE) with the same words.
        near: groups of near-duplicate notes or thoughts (memory/lifecycle/duplicates). Under the policy `decay`, a
            sleep merges the groups that contain a record written since the last sleep.
        never_recalled: records that can decay, are older than a day, and were never returned by a recall (or have
            decayed to level 0 since the last return).
        echoes: notes, thoughts or exemplars with the words of an older record of another kind. Words of chat messages
            do not count, because notes are made from messages.
        foreign: number of records without a vector of the stream's embedder.
    """

    records: int
    held: Mapping[Kind, int]
    superseded: int
    forgotten: int
    exact: Sequence[tuple[str, ...]] = ()
    near: Sequence[tuple[str, ...]] = ()
    junk: Sequence[Junk] = ()
    never_recalled: Sequence[str] = ()
    echoes: Sequence[Echo] = ()
    foreign: int = 0

    @property
    def clean(self) -> bool:
        """Whether there are no findings; unused records do not count as findings."""
        return not (self.exact or self.near or self.junk or self.echoes or self.foreign)


async def audit(stream: Stream) -> Audit:
    """Read the whole stream and return the findings."""
    records = [record async for some in read_all(stream.store, stream.key) for record in some]
    near = [tuple(each.id for each in group) async for group in duplicates.near(stream)]
    foreign = (await stream.columns()).foreign
    return await asyncio.to_thread(_report, records, near, foreign, stream.clock.now())


def _report(records: Sequence[Record], near: Sequence[tuple[str, ...]], foreign: int, now: Moment) -> Audit:
    held = [record for record in records if _holds(record, now)]
    exact = _exact(held)
    same = {id_ for group in exact for id_ in group}
    return Audit(
        records=len(records),
        held=dict(Counter(record.kind for record in held)),
        superseded=sum(record.superseded_by is not None for record in records),
        forgotten=sum(record.forgotten is not None for record in records),
        exact=exact,
        near=list({frozenset(group): tuple(sorted(group)) for group in near if not set(group) <= same}.values()),
        junk=[Junk(record.id, why) for record in held if record.kind in WRITTEN and (why := _junk(record.text))],
        never_recalled=[
            each.id
            for each in held
            if each.kind in FADING and each.level == 0 and not each.lasting and now - each.created > DAY_S
        ],
        echoes=_echoes(records, now),
        foreign=foreign,
    )


def _holds(record: Record, now: Moment) -> bool:
    return record.forgotten is None and (record.valid_until is None or record.valid_until > now)


def _exact(held: Iterable[Record]) -> list[tuple[str, ...]]:
    said: defaultdict[tuple[Kind, str], list[str]] = defaultdict(list)
    for record in held:
        if record.kind in ONCE:
            said[record.kind, normalised(record.text)].append(record.id)
    return [tuple(ids) for ids in said.values() if len(ids) > 1]


def _junk(text: str) -> str:
    """Return why a text is junk; "" if it is not junk."""
    for why, signs in JUNK.items():
        if signs.search(text):
            return why
    return "" if terms(text) else "no words to find it by"


def _echoes(records: Iterable[Record], now: Moment) -> list[Echo]:
    """Find current notes, thoughts and exemplars whose words were first written in a record of another kind that is not
    a chat message."""
    first: dict[str, Record] = {}
    found: list[Echo] = []
    for record in records:
        words = normalised(record.text)
        older = first.setdefault(words, record)
        if older is record or record.kind not in UNIQUE or not _holds(record, now) or older.kind == record.kind:
            continue
        if older.kind != "chat":
            found.append(Echo(record.id, older.id))
    return found
