"""A talk as a page shows it, beside what was heard of it. Where they differ the talk branches; nothing is heard twice.

A page sends the whole talk each time. What stands before the new words was heard already, or is context that nobody
heard here (another model's talk). What was heard and is shown no more was edited, or is answered again: its records
end, and are taken up again when the page goes back to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from mindstream.clock import Moment
from mindstream.log.events import Heard, Logged
from mindstream.memory.memory import Memory
from mindstream.memory.store.columns import KIND_CODES
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Entry, Revision
from mindstream.models.legible import without_controls
from mindstream.reasoners.conversation import Line
from mindstream.service.chat.companion import Branched

LONGEST = 400
"""So many records of a talk are looked at, the newest."""
ALIKE = 20
"""So many talks that began alike are looked through, the newest."""
COMPARED = 120
"""So many lines of a page are looked for one by one, the newest, where it does not simply go on."""
MATCH = 1_000
"""What a line that is found counts; beside it, that it is no history counts one."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What was found of a page's talk.

    Attributes:
        again: the row of the new words, where they were heard before: they are answered again.
        all_heard: all that stands before them was heard here.
    """

    again: Logged | None
    all_heard: bool


async def follow(memory: Memory, session: str, lines: Sequence[Line], text: str) -> Followed:
    """Take a talk to where its page stands before the new words: what the page shows no more is history.

    Raises:
        StorageError: it cannot be read or written.
    """
    heard, now = await heard_of(memory, session), memory.clock.now()
    path = find_path(lines, heard, now)
    found = [place for place in path if place is not None]
    last = found[-1] if found else -1
    all_heard = len(found) == len(path)
    again = _said_before(heard[last + 1 :], text, now) if all_heard else None
    kept = {heard[place].id for place in found} | ({again.id} if again else set())
    begins = path[0] if path else None
    is_cut = begins is not None and holds(heard[begins], now)  # what a page is too short to show stays
    first = found[0] if is_cut else -1
    left = [each for each in heard[first + 1 :] if each.id not in kept and holds(each, now)]
    taken_up = [each for each in heard if each.id in kept and not holds(each, now) and _was_left(each)]
    if left or taken_up:
        event = Branched(
            session=session, left=tuple(each.id for each in left), taken_up=tuple(each.id for each in taken_up)
        )
        ends = [Revision(id=each.id, valid_until=now) for each in left]
        holds_again = [Revision(id=each.id, emptied=("valid_until",)) for each in taken_up]
        await memory.commit(Entry(event, "mindstream", system=True), revisions=[*ends, *holds_again])
    return Followed(await _row_of(memory, again) if again else None, all_heard)


async def find_talk(memory: Memory, session: str, lines: Sequence[Line]) -> str:
    """Return which talk a page means that does not name its talks, among those that began with the same words.

    That is the newest of which all was heard that the page shows. A page that shows nothing yet begins a new one, or
    has the newest answered again, where that is at its beginning, too.
    """
    columns, now = await memory.columns(), memory.clock.now()
    names = [session]
    while names[-1] in columns.episodes:
        names.append(f"{session}.{len(names) + 1}")
    *there, new = names
    best, most = (there or names)[-1], 0
    for name in reversed(there[-ALIKE:]):
        heard = await heard_of(memory, name)
        if not lines:
            return name if sum(holds(each, now) for each in heard) <= 2 else new
        found = sum(place is not None for place in find_path(lines, heard, now))
        if found == len(lines):
            return name
        best, most = (name, found) if found > most else (best, most)
    return best


async def heard_of(memory: Memory, session: str) -> list[Record]:
    """Return what was said in a talk, in the order in which it was said, what was left too."""
    columns = await memory.columns()
    episode = columns.episodes.get(session)
    if episode is None:
        return []
    places = np.flatnonzero((columns.episode.values == episode) & (columns.kind.values == KIND_CODES["chat"]))
    ids = [columns.ids[place] for place in places[-LONGEST:]]
    found = await memory.store.records(memory.key, ids)
    return sorted((each for each in found if not each.evidence and each.seq), key=lambda each: each.seq)


def find_path(lines: Sequence[Line], heard: Sequence[Record], now: Moment) -> list[int | None]:
    """Return where each line of a page was heard; None: it was not."""
    current = [place for place, each in enumerate(heard) if holds(each, now)]
    if len(lines) <= len(current) and all(map(is_same, lines, (heard[place] for place in current))):
        return list(current[: len(lines)])
    skipped = max(0, len(lines) - COMPARED)
    return [*[None] * skipped, *_longest_common(lines[skipped:], heard, set(current))]


def _longest_common(lines: Sequence[Line], heard: Sequence[Record], current: AbstractSet[int]) -> list[int | None]:
    """Find as many of the lines as can be found in their order; of those that say the same, what is no history."""
    gain = [MATCH + (place in current) for place in range(len(heard))]
    same = [[is_same(line, each) for each in heard] for line in lines]
    best = [[0] * (len(heard) + 1) for _ in range(len(lines) + 1)]
    for at in range(len(lines) - 1, -1, -1):
        for place in range(len(heard) - 1, -1, -1):
            without = max(best[at + 1][place], best[at][place + 1])
            best[at][place] = max(without, gain[place] + best[at + 1][place + 1]) if same[at][place] else without
    path, place = list[int | None](), 0
    for at in range(len(lines)):
        most = best[at][place]
        fits = (
            each
            for each in range(place, len(heard))
            if same[at][each] and gain[each] + best[at + 1][each + 1] == most and best[at][each] == most
        )
        found = next(fits, None) if most > best[at + 1][place] else None
        path.append(found)
        place = place if found is None else found + 1
    return path


def _said_before(after: Sequence[Record], text: str, now: Moment) -> Record | None:
    """Return what the user said next already, in these words: what holds, else what was left last."""
    there = [each for each in after if each.data.get("by_user") and _plain(each.text) == _plain(text)]
    current = [each for each in there if holds(each, now)]
    left = [each for each in there if _was_left(each)]
    return next(iter(current[:1] or left[-1:]), None)


async def _row_of(memory: Memory, record: Record) -> Logged | None:
    rows = await memory.store.events(memory.key, record.seq - 1, [Heard.kind], 1)
    return next((row for row in rows if isinstance(row.event, Heard) and row.event.record == record.id), None)


def is_same(line: Line, record: Record) -> bool:
    """Tell whether a line is what a record holds. Of an answer that was broken off a page may show less, or more."""
    if line.by_user != bool(record.data.get("by_user")):
        return False
    shown, kept = _plain(line.text), _plain(record.text)
    return shown == kept or (not line.by_user and bool(shown) and (shown.startswith(kept) or kept.startswith(shown)))


def _plain(text: str) -> str:
    return " ".join(without_controls(text).split())


def holds(record: Record, now: Moment) -> bool:
    """Tell whether a record is no history."""
    return record.forgotten is None and (record.valid_until is None or record.valid_until > now)


def _was_left(record: Record) -> bool:
    return record.forgotten is None and record.superseded_by is None
