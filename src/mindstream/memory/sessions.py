"""The sessions of a stream: when each was, how long, and how it began."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mindstream.clock import Moment
from mindstream.memory.columns import OPEN

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream

OPENING = 100
"""So many characters of its first line say how a session began."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session (an episode): its talk, or what was observed in it.

    Attributes:
        lines: how many records it has.
        opening: the beginning of the first one.
    """

    name: str
    first: Moment
    last: Moment
    lines: int
    opening: str


async def list_sessions(stream: Stream) -> list[Session]:
    """Return the sessions of a stream, in the order in which they began: from its columns, and a text of each."""
    columns = await stream.columns()
    there = np.flatnonzero((columns.group.values >= 0) & (columns.forgotten.values == OPEN))
    episodes = columns.episode.values[there]
    numbers, firsts, lines = np.unique(episodes, return_index=True, return_counts=True)
    lasts = len(there) - 1 - np.unique(episodes[::-1], return_index=True)[1]
    names = list(columns.episodes)
    opening = [columns.ids[at] for at in there[firsts]]
    texts = {record.id: record.text for record in await stream.store.records(stream.name, opening)}
    created = columns.created.values[there]
    found = [
        Session(names[number], float(created[first]), float(created[last]), int(count), _opening(texts.get(id_, "")))
        for number, first, last, count, id_ in zip(numbers, firsts, lasts, lines, opening, strict=True)
    ]
    return sorted(found, key=lambda session: session.first)


def _opening(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= OPENING else line[: OPENING - 1] + "…"
