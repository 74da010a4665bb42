"""Convert memories into the form in which prompts show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mindstream.memory.store.record import Record
from mindstream_town.prompts.plans import Memory
from mindstream_town.residents.person import appointment_of
from mindstream_town.residents.places import words_of

LONGEST = 600
"""Maximum characters of a memory in a prompt."""


def cut_at_word(text: str, most: int) -> str:
    """Return at most this many characters of a text, cut between two words if it has spaces, with an ellipsis."""
    if len(text) <= most:
        return text
    kept = text[: most - 1]
    return f"{kept.rpartition(' ')[0].rstrip() or kept}…"


def show(records: Iterable[Record], written: Sequence[str] = ()) -> tuple[Memory, ...]:
    """Return memories with their appointments, as prompts show them.

    Args:
        written: the date of each memory in words; empty: no dates are shown.
    """
    shown = []
    for number, record in enumerate(records):
        at = appointment_of(record.data)
        where = words_of(at.place) if at and at.place else ""
        shown.append(
            Memory(
                text=cut_at_word(record.text, LONGEST),
                written=written[number] if written else "",
                importance=record.importance or 0.0,
                appointment=at,
                where=where,
            )
        )
    return tuple(shown)
