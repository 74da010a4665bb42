"""Memories as prompts show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mindstream.memory.store.record import Record
from mindstream_town.prompts.context import Memory
from mindstream_town.residents.person import appointment_of
from mindstream_town.residents.places import words_of

LONGEST = 600
"""So many characters of a memory are shown."""


def show(records: Iterable[Record], written: Sequence[str] = ()) -> tuple[Memory, ...]:
    """Return memories with the appointments that they tell of.

    Args:
        written: the day of each, in words; empty: it does not matter.
    """
    shown = []
    for number, record in enumerate(records):
        at = appointment_of(record.data)
        where = words_of(at.place) if at and at.place else ""
        shown.append(
            Memory(
                text=record.text[:LONGEST],
                written=written[number] if written else "",
                importance=record.importance or 0.0,
                appointment=at,
                where=where,
            )
        )
    return tuple(shown)
