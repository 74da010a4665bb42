"""Writing: from what is to be remembered to records, checked, embedded, and not said twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mindstream.clock import Moment
from mindstream.errors import Conflict
from mindstream.log.events import Remembered
from mindstream.memory.store.record import TAINTED, UNIQUE, Record, RecordDraft, Vector, is_tainted, normalised
from mindstream.memory.store.store import Entry
from mindstream.memory.store.validation import MAX_DEPTH, checked_moment, checked_text, fitted_text, legible_record

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream


async def remember(stream: Stream, news: Sequence[RecordDraft]) -> list[Record]:
    """Write records in one transaction; those that say what is known already are left out, the known ones returned.

    Raises:
        InputError: a text is too long, or there is nothing in it.
    """
    for new in news:
        checked_text(new.text)
    records = await build_records(stream, news)
    while True:
        known = await _known(stream, records)
        fresh = [record for record in records if record.id not in known]
        if fresh:
            event = Remembered(count=len(fresh), kinds=dict(Counter[str](record.kind for record in fresh)))
            try:
                await stream.commit(Entry(event, fresh[0].by or stream.name, tuple(fresh), distinct=True))
            except Conflict:
                if await _known(stream, fresh):  # somebody else said it at the same moment
                    continue
                raise
        return [known.get(record.id, record) for record in records]


async def _known(stream: Stream, records: Sequence[Record]) -> dict[str, Record]:
    """Find those that are known, or that say what one before them says; by their id."""
    found: dict[str, Record] = {}
    for kind in {record.kind for record in records} & UNIQUE:
        ours = [record for record in records if record.kind == kind]
        said = await stream.find_same(kind, [record.text for record in ours])
        for record in ours:
            first = said.setdefault(normalised(record.text), record)
            if first is not record:
                found[record.id] = first
    return found


async def build_records(stream: Stream, news: Sequence[RecordDraft]) -> list[Record]:
    """Turn what is to be remembered into records, embedded, not yet written: the commit checks them.

    A text that is too long is shortened: it is one that a mind has made, and must not stop it.
    """
    texts = [fitted_text(new.text) for new in news]
    vectors = await stream.embedding.at_once(texts)
    now = stream.clock.now()
    drawn = await _drawn(stream, [new.evidence for new in news])
    records = [
        _record(stream, new, text, vector, now, depth, tainted)
        for new, text, vector, (depth, tainted) in zip(news, texts, vectors, drawn, strict=True)
    ]
    stream.missing.owe(records)
    return records


def _record(
    stream: Stream, new: RecordDraft, text: str, vector: Vector | None, now: Moment, depth: int, tainted: bool
) -> Record:
    created = now if new.created is None else new.created
    record = Record(
        id=stream.ids.make(checked_moment(created, "created"), new.kind, text), stream=stream.key, kind=new.kind,
        text=text, created=created, accessed=now, by=new.by, episode=new.episode, importance=new.importance,
        valid_from=new.valid_from, valid_until=new.valid_until, about=new.about, keywords=new.keywords,
        evidence=new.evidence, depth=depth if new.depth is None else new.depth, slot=new.slot, version=new.version,
        data={**new.data, TAINTED: True} if tainted else new.data, vector=vector,
        embedder="" if vector is None else stream.embedder.name,
    )  # fmt: skip
    return legible_record(record)


async def _drawn(stream: Stream, evidence: Sequence[Sequence[str]]) -> list[tuple[int, bool]]:
    """Return of each record that is drawn from such evidence its depth (1 + the deepest, 0 without any), and its taint.

    It is tainted where anything is that it is drawn from; it stays so when that is erased.
    """
    ids = list(dict.fromkeys(id_ for some in evidence for id_ in some if isinstance(id_, str)))
    known = {record.id: record for record in await stream.store.records(stream.key, ids)} if ids else {}
    found: list[tuple[int, bool]] = []
    for some in evidence:
        there = [known[id_] for id_ in some if isinstance(id_, str) and id_ in known]
        deepest = max((record.depth for record in there), default=0)
        found.append((min(MAX_DEPTH, 1 + deepest) if some else 0, any(map(is_tainted, there))))
    return found
