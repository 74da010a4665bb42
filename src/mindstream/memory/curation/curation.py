"""Maintenance of a stream: corrections, evidence, history, the archive, changed embedders, sessions."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mindstream import redaction, tracing
from mindstream.clock import Moment, Time, moment
from mindstream.errors import Conflict, InputError, ModelError, StorageError
from mindstream.guidance import checked_id
from mindstream.log.events import Corrected, Failed, Remembered
from mindstream.memory.curation.slot_items import SlotItem, find_items
from mindstream.memory.recall.embedding import asking, embed_each, give
from mindstream.memory.store.columns import OPEN
from mindstream.memory.store.record import (
    UNIQUE,
    Record,
    RecordDraft,
    Triple,
    checked_text,
    is_finite,
    nfc,
    normalised,
    shortened,
)
from mindstream.memory.store.store import Entry, NewWork, Revision
from mindstream.memory.stream import traced
from mindstream.text.words import batches, terms
from mindstream.tracing import tell_changed

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream

BATCH = 256
MAX_DEPTH = 100
"""Maximum depth of an evidence tree that is returned."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A record with the records that it was derived from.

    Attributes:
        missing: ids of evidence that does not exist. This evidence was erased, or was never a record of this stream.
        cut: whether the record has evidence that is not listed here. Such evidence is shown elsewhere in the tree or
            is deeper than MAX_DEPTH.
    """

    record: Record
    evidence: tuple[Drawn, ...] = ()
    missing: tuple[str, ...] = ()
    cut: bool = False


@traced(tracing.UPDATE_MEMORY, "old", tell_changed)
async def supersede(stream: Stream, old: str, text: str, *, by: str = "", evidence: Sequence[str] = ()) -> Record:
    """Write a correction of a record and end the validity of the old record, in one commit.

    The new record keeps the kind, session, importance, keywords, data and validity of the old record. If the old record
    has no `valid_from`, the new record is valid from now. A text that differs only in letter case or punctuation is a
    correction, too. For an identical text, nothing is written.

    Another current record of the same kind may already have the new text. If the kind is note, thought or exemplar,
    that record then replaces the old one, and no new record is written.

    Raises:
        InputError: the record does not exist, is no longer current, or is a version of a belief or plan; or the text is
            empty or too long.
    """
    text = (await redaction.cleaned(checked_text(text))).text
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
        if await _end(stream, old, now, new, Entry(event, by or stream.name, fresh, distinct=True)):
            return new


@traced(tracing.UPDATE_MEMORY, "old", tell_changed)
async def replace(stream: Stream, old: str, new: RecordDraft | None, *, by: str = "") -> Record | None:
    """End the validity of a record and, if `new` is given, write its replacement, in one commit.

    Unlike `supersede`, it can change every field.

    Returns:
        The replacement; None if there is none.

    Raises:
        InputError: the record does not exist, is no longer current (another process may have ended it just now), or is
            a version of a belief or plan.
    """
    draft = new and dataclasses.replace(new, evidence=(old, *new.evidence))
    while True:
        await _correctable(stream, old)
        fresh = await stream.build_records([draft]) if draft else []
        successor = fresh[0] if fresh else None
        ends = successor.created if draft and successor and draft.created is None else stream.clock.now()
        event = Remembered(count=1, kinds={successor.kind: 1}) if successor else Corrected(old=old, new="")
        if await _end(stream, old, ends, successor, Entry(event, by or stream.name, tuple(fresh))):
            return successor


async def _end(stream: Stream, old: str, at: Moment, successor: Record | None, entry: Entry) -> bool:
    """End the validity of a record and commit an entry; return False if another writer changed the record first."""
    ending = Revision(id=old, valid_until=at, superseded_by=successor.id if successor else None, holds=True)
    try:
        await stream.commit(entry, revisions=[ending])
    except Conflict:
        await asyncio.sleep(0)
        return False
    return True


async def _correctable(stream: Stream, id_: str) -> Record:
    record = next(iter(await stream.records([checked_id(id_)])), None)
    if record is None:
        raise no_record(stream, id_)
    if record.slot is not None:
        raise InputError(f"the record {id_} is a version of {record.slot!r}: change {record.slot!r} with `believe`")
    if record.superseded_by:
        raise InputError(
            f"the record {id_} was superseded by {record.superseded_by}: correct {record.superseded_by} instead"
        )
    ended = record.valid_until is not None and record.valid_until <= stream.clock.now()
    if record.forgotten is not None or ended:
        raise InputError(f"the record {id_} is archived or no longer valid: write the new text with `retain` instead")
    return record


async def _corrected(stream: Stream, old: Record, text: str, by: str, evidence: Sequence[str], now: Moment) -> Record:
    """Build the correction of a record.

    The correction is valid from the beginning of the old record's validity. If the old record states no beginning, the
    correction is valid from `now`, when the old record's validity ends.
    """
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
    """Return a record as the root of the tree of its evidence. The leaves are records without evidence.

    If a record occurs several times in the tree, its own evidence is shown only at the place nearest to the root.
    Evidence below MAX_DEPTH levels is left out.

    Raises:
        InputError: there is no such record.
    """
    id_, found = checked_id(id_), dict[str, Record]()
    # for each record: of the records that name it as evidence, the one nearest to `id_`
    owner: dict[str, str] = {id_: ""}
    levels = [[id_]]
    for _ in range(MAX_DEPTH):
        there = await stream.records(levels[-1])
        found |= {record.id: record for record in there}
        new = {each: record.id for record in reversed(there) for each in record.evidence if each not in owner}
        owner |= new
        levels.append(list(new))
    if id_ not in found:
        raise no_record(stream, id_)
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


def no_record(stream: Stream, id_: str) -> InputError:
    """Return the error that a stream has no record with an id."""
    hint = "; pass the id of a record, such as note.id or hit.id, not a text" if " " in id_.strip() else ""
    return InputError(f"there is no record {id_[:100]!r} in the memory of {stream.name!r}{hint}")


async def read_history(stream: Stream, id_: str) -> list[Record]:
    """Return all wordings of a record, both earlier and later ones than the given one, oldest first. The current
    wording is the last.

    Raises:
        InputError: there is no such record.
    """
    found: dict[str, Record] = {}
    after = [id_]
    while after:
        there = await stream.records(after)
        found |= {record.id: record for record in there}
        after = [each.superseded_by for each in there if each.superseded_by and each.superseded_by not in found]
    if id_ not in found:
        raise no_record(stream, id_)
    before = [each for record in found.values() for each in record.evidence if each not in found]
    while before:
        there = [each for each in await stream.records(before) if each.superseded_by in found]
        found |= {record.id: record for record in there}
        before = [each for record in there for each in record.evidence if each not in found]
    # Superseded records first, then by row: a correction back to an earlier wording makes that old record current.
    return sorted(found.values(), key=lambda record: (not record.superseded_by, record.seq))


async def archive(stream: Stream) -> list[Record]:
    """Return the archived records, in the order of writing."""
    return await stream.records(await _forgotten(stream, OPEN))


@traced(tracing.DELETE_MEMORY, "before", lambda _, gone: {tracing.RECORDS: gone})
async def purge(stream: Stream, before: Time | None = None) -> int:
    """Permanently delete records that were archived before a moment (None: all archived records); return their number.

    The words of these records are also deleted from the log, from records derived from them (memory/store/erasure), and
    from the bytes of the file. Messages from which archived records were derived stay, because they are separate
    records, which do not decay.
    """
    ids = await _forgotten(stream, OPEN if before is None else moment(before, "before"))
    if not ids:
        return 0
    unembedded = await stream.store.unembedded(stream.key)
    erased = await stream.store.erase(stream.key, ids)
    await finish_erasure(stream, unembedded)
    return erased


async def finish_erasure(stream: Stream, unembedded: Sequence[str], *, compact: bool = True) -> str:
    """Remove erased data from the bytes of the files; return the reason if that could not be completed, otherwise "".

    The caller has committed the deletion already. So it is not an error if another program uses the file: the next
    compaction or opening removes the bytes.

    Args:
        unembedded: ids of records that had no vector before the erasure. Other records without a vector lost words by
            the erasure, and get a new vector here.
        compact: False: the bytes are not removed now.
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
        with contextlib.suppress(ModelError):  # `reembed` can add the vectors later
            await _embed(stream, lost)
    return pending


async def _forgotten(stream: Stream, before: Moment) -> list[str]:
    columns = await stream.columns()
    return [columns.ids[at] for at in np.flatnonzero(columns.forgotten.values < before)]


async def reembed(stream: Stream, batch: int = BATCH, tell: Callable[[int], None] = lambda _: None) -> int:
    """Embed the records that have no vector of the stream's embedder, in batches; return the number of added vectors.

    The call can be interrupted and repeated. Records that are written meanwhile, even by other processes, are embedded,
    too. A process that has the memory open with another embedder, however, keeps writing vectors of its own embedder.

    If the stream's embedder rejects a text, the record with this text stays without a vector, and an `error` row of the
    log names the record. Other records are not affected.

    Args:
        tell: called after each batch with the number of vectors added so far.

    Raises:
        ModelError: the embedder fails for every text; completed batches are kept.
    """
    done, tried = 0, set[str]()
    while ids := [each for each in (await stream.columns()).ids if each not in tried]:
        tried.update(ids)
        done += await _embed(stream, ids, batch, lambda more, before=done: tell(before + more))  # type: ignore[misc]
    stream.vectors_of = ""
    return done


async def _embed(
    stream: Stream, ids: Sequence[str], batch: int = BATCH, tell: Callable[[int], None] = lambda _: None
) -> int:
    done, ask = 0, asking(stream.embedder)
    for some in batches(ids, batch):
        records = [
            record
            for record in await stream.records(some)
            if record.embedder != stream.embedder.name or record.vector is None or not is_finite(record.vector)
        ]
        if records:
            done += await give(stream, records, await embed_each(ask, [record.text for record in records]))
        tell(done)
        await asyncio.sleep(0)
    return done


# Sessions.


MAX_OPENING = 100
"""Maximum number of characters of a session's first record in a list of sessions."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session (the `episode` of its records): a conversation, or a series of observations.

    Attributes:
        first, last: when its first and last record were created.
        lines: its number of records.
        opening: the beginning of its first record's text.
        seq: the row of the log with which its first record was written; 0: unknown.
    """

    name: str
    first: Moment
    last: Moment
    lines: int
    opening: str
    seq: int = 0


async def list_sessions(stream: Stream) -> list[Session]:
    """Return the sessions of a stream in order of their start. Only the first record of each session is read from the
    store."""
    columns = await stream.columns()
    there = np.flatnonzero((columns.group.values >= 0) & (columns.forgotten.values == OPEN))
    episodes = columns.episode.values[there]
    numbers, firsts, lines = np.unique(episodes, return_index=True, return_counts=True)
    lasts = len(there) - 1 - np.unique(episodes[::-1], return_index=True)[1]
    names = list(columns.episodes)
    opening = [columns.ids[at] for at in there[firsts]]
    records = await stream.records(opening)
    began = {record.id: (shortened(" ".join(record.text.split()), MAX_OPENING), record.seq) for record in records}
    created = columns.created.values[there]
    found = [
        Session(names[number], float(created[first]), float(created[last]), int(count), *began.get(id_, ("", 0)))
        for number, first, last, count, id_ in zip(numbers, firsts, lasts, lines, opening, strict=True)
    ]
    return sorted(found, key=lambda session: session.first)


# Corrections, and what was derived from the old record.


@dataclass(frozen=True, slots=True)
class Correction:
    """The result of a correction.

    Attributes:
        record: the new record.
        superseded: the old record, which is no longer current.
        drawn: current records that were derived from the old record and may now be wrong.
        items: items of beliefs and plans that are based on the old record, or that share both evidence and words with
            the old record.
    """

    record: Record
    superseded: Record
    drawn: tuple[Record, ...] = ()
    items: tuple[SlotItem, ...] = ()


async def correct(
    stream: Stream, old: str, text: str, *, by: str = "", evidence: Sequence[str] = (), wake: NewWork | None = None
) -> Correction:
    """Correct a record and log the correction. Return both versions, and what was derived from the old version: current
    records, and items of beliefs and plans.

    If the text is unchanged, nothing is written, and nothing derived is returned.

    Args:
        wake: reasoners to be run because of the correction.

    Raises:
        InputError: the record does not exist, is no longer current, or is a version of a belief or plan; or the text is
            empty or too long.
    """
    new = await supersede(stream, old, text, by=by, evidence=evidence)
    there = {record.id: record for record in await stream.records([old, new.id])}
    before, new = there[old], there[new.id]
    if new.id == old:
        return Correction(new, before)
    await stream.commit(Entry(Corrected(old=old, new=new.id), by or stream.name), wake=wake)
    found = await stream.store.closure(stream.key, [old], slots_below=before.evidence)
    rests = (found.gone | found.below) - {old, new.id}
    drawn = await stream.records(sorted(rests, key=found.order.__getitem__))
    now = stream.clock.now()
    hold = [each for each in drawn if each.slot is None and each.forgotten is None and (each.valid_until or now) >= now]
    items = [item for versions in found.versions.values() for item in find_items(versions) if _rests(item, before)]
    return Correction(new, before, tuple(hold), tuple(items))


def _rests(item: SlotItem, old: Record) -> bool:
    """Return whether an item is based on a record, or shares both evidence and words with the record."""
    if old.id in item.evidence:
        return True
    return not {*item.evidence}.isdisjoint(old.evidence) and not {*terms(item.text)}.isdisjoint(terms(old.text))
