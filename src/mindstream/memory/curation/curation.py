"""Care of a stream: corrections, where things come from, the archive, another embedder."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mindstream import intake
from mindstream.clock import Moment, Time, moment
from mindstream.errors import Conflict, InputError, ModelError, StorageError
from mindstream.log.events import Corrected, Event, Failed, Remembered
from mindstream.memory.curation.slot_items import SlotItem, find_items
from mindstream.memory.missing_vectors import give
from mindstream.memory.recall.embedding import asking, embed_each
from mindstream.memory.store.columns import OPEN
from mindstream.memory.store.record import UNIQUE, Record, RecordDraft, Triple, nfc, normalised
from mindstream.memory.store.store import Entry, NewWork, Revision
from mindstream.memory.store.validation import checked_text, is_finite, shortened
from mindstream.memory.traced import tell_changed, traced
from mindstream.text.words import terms
from mindstream.tracing import genai

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream

BATCH = 256
DEEPEST = 100
"""So many levels of evidence are followed down."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A record and what it was drawn from.

    Attributes:
        missing: ids of evidence that is not there: erased, or never a record of this stream.
        cut: its own evidence is left out here: it stands elsewhere in the tree, or lies too deep.
    """

    record: Record
    evidence: tuple[Drawn, ...] = ()
    missing: tuple[str, ...] = ()
    cut: bool = False


@traced(genai.UPDATE_MEMORY, "old", tell_changed)
async def supersede(stream: Stream, old: str, text: str, *, by: str = "", evidence: Sequence[str] = ()) -> Record:
    """Write the correction of a record and end the old one, in one commit.

    The new record has all other fields of the old one: when it holds, importance, keywords, data, session. It may
    differ in letter case or punctuation only; with the very text of the old one nothing is written. If another record
    says the new text already, that one takes the old one's place.

    Raises:
        InputError: there is no such record, or it is history already, or it is a version of a belief or plan.
    """
    text = (await intake.cleaned(checked_text(text))).text
    while True:
        record = await _correctable(stream, old)
        if text == nfc(record.text):
            return record
        now, unique = stream.clock.now(), record.kind in UNIQUE
        there = await stream.store.find_same(stream.key, record.kind, [text], now=now) if unique else {}
        there = {words: each for words, each in there.items() if each.id != old}
        new = there.get(normalised(text)) or await _corrected(stream, record, text, by, evidence, now)
        fresh = () if there else (new,)
        event = Remembered(count=len(fresh), kinds={new.kind: len(fresh)})
        ending = Revision(id=old, valid_until=now, superseded_by=new.id, holds=True)
        try:
            await stream.commit(Entry(event, by or stream.name, fresh, distinct=True), revisions=[ending])
        except Conflict:
            await asyncio.sleep(0)  # somebody was first: look again
            continue
        return new


@traced(genai.UPDATE_MEMORY, "old", tell_changed)
async def replace(stream: Stream, old: str, new: RecordDraft | None, *, by: str = "") -> Record | None:
    """End a record and, where `new` is given, write what takes its place, in one commit; the old one is history.

    Unlike `supersede` it may change all of it, or letter case or `data` alone. None: nothing takes its place.

    Raises:
        InputError: there is no such record, or it is history already (somebody may have been first), or it is a version
            of a belief or plan.
    """
    draft = new and dataclasses.replace(new, evidence=(old, *new.evidence))
    while True:
        await _correctable(stream, old)
        fresh = await stream.build_records([draft]) if draft else []
        successor = fresh[0] if fresh else None
        ends = successor.created if draft and successor and draft.created is None else stream.clock.now()
        event: Event = Corrected(old=old, new="")
        if successor:
            event = Remembered(count=1, kinds={successor.kind: 1})
        ending = Revision(
            id=old,
            valid_until=ends,
            superseded_by=successor.id if successor else None,
            holds=True,
        )
        with contextlib.suppress(Conflict):  # somebody was first: look again
            await stream.commit(Entry(event, by or stream.name, tuple(fresh)), revisions=[ending])
            return successor
        await asyncio.sleep(0)


async def _correctable(stream: Stream, id_: str) -> Record:
    record = next(iter(await stream.store.records(stream.key, [id_])), None)
    if record is None:
        raise InputError(f"there is no record {id_!r} in the stream {stream.name!r}")
    if record.slot is not None:
        raise InputError(f"the record {id_} is a version of {record.slot!r}: change that with `believe`")
    if record.superseded_by:
        raise InputError(f"the record {id_} was superseded by {record.superseded_by}: correct that one")
    ended = record.valid_until is not None and record.valid_until <= stream.clock.now()
    if record.forgotten is not None or ended:
        raise InputError(f"the record {id_} is forgotten, or holds no more: retain the new text instead")
    return record


async def _corrected(stream: Stream, old: Record, text: str, by: str, evidence: Sequence[str], now: Moment) -> Record:
    """Return the correction of a record; it begins at `now`, where the old one ends, unless that says when it began."""
    about = old.about and Triple(old.about.subject, old.about.predicate, text[:200])
    new = RecordDraft(
        text=text,
        kind=old.kind,
        by=by or old.by,
        episode=old.episode,
        importance=old.importance,
        about=about,
        keywords=old.keywords,
        evidence=(old.id, *evidence),
        data=old.data,
        valid_until=old.valid_until,
        created=now,
        valid_from=now if old.valid_from is None else old.valid_from,
    )
    return (await stream.build_records([new]))[0]


async def evidence_of(stream: Stream, id_: str) -> Drawn:
    """Return a record with what it was drawn from, and that with its own evidence, down to what was seen.

    The evidence of a record stands in the tree once, where it is nearest to the top, and at most DEEPEST levels down.

    Raises:
        InputError: there is no such record.
    """
    found: dict[str, Record] = {}
    owner: dict[str, str] = {id_: ""}  # whose evidence it is where it is nearest to the top
    levels = [[id_]]
    for _ in range(DEEPEST):
        there = await stream.store.records(stream.key, levels[-1])
        found |= {record.id: record for record in there}
        new = {each: record.id for record in reversed(there) for each in record.evidence if each not in owner}
        owner |= new
        levels.append(list(new))
    if id_ not in found:
        raise InputError(f"there is no record {id_!r} in the stream {stream.name!r}")
    deeper, drawn = set(levels[-1]), dict[str, Drawn]()
    for record in (found[each] for level in reversed(levels) for each in level if each in found):
        evidence = list(dict.fromkeys(record.evidence))
        below = [
            drawn[each] if owner[each] == record.id else Drawn(found[each], cut=bool(found[each].evidence))
            for each in evidence
            if each in found
        ]
        missing = tuple(each for each in evidence if each not in found and each not in deeper)
        drawn[record.id] = Drawn(record, tuple(below), missing, cut=any(each in deeper for each in evidence))
    return drawn[id_]


async def read_history(stream: Stream, id_: str) -> list[Record]:
    """Return the wordings that led to a record and came after it, oldest first.

    Raises:
        InputError: there is no such record.
    """
    found: dict[str, Record] = {}
    after = [id_]
    while after:
        there = await stream.store.records(stream.key, after)
        found |= {record.id: record for record in there}
        after = [each.superseded_by for each in there if each.superseded_by and each.superseded_by not in found]
    if id_ not in found:
        raise InputError(f"there is no record {id_!r} in the memory of {stream.name!r}")
    before = [each for record in found.values() for each in record.evidence if each not in found]
    while before:
        there = [each for each in await stream.store.records(stream.key, before) if each.superseded_by in found]
        found |= {record.id: record for record in there}
        before = [each for record in there for each in record.evidence if each not in found]
    return sorted(found.values(), key=lambda record: record.seq)


async def archive(stream: Stream) -> list[Record]:
    """Return what is forgotten, in the order of writing."""
    return await stream.store.records(stream.key, await _forgotten(stream, OPEN))


@traced(genai.DELETE_MEMORY, "before", lambda _, gone: {genai.RECORDS: gone})
async def purge(stream: Stream, before: Time | None = None) -> int:
    """Delete for good what was forgotten before a moment (None: all that is forgotten); return how many.

    Their words go from the log and from what was drawn from them, too (see memory/store/erasure), and from the file's
    bytes.
    What the user said in a chat stands: that is another record, and never fades.
    """
    ids = await _forgotten(stream, OPEN if before is None else moment(before, "before"))
    if not ids:
        return 0
    unembedded = await stream.store.unembedded(stream.key)
    erased = await stream.store.erase(stream.key, ids)
    await finish_erasure(stream, unembedded)
    return erased


async def finish_erasure(stream: Stream, unembedded: Sequence[str], *, compact: bool = True) -> str:
    """Remove what was erased from the bytes of the files; return why it is still there, "" if it is not.

    The deletion is committed, so a file that is in use is no error: the next compaction or opening finishes it.
    `unembedded`: records that had no vector before. Others lost some of their words, and get a new vector.
    """
    pending = ""
    if compact:
        try:
            await stream.store.compact()
        except StorageError as error:
            pending = str(error)
            with contextlib.suppress(StorageError):
                await stream.commit(Entry(Failed(text=pending, where="compaction"), stream.name, system=True))
    known = frozenset(unembedded)
    lost = [id_ for id_ in await stream.store.unembedded(stream.key) if id_ not in known]
    if lost and not stream.vectors_of:
        with contextlib.suppress(ModelError):  # `reembed` gives it one later
            await _embed(stream, lost)
    return pending


async def _forgotten(stream: Stream, before: Moment) -> list[str]:
    columns = await stream.columns()
    return [columns.ids[at] for at in np.flatnonzero(columns.forgotten.values < before)]


async def reembed(stream: Stream, batch: int = BATCH, tell: Callable[[int], None] = lambda _: None) -> int:
    """Give each record that has none a vector of the stream's embedder, a batch a commit; return how many got one.

    It may be broken off and gone on with. `tell` hears how many are done. A text that the embedder refuses keeps its
    record without a vector of it, and a row `error` of the log names the record; no other is held up by it.

    Raises:
        ModelError: the embedder fails for every text; what is done is kept.
    """
    done = await _embed(stream, list((await stream.columns()).ids), batch, tell)
    stream.vectors_of = ""
    return done


async def _embed(
    stream: Stream, ids: Sequence[str], batch: int = BATCH, tell: Callable[[int], None] = lambda _: None
) -> int:
    done, ask = 0, asking(stream.embedder)
    for start in range(0, len(ids), batch):
        records = [
            record
            for record in await stream.store.records(stream.key, ids[start : start + batch])
            if record.embedder != stream.embedder.name or record.vector is None or not is_finite(record.vector)
        ]
        if records:
            done += await give(stream, records, await embed_each(ask, [record.text for record in records]))
        tell(done)
        await asyncio.sleep(0)
    return done


# The sessions of a stream: when each was, how long, and how it began.


OPENING = 100
"""So many characters of its first line say how a session began."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session (an episode): its talk, or what was observed in it.

    Attributes:
        lines: how many records it has.
        opening: the beginning of the first one; `seq`: its row of the log (0: it has none).
    """

    name: str
    first: Moment
    last: Moment
    lines: int
    opening: str
    seq: int = 0


async def list_sessions(stream: Stream) -> list[Session]:
    """Return the sessions of a stream, in the order in which they began: from its columns, and a text of each."""
    columns = await stream.columns()
    there = np.flatnonzero((columns.group.values >= 0) & (columns.forgotten.values == OPEN))
    episodes = columns.episode.values[there]
    numbers, firsts, lines = np.unique(episodes, return_index=True, return_counts=True)
    lasts = len(there) - 1 - np.unique(episodes[::-1], return_index=True)[1]
    names = list(columns.episodes)
    opening = [columns.ids[at] for at in there[firsts]]
    records = await stream.store.records(stream.key, opening)
    began = {record.id: (shortened(" ".join(record.text.split()), OPENING), record.seq) for record in records}
    created = columns.created.values[there]
    found = [
        Session(names[number], float(created[first]), float(created[last]), int(count), *began.get(id_, ("", 0)))
        for number, first, last, count, id_ in zip(numbers, firsts, lasts, lines, opening, strict=True)
    ]
    return sorted(found, key=lambda session: session.first)


# Corrections: the new words take the old ones' place, and whoever believed the old ones is told.


@dataclass(frozen=True, slots=True)
class Correction:
    """What a correction came to.

    Attributes:
        record: the new one; `superseded` is history.
        drawn: records that hold, and were drawn from the old one.
        items: what beliefs and plans hold that rests on it, or on what it was drawn from in some of the same words.
    """

    record: Record
    superseded: Record
    drawn: tuple[Record, ...] = ()
    items: tuple[SlotItem, ...] = ()


async def correct(
    stream: Stream, old: str, text: str, *, by: str = "", evidence: Sequence[str] = (), wake: NewWork | None = None
) -> Correction:
    """Correct a record, log that, and return who believed the old one; `wake`: reasoners that are to know.

    Raises:
        InputError: see `supersede`.
    """
    new = await supersede(stream, old, text, by=by, evidence=evidence)
    there = {record.id: record for record in await stream.store.records(stream.key, [old, new.id])}
    before, new = there[old], there[new.id]
    if new.id == old:
        return Correction(new, before)
    await stream.commit(Entry(Corrected(old=old, new=new.id), by or stream.name), wake=wake)
    found = await stream.store.closure(stream.key, [old], slots_below=before.evidence)
    rests = (found.gone | found.below) - {old, new.id}
    drawn = await stream.store.records(stream.key, sorted(rests, key=found.order.__getitem__))
    now = stream.clock.now()
    hold = [each for each in drawn if each.slot is None and each.forgotten is None and (each.valid_until or now) >= now]
    items = [item for versions in found.versions.values() for item in find_items(versions) if _rests(item, before)]
    return Correction(new, before, tuple(hold), tuple(items))


def _rests(item: SlotItem, old: Record) -> bool:
    """Tell whether an item rests on a record, or says some of its words and was drawn from what it was drawn from."""
    if old.id in item.evidence:
        return True
    return not {*item.evidence}.isdisjoint(old.evidence) and not {*terms(item.text)}.isdisjoint(terms(old.text))
