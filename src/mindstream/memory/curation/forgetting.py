"""Forgetting on request: records are permanently deleted. (Automatic decay only archives: memory/forgetting_curve.)

A request names records, a subject, a session or a span of time. `find_removal` shows in advance what will be deleted:
the requested records and everything derived only from them. `remove` deletes these and removes their bytes from the
file. A record that was also derived from other records stays, without the forgotten words. An independent record stays
unchanged even if it says the same: words of other speakers, another message of the user, or an earlier answer. A later
answer stays, without the lines that repeat the forgotten words.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from mindstream import tracing
from mindstream.clock import Moment, period
from mindstream.errors import Conflict, InputError, ModelError
from mindstream.log.audit import Deed
from mindstream.log.events import BeliefChanged, Event, Remembered
from mindstream.memory.curation.curation import finish_erasure
from mindstream.memory.curation.mentions import may_mention, may_quote, mentions, quotes
from mindstream.memory.curation.slot_items import SlotItem, Without, lost_items, rewrite
from mindstream.memory.recall.ranking import LOW_CERTAINTY
from mindstream.memory.store.record import (
    Kind,
    Record,
    RecordDraft,
    checked_kinds,
    checked_moment,
    checked_words,
    session_names,
)
from mindstream.memory.store.redaction import MARK, ErasedWords
from mindstream.memory.store.store import Closure, Entry, Erasure, read_all
from mindstream.memory.stream import traced
from mindstream.tracing import tell_removed

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream

SIMILAR_EXAMINED, SIMILAR_SHARE, MAX_SIMILAR = 50, 0.5, 10
"""Limits for records that recall finds for a subject although they do not mention it. SIMILAR_EXAMINED: number of hits
that are examined. MAX_SIMILAR: maximum number that is returned. SIMILAR_SHARE: minimum score, as a share of the best
one. If recall has low confidence, a record must also contain a word of the subject."""
PARTS: frozenset[Kind] = frozenset({"note", "thought", "observation", "feedback", "evidence"})
"""Kinds of records that may contain only one of the statements of the message that they were derived from."""
BY = "forget"
PORTION = 256
"""Number of records read from the store at a time."""
MAX_PASSES = 10
"""Maximum number of passes of a removal. Each pass deletes the records that were written during the previous one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRequest:
    """A request to forget records: those with the given ids, and those that meet all other given criteria.

    Attributes:
        about: a subject in words; records that mention it meet this criterion.
        session: the name of a session.
        since, until: bounds of a record's `created`, both included.
        kinds: the kinds of records that can meet the criteria; empty: all kinds.
    """

    ids: tuple[str, ...] = ()
    about: str = ""
    session: str = ""
    since: Moment | None = None
    until: Moment | None = None
    kinds: tuple[Kind, ...] = ()

    @property
    def narrows(self) -> bool:
        """Whether a session or a span of time is given."""
        return bool(self.session) or self.since is not None or self.until is not None


@dataclass(frozen=True, slots=True)
class Removal:
    """The records that a request to forget deletes and changes, as a preview and as the argument of `remove`.

    Attributes:
        asked: the requested records and their earlier wordings; they are deleted.
        drawn: records that were derived only from records in `asked`; they are deleted, too.
        changed: records that stay without the forgotten words.
        items: items that are removed from beliefs and plans.
        sources: the records from which the requested records were derived; they stay.
        similar: records that do not mention the subject but may be about it. They stay; the user can forget them by id.
        apart: the records in `drawn` that do not mention the subject. They were derived from a message that says other
            things, too.
        left: the new text of each record in `changed`, in the same order.
    """

    request: ForgetRequest
    asked: tuple[Record, ...] = ()
    drawn: tuple[Record, ...] = ()
    changed: tuple[Record, ...] = ()
    items: tuple[SlotItem, ...] = ()
    sources: tuple[Record, ...] = ()
    similar: tuple[Record, ...] = ()
    apart: tuple[Record, ...] = ()
    left: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.asked or self.items)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of forgetting.

    Attributes:
        records: number of deleted records.
        changed: number of records that lost words.
        items: number of items removed from beliefs and plans.
        similar: records that do not mention the subject but may be about it; they were kept.
        pending: why the bytes of deleted records are still in the file; "": they are not. No query finds the deleted
            records in any case; the bytes are overwritten when the file is next compacted or opened.
    """

    records: int = 0
    changed: int = 0
    items: int = 0
    similar: tuple[Record, ...] = ()
    pending: str = field(default="", repr=False)

    def counts(self) -> dict[str, int]:
        """Return the numbers of deleted records, changed records and removed items, by name."""
        return {"records": self.records, "changed": self.changed, "items": self.items}


async def find_removal(stream: Stream, request: ForgetRequest) -> Removal:
    """Return what `remove` would delete and change. Nothing is changed yet.

    Raises:
        InputError: the request is empty; a record or session does not exist; or the span ends before it begins.
    """
    _check(request)
    asked, similar = await _asked(stream, request)
    return await _removal(stream, request, asked, similar)


@traced(tracing.DELETE_MEMORY, "removal", tell_removed)
async def remove(stream: Stream, removal: Removal, *, compact: bool = True, deed: Deed | None = None) -> Forgotten:
    """Permanently delete the records of a removal.

    Records that were derived from these records after the removal was computed are deleted, too.

    Args:
        compact: rewrite the file, so that no byte of the records remains. To remove records from many streams, pass
            False for all streams but the last.
        deed: an entry for the audit log. The numbers of changed records and items are added to the entry, and the entry
            is written in the transaction of the deletion.
    """
    if not removal:
        return Forgotten(similar=removal.similar)
    await stream.settle()
    unembedded = await stream.store.unembedded(stream.key)
    gone, erased = frozenset(record.id for record in removal.asked), 0
    for round_ in range(MAX_PASSES):
        found, without = await _close(stream, removal.request, gone)
        try:
            rewritten = [*await _write_versions(stream, found, without), *await _redact_answers(stream, found)]
        except Conflict:  # another writer added a version: try again
            await asyncio.sleep(0)
            continue
        if round_ and found.gone == gone and not rewritten:
            break
        counts = {} if round_ else {"changed": len(removal.changed), "items": len(removal.items)}
        erasure = Erasure(
            ids=tuple(found.gone),
            rows=found.rows,
            rewritten=tuple(rewritten),
            is_meant=without.is_meant,
            deed=deed and replace(deed, counts={**deed.counts, **counts}),
            at=stream.clock.now(),
        )
        erased += await stream.store.erase(stream.key, erasure)
        gone = found.gone
    pending = await finish_erasure(stream, unembedded, compact=compact)
    for slot in {item.slot for item in removal.items}:
        await stream.version(slot)
    return Forgotten(erased, len(removal.changed), len(removal.items), removal.similar, pending)


def _check(request: ForgetRequest) -> None:
    checked_kinds(request.kinds)
    if not (request.ids or checked_words(request.about, "about").strip() or request.narrows):
        raise InputError("name what is to be forgotten: ids of records, a subject, a session, or a span of time")
    for name in ("since", "until"):
        if (at := getattr(request, name)) is not None:
            checked_moment(at, name)
    period(request.since, request.until)


async def _asked(stream: Stream, request: ForgetRequest) -> tuple[list[str], list[Record]]:
    """Return the ids of the requested records, and the records that are only similar to the subject; raise InputError
    for an unknown id or session."""
    known = {record.id for record in await stream.records(request.ids)}
    for id_ in request.ids:
        if id_ not in known:
            raise InputError(
                f"there is no record {id_!r} in the memory of {stream.name!r};"
                " to forget by subject, use --about (in Python: about=)"
            )
    if request.session:
        there = (await stream.columns()).episodes
        if not any(name in there for name in session_names(request.session)):
            raise InputError(f"there is no session {request.session!r} in the memory of {stream.name!r}")
    asked, similar = await _about(stream, request) if request.about.strip() else (await _within(stream, request), [])
    asked = list(dict.fromkeys((*request.ids, *asked)))
    return asked, [record for record in similar if record.id not in asked]


async def _within(
    stream: Stream, request: ForgetRequest, is_meant: Callable[[Record], bool] = lambda _: True
) -> list[str]:
    """Return the ids of the records that meet the criteria of a request, and for which `is_meant` returns True.

    Only `is_meant` decides whether a record mentions the subject (`about`).

    Return [] if the request names no subject, session or span of time.
    """
    if not (request.narrows or request.about.strip()):
        return []
    sessions = session_names(request.session)
    return [
        record.id
        async for records in _candidates(stream, request)
        for record in records
        if (not request.session or record.episode in sessions)
        and (request.since is None or record.created >= request.since)
        and (request.until is None or record.created <= request.until)
        and (not request.kinds or record.kind in request.kinds)
        and is_meant(record)
    ]


async def _candidates(stream: Stream, request: ForgetRequest) -> AsyncIterator[list[Record]]:
    """Yield the records that may meet a request, in portions and in the order of writing.

    If the stream's columns (its index in memory) are loaded and can exclude records, the excluded ones are not read.
    Otherwise all records are read.
    """
    columns = await stream.columns_at_hand()
    rows = None if columns is None else np.arange(len(columns))
    if columns is not None and request.about.strip():
        rows = may_mention(columns, request.about)
    if columns is None or rows is None:
        async for records in read_all(stream.store, stream.key):
            yield records
        return
    if request.session:
        sessions = [columns.episodes.get(name, -1) for name in session_names(request.session)]
        rows = rows[np.isin(columns.episode.values[rows], sessions)]
    if request.since is not None:
        rows = rows[columns.created.values[rows] >= request.since]
    if request.until is not None:
        rows = rows[columns.created.values[rows] <= request.until]
    ids = [columns.ids[at] for at in rows.tolist()]
    for start in range(0, len(ids), PORTION):
        yield await stream.records(ids[start : start + PORTION])


async def _about(stream: Stream, request: ForgetRequest) -> tuple[list[str], list[Record]]:
    """Return the ids of records that mention the subject, and the similar records that recall finds for it."""
    is_mentioned = mentions(request.about)
    found = await _within(stream, request, lambda each: each.slot is None and is_mentioned(words_of(each)))
    try:
        recalled = await stream.recall(
            request.about,
            SIMILAR_EXAMINED,
            since=request.since,
            until=request.until,
            touch=False,
            rerank=False,
            kinds=request.kinds or None,
            where={"episode": session_names(request.session)[0]} if request.session else None,
        )
    except (InputError, ModelError):  # without an embedder only mentions are found
        return found, []
    others = [each for each in recalled if each.record.slot is None and each.record.id not in found]
    best = max((each.score for each in others), default=0.0)
    is_sure = recalled.certainty >= LOW_CERTAINTY
    similar = [
        each.record
        for each in others
        if each.score >= SIMILAR_SHARE * best > 0 and (is_sure or each.parts.get("words", 0.0) > 0)
    ]
    return found, similar[:MAX_SIMILAR]


async def _close(stream: Stream, request: ForgetRequest, asked: Iterable[str]) -> tuple[Closure, Without]:
    """Return everything that must be deleted with these records, and what must be removed from beliefs and plans."""
    about = bool(request.about.strip()) and not request.narrows
    found = await stream.store.closure(stream.key, list(asked), all_slots=about)
    records = await stream.records(sorted(found.gone))
    without = Without(found.gone, ErasedWords(record.text for record in records))
    return found, replace(without, is_meant=mentions(request.about)) if about else without


async def _removal(stream: Stream, request: ForgetRequest, asked: list[str], similar: list[Record]) -> Removal:
    found, without = await _close(stream, request, asked)
    gone = await stream.records([id_ for id_ in found.order if id_ in found.gone])
    below = await stream.records([id_ for id_ in found.order if id_ in found.below])
    redact = without.words.redact
    left = {
        each.id: redact(each.text) for each in below if each.slot is None and redact(words_of(each)) != words_of(each)
    }
    answers = {each.id: each.text for each in await _redact_answers(stream, found)}
    left |= answers
    said = await stream.records(list(answers))
    changed = tuple({each.id: each for each in (*below, *said) if each.id in left}.values())
    chosen = tuple(record for record in gone if record.id in found.asked)
    drawn = tuple(record for record in gone if record.id not in found.asked)
    sources = dict.fromkeys(id_ for record in chosen for id_ in record.evidence if id_ not in found.gone)
    return Removal(
        request,
        chosen,
        drawn,
        changed,
        tuple(item for versions in found.versions.values() for item in lost_items(versions, without)),
        tuple(await stream.records(list(sources))),
        tuple(record for record in similar if record.id not in found.gone),
        tuple(_apart(drawn, request)),
        tuple(left[each.id] for each in changed),
    )


def _apart(drawn: Iterable[Record], request: ForgetRequest) -> Iterator[Record]:
    """Yield the derived records (`drawn`) of the kinds in PARTS that do not mention the subject of the request.

    They contain other statements of the message from which they were derived. Yield none if the request has no subject,
    or names records by id.
    """
    if request.about.strip() and not request.ids:  # a record that is named by id is forgotten completely
        is_mentioned = mentions(request.about)
        for record in drawn:
            if record.kind in PARTS and not is_mentioned(words_of(record)):
                yield record


async def _redact_answers(stream: Stream, found: Closure) -> list[Record]:
    """Return the answers that stay but repeat deleted text, without the lines and words that repeat the text.

    An answer is compared only with deleted texts that were written before the answer. Answers to a forgotten message
    are deleted. They are not compared with other answers, so an answer to another message may keep the same words.
    """
    gone = await stream.records(sorted(found.gone - found.answered))
    gone.sort(key=lambda record: record.seq)
    answers = await _find_answers(stream, gone, found) if gone else []
    redacted, looked = list[Record](), dict[int, tuple[Callable[[str], bool], ErasedWords]]()
    for record in answers:
        before = bisect_right(gone, record.seq, key=lambda each: each.seq)
        if before not in looked:
            texts = [each.text for each in gone[:before]]
            looked[before] = quotes(texts), ErasedWords(texts)
        is_quoted, words = looked[before]
        lines = [MARK if is_quoted(line) else line for line in words.redact(record.text).splitlines()]
        if (text := "\n".join(lines)) != record.text:
            redacted.append(replace(record, text=text, vector=None))
    return redacted


async def _find_answers(stream: Stream, gone: Sequence[Record], found: Closure) -> list[Record]:
    """Return the answers that may repeat a deleted record, and were written after the first deleted record.

    If the stream's columns (its index in memory) are loaded, only answers that the word index of the columns finds are
    read.
    """
    columns = await stream.columns_at_hand()
    rows = None if columns is None else may_quote(columns, [record.text for record in gone])
    ids = None if columns is None or rows is None else [columns.ids[at] for at in rows.tolist()]
    answers = await stream.store.answers(stream.key, gone[0].seq - 1, ids)
    return await stream.records([id_ for id_ in answers if id_ not in found.gone])


async def _write_versions(stream: Stream, found: Closure, without: Without) -> list[Record]:
    """Write a new version of each belief and plan that loses items; return the older versions without the deleted
    words."""
    rewritten: list[Record] = []
    for slot, versions in found.versions.items():
        older, last = rewrite(versions, without)
        rewritten += older
        if last is None:
            continue
        version = 1 + (versions[-1].version or 0)
        new = RecordDraft(text=last.text, kind=last.kind, by=BY, slot=slot, version=version, data=last.data)
        event: Event = Remembered(count=1, kinds={last.kind: 1})
        if isinstance(patch := last.data.get("patch"), dict):
            event = BeliefChanged(slot=slot, version=version, patch=patch)
        await stream.commit(Entry(event, BY, tuple(await stream.build_records([new]))))
    return rewritten


def words_of(record: Record) -> str:
    """Return all words of a record: text, keywords and triple."""
    return "\n".join((record.text, *record.keywords, *(record.about or ())))
