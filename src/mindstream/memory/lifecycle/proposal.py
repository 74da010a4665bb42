"""Dreams are proposals: what a sleep would do, to be looked at, accepted in whole or in part, or refused.

A proposal names records and how they were held, so it can be kept as JSON and accepted later by another process. What
has changed meanwhile stays as it is. Who keeps a record has returned to it: it is held as after a recall, and no sleep
proposes it again before the time that the laws set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from mindstream.clock import Moment
from mindstream.errors import Conflict, InputError, ModelError
from mindstream.log.events import Logged, Slept
from mindstream.memory.lifecycle.duplicates import MERGED, alike
from mindstream.memory.lifecycle.sleep import (
    DRAWN,
    Draw,
    Night,
    compose_dream,
    draw,
    dream,
    fade,
    find_duplicates,
    keep_house,
    weaken,
)
from mindstream.memory.recall.touch import revision, state_in
from mindstream.memory.store.columns import Columns
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Entry, Revision, read_log
from mindstream.memory.store.strength import StrengthState, after_return
from mindstream.models.rules import Rules

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream
    from mindstream.models.model import Model


class Weakening(BaseModel):
    """A record that would lose a level, and how it was held when that was proposed."""

    model_config = ConfigDict(frozen=True)

    id: str
    level: int
    time: Moment


class Proposal(BaseModel):
    """What a sleep would do.

    Attributes:
        looked_at: how many records it drew.
        weakened: what would lose a level; at level 0 it would be forgotten.
        merging: groups of near-duplicates; the first one's words would stay.
        dream: "": nothing would be forgotten, or nobody could dream of it.
        model: who dreamt.
        error: why nobody could.
    """

    model_config = ConfigDict(frozen=True)

    at: Moment
    looked_at: int = 0
    weakened: tuple[Weakening, ...] = ()
    merging: tuple[tuple[str, ...], ...] = ()
    dream: str = ""
    model: str = ""
    error: str = ""

    @property
    def forgotten(self) -> tuple[str, ...]:
        """The ids of what would be forgotten."""
        return tuple(each.id for each in self.weakened if each.level == 0)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all that would be changed."""
        return tuple(
            dict.fromkeys((*(each.id for each in self.weakened), *(id_ for some in self.merging for id_ in some)))
        )


async def propose(stream: Stream, model: Model | None = None, n: int = DRAWN) -> Proposal:
    """Return what a sleep would forget, merge and dream now; nothing is written before it is accepted.

    Raises:
        InputError: n is below 0.
    """
    if n < 0:
        raise InputError(f"n says how many records a sleep draws, at least 0, not {n}")
    await stream.settle()
    model, chosen = model or Rules(), await draw(stream, n)
    forgotten = await stream.store.records(stream.key, chosen.forgotten)
    groups = await find_duplicates(stream, chosen.forgotten)
    text, by, error = "", "", ""
    try:
        text, by = await compose_dream(model, forgotten) if forgotten else ("", "")
    except ModelError as failure:
        error = str(failure)
    weakened = [Weakening(id=each.id, level=each.was.level, time=each.was.time) for each in chosen.weaker if each.was]
    return Proposal(
        at=stream.clock.now(), looked_at=chosen.looked_at, weakened=tuple(weakened),
        merging=tuple(tuple(each.id for each in group) for group in groups), dream=text, model=by, error=error,
    )  # fmt: skip


async def accept(
    stream: Stream,
    proposal: Proposal,
    without: Collection[str] = (),
    *,
    model: Model | None = None,
    rater: Model | None = None,
) -> str:
    """Sleep as proposed, but for these ids; return the dream, or "".

    What has changed meanwhile stays as it is, too. Where less is forgotten than was proposed, the dream is dreamt anew,
    of what is.

    Raises:
        InputError: an id is not of this proposal.
    """
    if odd := sorted(set(without) - set(proposal.ids)):
        raise InputError(f"this sleep would not change {', '.join(odd)}: name ids of what it would forget or merge")
    await stream.settle()
    model = model or Rules()
    night = Night(stream, model, rater or model)
    await fade(night, partial(_still_so, stream, proposal, without))
    await dream(night, partial(_dream_again, proposal))
    return await keep_house(night, partial(_still_alike, stream, proposal, without))


async def _dream_again(proposal: Proposal, model: Model, forgotten: Sequence[Record]) -> tuple[str, str]:
    if proposal.dream and {record.id for record in forgotten} == set(proposal.forgotten):
        return proposal.dream, proposal.model
    return await compose_dream(model, forgotten)


async def _still_so(stream: Stream, proposal: Proposal, without: Collection[str]) -> Draw:
    """Return what of a proposal can be done as it was proposed."""
    columns, now = await stream.columns(), stream.clock.now()
    weaker: list[Revision] = []
    for each in proposal.weakened:
        as_it_was = state_in(columns, each.id) == StrengthState(each.level, False, each.time)
        if each.id not in without and as_it_was and columns.holds(each.id, now):
            weaker += [change for change in [weaken(stream, columns, each.id)] if change]
    return Draw(proposal.looked_at, weaker, [change for id_ in without if (change := _keep(stream, columns, id_))])


def _keep(stream: Stream, columns: Columns, id_: str) -> Revision | None:
    held, now, laws = state_in(columns, id_), stream.clock.now(), stream.strength
    if laws and held and (after := after_return(held, now, laws)) != held:
        return revision(id_, held, after, now)
    return None


async def _still_alike(stream: Stream, proposal: Proposal, without: Collection[str]) -> list[list[Record]]:
    """Return the proposed groups as far as they hold and are not to be kept."""
    groups: list[list[Record]] = []
    used: set[str] = set(without)
    for ids in proposal.merging:
        there = await stream.store.records(stream.key, [id_ for id_ in dict.fromkeys(ids) if id_ not in used])
        there = [each for each in there if each.forgotten is None and each.valid_until is None and each.kind in MERGED]
        group = [each for each in there if each.kind == there[0].kind and alike(there[0].text, each.text)]
        if len(group) > 1:
            groups.append(group)
            used |= {each.id for each in group}
    return groups


# Undo a sleep: what it forgot and merged is held again as it was, and what it made goes to the archive.
#
# What it rated and what was over by then stay as they are: nothing was lost by that.


ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class UndoneSleep:
    """What came of undoing a sleep.

    Attributes:
        sleep: the row of the log in which it began to fade.
        held_again: ids of what is held again: forgotten, merged, or held less well.
        archived: ids of what the sleep had made.
        left: ids of what was held less well, and has been returned or forgotten since: it stays so.
    """

    sleep: int
    held_again: tuple[str, ...]
    archived: tuple[str, ...]
    left: tuple[str, ...]


async def undo_sleep(stream: Stream, sleep: int = 0) -> UndoneSleep:
    """Undo a sleep: the one whose `fading` is that row of the log; 0: the last one that is not undone.

    Raises:
        InputError: there is no such sleep, or it is undone; what it forgot was purged; what it made was corrected.
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
    nights: dict[int, dict[str, Logged]] = {}
    async for row in read_log(stream.store, stream.key, kinds=["slept"]):
        assert isinstance(row.event, Slept)
        begun = row.seq if row.event.step == "fading" else row.event.cause
        nights.setdefault(begun, {})[row.event.step] = row
    nights = {begun: steps for begun, steps in nights.items() if "fading" in steps}
    asleep = [begun for begun, steps in nights.items() if "undo" not in steps]
    if sleep and sleep not in nights:
        raise InputError(f"no sleep of {stream.name!r} began with row {sleep} of the log")
    if (sleep and sleep not in asleep) or not asleep:
        raise InputError(f"the sleep of row {sleep} is undone already" if sleep else "there is no sleep to undo")
    return nights[sleep or asleep[-1]]


async def _plan(stream: Stream, steps: dict[str, Logged]) -> tuple[UndoneSleep, list[Revision]]:
    """Return what undoing does, and how it is written."""
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
    """Read the records that a step tells of."""
    event = steps[step].event if step in steps else Slept(step="undo")
    assert isinstance(event, Slept)
    found = await stream.store.records(stream.key, event.records)
    if missing := 0 if may_be_gone else len(event.records) - len(found):
        what = "forgot" if step == "fading" else "made of near-duplicates"
        raise InputError(f"{missing} of what this sleep {what} were deleted for good: it cannot be undone")
    return found


async def _weakened(stream: Stream, fading: Logged) -> tuple[list[Record], tuple[str, ...]]:
    """Return what is held less well by that sleep still, and the ids of what is held otherwise by now."""
    assert isinstance(fading.event, Slept)
    records = await stream.store.records(stream.key, fading.event.weakened)
    still = [each for each in records if each.forgotten is None and each.accessed < fading.at and not each.lasting]
    ids = {each.id for each in still}
    return still, tuple(id_ for id_ in fading.event.weakened if id_ not in ids)


async def _replaced(stream: Stream, merged: Record) -> Sequence[Record]:
    found = await stream.store.records(stream.key, merged.evidence)
    if len(found) < len(merged.evidence) or any(each.superseded_by != merged.id for each in found):
        raise InputError(f"what {merged.id} took the place of was changed or deleted since: it cannot be undone")
    return found


def _again(record: Record, ended: str) -> Revision:
    if ended == "forgotten":
        return Revision(id=record.id, level=record.level + 1, emptied=("forgotten",), was=_state(record))
    return Revision(id=record.id, emptied=("valid_until", "superseded_by"), was=_state(record))


def _state(record: Record) -> StrengthState:
    return StrengthState(record.level, record.lasting, record.accessed)
