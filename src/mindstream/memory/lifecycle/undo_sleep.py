"""Undo a sleep: archived and merged records are restored, and records that it created are archived.

Its importance ratings and expired records stay as they are: nothing was lost by them.
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
        held_again: ids of restored records: archived, merged, or weakened ones.
        archived: ids of records that the sleep had created.
        left: ids of weakened records that have been returned or archived since; they are not changed.
    """

    sleep: int
    held_again: tuple[str, ...]
    archived: tuple[str, ...]
    left: tuple[str, ...]


async def undo_sleep(stream: Stream, sleep: int = 0) -> UndoneSleep:
    """Undo a sleep: the one whose `fading` step is that row of the log; 0: the last one that is not undone.

    Raises:
        InputError: there is no such sleep, or it is undone already; its archived records were purged; its records
            were corrected.
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
    """Return the result of undoing, and the revisions that do it."""
    forgotten = await _read(stream, steps, "fading")
    at = steps["fading"].at
    if gone := sum(each.forgotten is None or each.forgotten > at for each in forgotten):
        raise InputError(f"{gone} of what this sleep forgot were changed since: it cannot be undone")
    weakened, left = await _weakened(stream, steps["fading"])
    merged = await _read(stream, steps, "duplicates")
    dreamt = [each for each in await _read(stream, steps, "dream", may_be_gone=True) if each.forgotten is None]
    for each in (*merged, *dreamt):
        if each.superseded_by:
            raise InputError(f"{each.id}, which this sleep made, was corrected since, by {each.superseded_by}")
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
    """Read the records that a step names."""
    event = steps[step].event if step in steps else Slept(step="undo")
    assert isinstance(event, Slept)
    found = await stream.store.records(stream.key, event.records)
    if missing := 0 if may_be_gone else len(event.records) - len(found):
        what = "forgot" if step == "fading" else "made of near-duplicates"
        raise InputError(f"{missing} of what this sleep {what} were deleted for good: it cannot be undone")
    return found


async def _weakened(stream: Stream, fading: Logged) -> tuple[list[Record], tuple[str, ...]]:
    """Return the records that are still weakened by that sleep, and the ids of those that changed since."""
    assert isinstance(fading.event, Slept)
    records = await stream.store.records(stream.key, fading.event.weakened)
    still = [each for each in records if each.forgotten is None and each.accessed < fading.at and not each.lasting]
    ids = {each.id for each in still}
    return still, tuple(id_ for id_ in fading.event.weakened if id_ not in ids)


async def _replaced(stream: Stream, merged: Record) -> Sequence[Record]:
    found = await stream.store.records(stream.key, merged.evidence)
    if len(found) < len(merged.evidence) or any(each.superseded_by != merged.id for each in found):
        raise InputError(f"records that {merged.id} replaced were changed or deleted since: it cannot be undone")
    return found


def _again(record: Record, ended: str) -> Revision:
    if ended == "forgotten":
        return Revision(id=record.id, level=record.level + 1, emptied=("forgotten",), was=_state(record))
    return Revision(id=record.id, emptied=("valid_until", "superseded_by"), was=_state(record))


def _state(record: Record) -> StrengthState:
    return StrengthState(record.level, record.lasting, record.accessed)
