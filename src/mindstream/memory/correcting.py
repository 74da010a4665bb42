"""Corrections: the new words take the old ones' place, and whoever believed the old ones is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mindstream.log.events import Corrected
from mindstream.memory.closure import close, read_lineage
from mindstream.memory.curation import supersede
from mindstream.memory.record import Record
from mindstream.memory.slot_items import SlotItem, find_items
from mindstream.memory.store import Entry, NewWork
from mindstream.text.words import terms

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream


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
    (before,) = await stream.store.records(stream.name, [old])
    if new.id == old:
        return Correction(new, before)
    await stream.commit(Entry(Corrected(old=old, new=new.id), by or stream.name), wake=wake)
    lineage = await read_lineage(stream)
    found = close(lineage, [old])
    rests = (found.gone | found.below) - {old, new.id}
    drawn = await stream.store.records(stream.name, sorted(rests, key=found.order.__getitem__))
    now = stream.clock.now()
    hold = [each for each in drawn if each.slot is None and each.forgotten is None and (each.valid_until or now) >= now]
    items = [item for versions in found.versions.values() for item in find_items(versions) if _rests(item, before)]
    return Correction(new, before, tuple(hold), tuple(items))


def _rests(item: SlotItem, old: Record) -> bool:
    """Tell whether an item rests on a record, or says some of its words and was drawn from what it was drawn from."""
    if old.id in item.evidence:
        return True
    return not {*item.evidence}.isdisjoint(old.evidence) and not {*terms(item.text)}.isdisjoint(terms(old.text))
