"""Receipts: why a memory was recalled. One form in all doors."""

from __future__ import annotations

from pydantic import Field, JsonValue

from mindstream.clock import Moment
from mindstream.memory.recall.recall import Recalled, Recollection
from mindstream.memory.store.record import FADING, Kind, Record, is_tainted
from mindstream.service.operations.shapes import Reply


class MemoryShape(Reply):
    """A memory as doors show it. Times are seconds since 1970 UTC.

    `status`: `holds`, `upcoming` (from `valid_from` on), `superseded` (by `superseded_by`), `forgotten` (archived),
    `ended` (at `valid_until`). It holds from `valid_from` (included) until `valid_until` (not included); None: open.
    `derived_from`: ids; `seq`: the row of the log that it came from, 0 where there is none.
    """

    id: str
    text: str
    kind: Kind
    created: Moment
    by: str = ""
    session: str = ""
    importance: float | None = None
    status: str = "holds"
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    superseded_by: str | None = None
    derived_from: list[str] = Field([])
    seq: int = 0
    keywords: list[str] = Field([])
    data: dict[str, JsonValue] = Field({})


class Receipt(Reply):
    """Why a memory was recalled.

    `ranks`: its place among what was returned, by each part of the score. `strength`: 0 to 1, None for kinds that
    never fade. `source`: `user`, `mind`, or `foreign` where strangers wrote it. `derived_from`: ids.
    """

    score: float
    rank: int
    parts: dict[str, float]
    ranks: dict[str, int]
    strength: float | None
    age_s: float
    last_recalled_s: float
    source: str
    by: str
    session: str
    derived_from: list[str]


class RecalledMemory(Reply):
    """A memory that was recalled, and why. When it holds is said where it was said: seconds since 1970 UTC."""

    id: str
    text: str
    kind: Kind
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    receipt: Receipt


class RecallResult(Reply):
    """What a question brought up, best first.

    `certainty`: how sure it is that anything answers, 0 to 1; `low_confidence`: it is below 0.1. `without_vectors`: why
    words alone were compared, of all records or of some; "" where vectors were, too. `not_reranked`: why the reranker
    did not rank; "" if it did, or if none is configured.
    """

    memories: list[RecalledMemory]
    certainty: float = Field(ge=0, le=1)
    low_confidence: bool = False
    without_vectors: str = ""
    not_reranked: str = ""


def show_memory(record: Record, now: Moment) -> MemoryShape:
    """Return a record as doors show it."""
    ended = record.valid_until is not None and record.valid_until <= now
    status = (
        "superseded"
        if record.superseded_by and ended
        else "forgotten"
        if record.forgotten is not None
        else "ended"
        if ended
        else "upcoming"
        if record.valid_from is not None and record.valid_from > now
        else "holds"
    )
    return MemoryShape(
        id=record.id,
        text=record.text,
        kind=record.kind,
        created=record.created,
        by=record.by,
        session=record.episode,
        importance=record.importance,
        status=status,
        superseded_by=record.superseded_by,
        valid_from=record.valid_from,
        valid_until=record.valid_until,
        derived_from=list(record.evidence),
        seq=record.seq,
        keywords=list(record.keywords),
        data=dict(record.data),
    ).made_from(record)


def show_recalled(found: Recollection, now: Moment) -> RecallResult:
    """Return what was recalled with a receipt for each."""
    ranks: list[dict[str, int]] = [{} for _ in found]
    for part in {name for each in found for name in each.parts}:
        order = sorted(range(len(found)), key=lambda at: -found[at].parts.get(part, 0.0))
        for place, at in enumerate(order):
            ranks[at][part] = place + 1
    memories = [
        RecalledMemory(
            id=each.record.id,
            text=each.record.text,
            kind=each.record.kind,
            valid_from=each.record.valid_from,
            valid_until=each.record.valid_until,
            receipt=_receipt(each, place + 1, ranks[place], now),
        )
        for place, each in enumerate(found)
    ]
    certainty = min(1.0, max(0.0, found.certainty))
    return RecallResult(
        memories=memories,
        certainty=certainty,
        low_confidence=found.low_confidence,
        without_vectors=found.without_vectors,
        not_reranked=found.not_reranked,
    ).made_from(found)


def _receipt(found: Recalled, rank: int, ranks: dict[str, int], now: Moment) -> Receipt:
    record = found.record
    strength = 1.0 if record.lasting else 1 - 0.5 ** max(record.level + 1, 0)
    return Receipt(
        score=found.score,
        rank=rank,
        parts=dict(found.parts),
        ranks=ranks,
        strength=strength if record.kind in FADING else None,
        age_s=max(0.0, now - record.created),
        last_recalled_s=max(0.0, now - record.accessed),
        source=source_of(record),
        by=record.by,
        session=record.episode,
        derived_from=list(record.evidence),
    )


def source_of(record: Record) -> str:
    """Return who a record comes from: `user`, `mind`, or `foreign`."""
    if is_tainted(record):
        return "foreign"
    by_user = record.data.get("by_user")
    return "user" if by_user or (by_user is None and not record.evidence and record.slot is None) else "mind"
