"""Forgetting on request, for good: records are deleted. (What fades by itself goes to the archive: memory/fading.)

One record, a subject, a session, a span of time, with all that was drawn from it alone: first `find_removal` shows what
will go, then `remove` takes it: one transaction, and the file written anew.
What was drawn from it and from other things stays without its words; what others said of it stays.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mindstream.clock import Moment
from mindstream.errors import Conflict, InputError
from mindstream.identifiers import normal_name
from mindstream.log.events import BeliefChanged, Event, Remembered
from mindstream.memory.curation.closure import Closure, close, read_lineage
from mindstream.memory.curation.curation import finish_erasure
from mindstream.memory.curation.slot_items import SlotItem, Without, lost_items, rewrite
from mindstream.memory.store.record import Kind, Record, RecordDraft
from mindstream.memory.store.redaction import MARK, ErasedWords
from mindstream.memory.store.store import Entry, Erasure, read_all
from mindstream.memory.store.validation import checked_moment
from mindstream.memory.traced import tell_removed, traced
from mindstream.text.words import UNSPACED, terms
from mindstream.tracing import genai

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream

RECALLED, FLOOR, SHARE = 50, 0.1, 0.5
"""So many records are recalled of a subject; none where recall is less sure that any answers; and of those only what
reaches this share of the best one's score."""
NEAR = 10
"""So many records are shown that are near a subject and do not mention it."""
BY = "forget"
ROUNDS = 10
"""So often what was written meanwhile is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetRequest:
    """What somebody wants to be forgotten: records by their ids, and what meets all that else is named.

    Attributes:
        about: a subject, in words.
        session: the name of a session.
        since, until: when it was written, both included.
        kinds: only records of these kinds, of what meets the rest; (): of all.
    """

    ids: tuple[str, ...] = ()
    about: str = ""
    session: str = ""
    since: Moment | None = None
    until: Moment | None = None
    kinds: tuple[Kind, ...] = ()

    @property
    def narrows(self) -> bool:
        """Whether more is named than a subject."""
        return bool(self.session) or self.since is not None or self.until is not None


@dataclass(frozen=True, slots=True)
class Removal:
    """What will go, and what will stay changed, if it is forgotten.

    Attributes:
        asked: the records that were asked for, and earlier wordings of them; drawn: what was drawn from them alone.
        changed: records that stay, without the words of those.
        items: what is taken out of beliefs and plans.
        sources: what those that were asked for were drawn from; it stays.
        near: records that may be about the subject, too, and do not mention it; they stay unless their ids are named.
    """

    request: ForgetRequest
    asked: tuple[Record, ...] = ()
    drawn: tuple[Record, ...] = ()
    changed: tuple[Record, ...] = ()
    items: tuple[SlotItem, ...] = ()
    sources: tuple[Record, ...] = ()
    near: tuple[Record, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.asked or self.items)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many records went, how many stay without the words, how many items beliefs and plans have lost."""

    records: int = 0
    changed: int = 0
    items: int = 0


async def find_removal(stream: Stream, request: ForgetRequest) -> Removal:
    """Return what would go; nothing is changed.

    Raises:
        InputError: nothing is named, there is no such record or session, or the span is none.
    """
    _check(request)
    asked, near = await _asked(stream, request)
    return await _removal(stream, request, asked, near)


@traced(genai.DELETE_MEMORY, "removal", tell_removed)
async def remove(stream: Stream, removal: Removal, *, compact: bool = True) -> Forgotten:
    """Take for good what a removal names, and what was drawn from it since; return how much that was.

    `compact`: the files are written anew, without a byte of it; who removes from many streams does so once, after all.
    """
    if not removal:
        return Forgotten()
    await stream.settle()
    complete = not (await stream.columns()).foreign
    gone, erased = frozenset(record.id for record in removal.asked), 0
    for round_ in range(ROUNDS):
        found, without = await _close(stream, removal.request, gone)
        try:
            rewritten = [*await _write_versions(stream, found, without), *await _redact_answers(stream, found, without)]
        except Conflict:  # somebody wrote a version at the same moment: look again
            await asyncio.sleep(0)
            continue
        if round_ and found.gone == gone and not rewritten:
            break
        erasure = Erasure(ids=tuple(found.gone), rows=found.rows, rewritten=tuple(rewritten), is_meant=without.is_meant)
        erased += await stream.store.erase(stream.key, erasure)
        gone = found.gone
    await finish_erasure(stream, complete, compact=compact)
    for slot in {item.slot for item in removal.items}:
        await stream.version(slot)
    return Forgotten(erased, len(removal.changed), len(removal.items))


def _check(request: ForgetRequest) -> None:
    if not (request.ids or request.about.strip() or request.narrows):
        raise InputError("say what is to be forgotten: ids of records, a subject, a session, or a span of time")
    for name in ("since", "until"):
        if (at := getattr(request, name)) is not None:
            checked_moment(at, name)
    if request.since is not None and request.until is not None and request.since > request.until:
        raise InputError("the span to be forgotten ends before it begins: `since` comes before `until`")


async def _asked(stream: Stream, request: ForgetRequest) -> tuple[list[str], list[Record]]:
    """Find the records that are asked for, and those that are near a subject."""
    known = {record.id for record in await stream.store.records(stream.key, request.ids)}
    for id_ in request.ids:
        if id_ not in known:
            raise InputError(f"there is no record {id_!r} in the stream {stream.name!r}")
    if request.session and request.session not in (known := (await stream.columns()).episodes):
        request = replace(request, session=normal_name(request.session))
    if request.session and request.session not in known:
        raise InputError(f"there is no session {request.session!r} in the stream {stream.name!r}")
    asked, near = await _about(stream, request) if request.about.strip() else (await _within(stream, request), [])
    asked = list(dict.fromkeys((*request.ids, *asked)))
    return asked, [record for record in near if record.id not in asked]


async def _within(
    stream: Stream, request: ForgetRequest, is_meant: Callable[[Record], bool] = lambda _: True
) -> list[str]:
    """Return what was written in the session and the span, if any are named, and is meant."""
    if not (request.narrows or request.about.strip()):
        return []
    return [
        record.id
        async for records in read_all(stream.store, stream.key) for record in records
        if (not request.session or record.episode == request.session)
        and (request.since is None or record.created >= request.since)
        and (request.until is None or record.created <= request.until)
        and (not request.kinds or record.kind in request.kinds) and is_meant(record)
    ]  # fmt: skip


async def _about(stream: Stream, request: ForgetRequest) -> tuple[list[str], list[Record]]:
    """Return what mentions a subject, else what recall finds of it by some of its words; and what else is near it."""
    is_mentioned = mentions(request.about)
    found = await _within(stream, request, lambda each: each.slot is None and is_mentioned(words_of(each)))
    recalled = await stream.recall(
        request.about, RECALLED, since=request.since, until=request.until, touch=False, floor=FLOOR,
        rerank=False,
        where={"episode": request.session} if request.session else None,
    )  # fmt: skip
    free = [each for each in recalled if each.record.slot is None]  # of beliefs and plans, items go
    best = max((each.score for each in free), default=0.0)
    near = [each for each in free if each.score >= SHARE * best > 0]
    found = found or [each.record.id for each in near if each.parts.get("words", 0.0) > 0]
    return found, [each.record for each in near if each.record.id not in found][:NEAR]


async def _close(stream: Stream, request: ForgetRequest, asked: Iterable[str]) -> tuple[Closure, Without]:
    """Find all that goes with the records that are asked for."""
    found = close(await read_lineage(stream), asked)
    records = await stream.store.records(stream.key, sorted(found.gone))
    about = bool(request.about.strip()) and not request.narrows
    without = Without(found.gone, ErasedWords(record.text for record in records))
    return found, replace(without, is_meant=mentions(request.about)) if about else without


async def _removal(stream: Stream, request: ForgetRequest, asked: list[str], near: list[Record]) -> Removal:
    found, without = await _close(stream, request, asked)
    records = await stream.store.records(stream.key, sorted(found.gone, key=found.order.__getitem__))
    below = await stream.store.records(stream.key, sorted(found.below, key=found.order.__getitem__))
    said = await stream.store.records(stream.key, found.answers)
    changed = {
        each.id for each in below if each.slot is None and without.words.redact(words_of(each)) != words_of(each)
    }
    changed |= {each.id for each in await _redact_answers(stream, found, without)}
    items = [item for versions in found.versions.values() for item in lost_items(versions, without)]
    sources = {id_: None for record in records if record.id in found.asked for id_ in record.evidence}
    return Removal(
        request,
        tuple(record for record in records if record.id in found.asked),
        tuple(record for record in records if record.id not in found.asked),
        tuple(each for each in (*below, *said) if each.id in changed),
        tuple(items),
        tuple(await stream.store.records(stream.key, [id_ for id_ in sources if id_ not in found.gone])),
        tuple(record for record in near if record.id not in found.gone),
    )


async def _redact_answers(stream: Stream, found: Closure, without: Without) -> list[Record]:
    """Return what the mind itself said of what goes, in other answers, without the lines that say it."""
    records = await stream.store.records(stream.key, sorted(found.gone))
    is_quoted, redacted = quotes(record.text for record in records), list[Record]()
    for record in await stream.store.records(stream.key, found.answers):
        lines = [MARK if is_quoted(line) else line for line in without.words.redact(record.text).splitlines()]
        if (text := "\n".join(lines)) != record.text:
            redacted.append(replace(record, text=text, vector=None))
    return redacted


async def _write_versions(stream: Stream, found: Closure, without: Without) -> list[Record]:
    """Write a new version of each belief and plan that loses something; return the older ones as they are to be."""
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


# What mentions a subject: its words as they stand, or all of its telling words in any form and order.


EDGE = re.compile(rf"[^\W{UNSPACED}]")
"""A letter or digit of a script that puts spaces between words."""

FEWEST, MOST_OF = 3, 0.75
"""So many telling words a text must have to be quoted in other words, and so large a part of them a line of it."""


def mentions(subject: str) -> Callable[[str], bool]:
    """Return what tells whether a text mentions a subject.

    Raises:
        InputError: there is no word in it that could be looked for.
    """
    wanted, plain = set(terms(subject)), " ".join(subject.split())
    if not wanted:
        raise InputError(f"{subject!r} has no words to look for: name what is to be forgotten, as in: the red bicycle")
    before, after = (r"(?<!\w)" if EDGE.match(plain[0]) else ""), (r"(?!\w)" if EDGE.match(plain[-1]) else "")
    phrase = re.compile(before + r"\s+".join(map(re.escape, plain.split())) + after, re.IGNORECASE)
    return lambda text: bool(phrase.search(text)) or wanted <= set(terms(text))


def quotes(texts: Iterable[str]) -> Callable[[str], bool]:
    """Return what tells whether a line says what one of these texts says, "you" for "I" and the like aside.

    Texts of under FEWEST telling words say too little for that.
    """
    asked = [words for text in texts if len(words := set(terms(text))) >= FEWEST]
    holders: dict[str, list[int]] = {}
    for at, words in enumerate(asked):
        for word in words:
            holders.setdefault(word, []).append(at)

    def quotes_one(line: str) -> bool:
        shared = Counter(at for word in set(terms(line)) for at in holders.get(word, ()))
        return any(count >= MOST_OF * len(asked[at]) for at, count in shared.items())

    return quotes_one


def words_of(record: Record) -> str:
    """Return all words of a record: what it says, its keywords, what it is about."""
    return "\n".join((record.text, *record.keywords, *(record.about or ())))
