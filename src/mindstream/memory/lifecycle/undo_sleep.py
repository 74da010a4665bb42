"""Undo a sleep: records that it archived, merged or weakened are restored, and records that it created are archived.

The importance ratings of the sleep stay. Records that it archived because they had expired stay archived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mindstream.errors import Conflict, InputError
from mindstream.log.events import Logged, Slept
from mindstream.memory.forgetting_curve import StrengthState
from mindstream.memory.lifecycle.sleep import read_nights
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Entry, Revision

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream

ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class UndoneSleep:
    """The result of undoing a sleep.

    Attributes:
        sleep: the row of the sleep's first step.
        held_again: ids of restored records: those that were archived, merged or weakened.
        archived: ids of the records that the sleep had created; they are archived now.
        left: ids of weakened records that stay as they are, because since the sleep a recall has returned them, or they
            were archived, deleted or made long-term.
    """

    sleep: int
    held_again: tuple[str, ...]
    archived: tuple[str, ...]
    left: tuple[str, ...]


async def undo_sleep(stream: Stream, sleep: int = 0) -> UndoneSleep:
    """Undo a sleep.

    Args:
        sleep: the row of the log with the sleep's `fading` step; 0: the last sleep that is not undone.

    Raises:
        InputError: there is no such sleep, or it is undone already. Or one of these happened since: a record that it
            archived or merged was deleted or changed; a record that it created was corrected; a merged record that it
            created was deleted.
        Conflict: in each of ATTEMPTS attempts, another process changed one of the records first.
    """
    await stream.settle()
    for attempt in range(1, ATTEMPTS + 1):
        steps = await _steps(stream, sleep)
        undone, revisions = await _plan(stream, steps)
        held = undone.held_again
        event = Slept(step="undo", cause=undone.sleep, looked_at=len(revisions), changed=len(held), records=held)
        try:
            await stream.commit(Entry(event, "sleep"), revisions=revisions)
        except Conflict:
            if attempt == ATTEMPTS:
                raise
            await asyncio.sleep(0)
        else:
            break
    return undone


async def _steps(stream: Stream, sleep: int) -> dict[str, Logged]:
    nights = {night.begun: night.steps for night in await read_nights(stream)}
    asleep = [begun for begun, steps in nights.items() if "undo" not in steps]
    if sleep and sleep not in nights:
        raise InputError(f"no sleep of {stream.name!r} began with row {sleep} of the log")
    if (sleep and sleep not in asleep) or not asleep:
        raise InputError(f"the sleep of row {sleep} is undone already" if sleep else "there is no sleep to undo")
    return nights[sleep or asleep[-1]]


async def _plan(stream: Stream, steps: dict[str, Logged]) -> tuple[UndoneSleep, list[Revision]]:
    """Return the result of undoing a sleep, and the revisions that have to be written.

    Raises:
        InputError: the sleep cannot be undone, because records that it archived, created or replaced were changed,
            superseded or deleted since. A deleted dream does not count.
    """
    forgotten = await _read(stream, steps, "fading")
    at = steps["fading"].at
    if gone := sum(each.forgotten is None or each.forgotten > at for each in forgotten):
        raise InputError(
            f"{gone} of the records that this sleep archived were changed since: the sleep cannot be undone"
        )
    weakened, left = await _weakened(stream, steps["fading"])
    merged = await _read(stream, steps, "duplicates")
    dreamt = [each for each in await _read(stream, steps, "dream", may_be_gone=True) if each.forgotten is None]
    for each in (*merged, *dreamt):
        if each.superseded_by:
            raise InputError(
                f"the record {each.id}, which this sleep created, was superseded since by {each.superseded_by}:"
                " the sleep cannot be undone"
            )
    replaced = [record for each in merged for record in await _replaced(stream, each)]
    archived = [each for each in (*merged, *dreamt) if each.forgotten is None]
    now = stream.clock.now()
    revisions = [Revision(id=each.id, forgotten=now, holds=True) for each in archived]
    revisions += [_again(each, "forgotten") for each in forgotten]
    revisions += [Revision(id=each.id, level=each.level + 1, was=_state(each)) for each in weakened]
    revisions += [_again(each, "superseded") for each in replaced]
    held = tuple(each.id for each in (*forgotten, *weakened, *replaced))
    return UndoneSleep(steps["fading"].seq, held, tuple(each.id for each in archived), left), revisions


async def _read(stream: Stream, steps: dict[str, Logged], step: str, *, may_be_gone: bool = False) -> list[Record]:
    """Return the records that a step of the sleep names in its event; [] if the sleep has no such step.

    Args:
        may_be_gone: leave out deleted records instead of raising an error.

    Raises:
        InputError: one of the records was deleted.
    """
    event = steps[step].event if step in steps else Slept(step="undo")
    assert isinstance(event, Slept)
    found = await stream.records(event.records)
    if missing := 0 if may_be_gone else len(event.records) - len(found):
        what = "archived" if step == "fading" else "created from near-duplicates"
        raise InputError(f"{missing} of the records that this sleep {what} were deleted: the sleep cannot be undone")
    return found


async def _weakened(stream: Stream, fading: Logged) -> tuple[list[Record], tuple[str, ...]]:
    """Return the weakened records that can be restored, and the ids of the other weakened records. A record can be
    restored if no recall has returned it since the sleep, and it is neither archived nor long-term.
    """
    assert isinstance(fading.event, Slept)
    records = await stream.records(fading.event.weakened)
    still = [each for each in records if each.forgotten is None and each.accessed < fading.at and not each.lasting]
    ids = {each.id for each in still}
    return still, tuple(id_ for id_ in fading.event.weakened if id_ not in ids)


async def _replaced(stream: Stream, merged: Record) -> Sequence[Record]:
    found = await stream.records(merged.evidence)
    if len(found) < len(merged.evidence) or any(each.superseded_by != merged.id for each in found):
        raise InputError(f"records that {merged.id} replaced were changed or deleted since: the sleep cannot be undone")
    return found


def _again(record: Record, ended: str) -> Revision:
    if ended == "forgotten":
        return Revision(id=record.id, level=record.level + 1, emptied=("forgotten",), was=_state(record))
    return Revision(id=record.id, emptied=("valid_until", "superseded_by"), was=_state(record))


def _state(record: Record) -> StrengthState:
    return StrengthState(record.level, record.lasting, record.accessed)
