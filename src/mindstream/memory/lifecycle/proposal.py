"""Sleep as a proposal: what a sleep would do, to be inspected and accepted in whole or in part.

A proposal contains ids of records and their strength, so it can be stored as JSON and accepted later, also by another
process. If a record has changed in the meantime, the sleep leaves it as it is. A record that the user excludes is
strengthened as if a recall had returned it, so no sleep can weaken it before `asleep_s` seconds have passed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mindstream.clock import Moment
from mindstream.errors import InputError, ModelError
from mindstream.frozen import Frozen
from mindstream.memory.forgetting_curve import StrengthState, after_return, after_sleep
from mindstream.memory.lifecycle.duplicates import MERGED, alike
from mindstream.memory.lifecycle.sleep import (
    Draw,
    Dreamt,
    SleepRun,
    change_by,
    checked_draw,
    compose_dream,
    draw,
    dream,
    fade,
    find_duplicates,
    tidy_up,
)
from mindstream.memory.recall.recall import state_in
from mindstream.memory.store.record import Record
from mindstream.models.rules import Rules

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream
    from mindstream.models.model import Model


class Weakening(Frozen):
    """A record that would lose a level. `level`: its level when the proposal was made. `time`: when a recall last
    returned the record; if none did, when it was written."""

    id: str
    level: int
    time: Moment


class Proposal(Frozen):
    """What a sleep would do.

    Attributes:
        looked_at: number of records drawn at random.
        weakened: records that would lose a level; those at level 0 would be archived.
        merging: groups of near-duplicates; one record, with the text of the group's first, would replace each group.
        dream: the text of the dream; "": nothing would be archived, or the model failed.
        model: the model that made the dream.
        error: why the model failed to make a dream; "": it did not fail.
    """

    at: Moment
    looked_at: int = 0
    weakened: tuple[Weakening, ...] = ()
    merging: tuple[tuple[str, ...], ...] = ()
    dream: str = ""
    model: str = ""
    error: str = ""

    @property
    def forgotten(self) -> tuple[str, ...]:
        """The ids of records that would be archived."""
        return tuple(each.id for each in self.weakened if each.level == 0)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all records that would change."""
        return tuple(
            dict.fromkeys((*(each.id for each in self.weakened), *(id_ for some in self.merging for id_ in some)))
        )


async def propose(stream: Stream, model: Model | None = None, n: int | None = None) -> Proposal:
    """Return what a sleep would archive, merge and dream now. None of it is written until the proposal is accepted.

    Args:
        n: the number of records that the sleep draws; None: the number in the policy.

    Raises:
        InputError: n is below 0.
    """
    n = checked_draw(stream, n)
    await stream.settle()
    model, chosen = model or Rules(), await draw(stream, n)
    forgotten = await stream.records(chosen.forgotten)
    groups = await find_duplicates(stream, chosen.forgotten)
    text, by, error = "", "", ""
    try:
        text, by, _ = await compose_dream(model, forgotten) if forgotten else ("", "", False)
    except ModelError as failure:
        error = str(failure)
    weakened = [Weakening(id=each.id, level=each.was.level, time=each.was.time) for each in chosen.weaker if each.was]
    return Proposal(
        at=stream.clock.now(),
        looked_at=chosen.looked_at,
        weakened=tuple(weakened),
        merging=tuple(tuple(each.id for each in group) for group in groups),
        dream=text,
        model=by,
        error=error,
    )


async def accept(
    stream: Stream,
    proposal: Proposal,
    without: Collection[str] = (),
    *,
    model: Model | None = None,
    rater: Model | None = None,
) -> str:
    """Do the sleep that was proposed; return the text of the dream, "" if there is none.

    The records whose ids are in `without` are neither weakened nor merged. They are strengthened as if a recall had
    returned them. Records that have changed in the meantime stay as they are. If fewer records are archived than
    proposed, a new dream is made from the archived ones.

    Raises:
        InputError: an id in `without` is not part of this proposal.
    """
    if odd := sorted(set(without) - set(proposal.ids)):
        raise InputError(
            f"this sleep would not change {', '.join(odd)}: name only records that it would weaken, archive or merge"
        )
    await stream.settle()
    model = model or Rules()
    run = SleepRun(stream, model, rater or model)
    await fade(run, partial(_still_so, stream, proposal, without))
    await dream(run, partial(_dream_again, proposal))
    return await tidy_up(run, partial(_still_alike, stream, proposal, without))


async def _dream_again(proposal: Proposal, model: Model, forgotten: Sequence[Record]) -> Dreamt:
    if proposal.dream and {record.id for record in forgotten} == set(proposal.forgotten):
        return Dreamt(proposal.dream, proposal.model)
    return await compose_dream(model, forgotten)


async def _still_so(stream: Stream, proposal: Proposal, without: Collection[str]) -> Draw:
    """Return the part of the proposed weakening that is still valid, and a strengthening of the records in `without`.
    The user excluded the records in `without`. They are strengthened as much as by a recall that returns them."""
    columns, now = await stream.columns(), stream.clock.now()
    still = [
        each.id
        for each in proposal.weakened
        if each.id not in without
        and state_in(columns, each.id) == StrengthState(each.level, False, each.time)
        and columns.holds(each.id, now)
    ]
    weaker, kept = (
        [change for id_ in ids if (change := change_by(law, stream, columns, id_))]
        for ids, law in ((still, after_sleep), (without, after_return))
    )
    return Draw(proposal.looked_at, weaker, kept)


async def _still_alike(stream: Stream, proposal: Proposal, without: Collection[str]) -> list[list[Record]]:
    """Return the proposed groups, leaving out records that have changed and those in `without`."""
    groups: list[list[Record]] = []
    used: set[str] = set(without)
    for ids in proposal.merging:
        there = await stream.records([id_ for id_ in dict.fromkeys(ids) if id_ not in used])
        there = [each for each in there if each.forgotten is None and each.valid_until is None and each.kind in MERGED]
        group = [each for each in there if each.kind == there[0].kind and alike(there[0].text, each.text)]
        if len(group) > 1:
            groups.append(group)
            used |= {each.id for each in group}
    return groups
