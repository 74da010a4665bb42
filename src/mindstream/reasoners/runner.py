"""Commits reasoners' results, and stops runs and answers of other processes."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import TypeAlias

from mindstream.clock import Clock
from mindstream.errors import (
    Conflict,
    LeaseLost,
)
from mindstream.foreign_code import ForeignTask
from mindstream.log.events import Corrected, Heard, Logged, Remembered, Thought
from mindstream.log.names import StreamKey
from mindstream.log.work import ANSWER, STOPPED, Work
from mindstream.memory.store.record import TAINTED
from mindstream.memory.store.store import Commit, Entry, Store, WorkDone, WorkReleased
from mindstream.reasoners.reasoner import (
    RunContext,
    RunResult,
    Writing,
)

WRITES = 100
"""Maximum number of attempts when other writers come first."""
WRITING_S = 30.0
"""Timeout for building the entries, in seconds."""

SpeakUp: TypeAlias = Callable[[RunContext, RunResult, Sequence[Entry]], Awaitable[Sequence[Entry]]]
"""Adds entries to a conclusion: a follow-up, or the judgement of a gate's decision."""


async def conclude(
    context: RunContext, run_result: RunResult, speak_up: SpeakUp, about: tuple[int, ...], finish: WorkDone | None
) -> list[Logged]:
    """Commit a reasoner's result about these log rows; return the rows written.

    Raises:
        LeaseLost: another process has taken over the work.
        StorageError, ForeignFailure, Overdue: it could not be built or written.
    """

    async def writing() -> Writing:
        entries, revisions = await make_writing(context, run_result)
        entries = [*entries, *await speak_up(context, run_result, entries)]
        return [_tainted(entry) for entry in entries] if context.strangers else entries, revisions

    text, model, briefing = run_result.thought, run_result.model, asdict(run_result.briefing)
    thought = Thought(slot=context.slot, about=about, text=text, model=model, **briefing)
    for attempt in range(1, WRITES + 1):
        entries, revisions = await ForeignTask(writing).result(WRITING_S)
        try:
            first = Entry(thought, context.slot)
            return await context.memory.commit(first, *entries, revisions=revisions, finish=finish)
        except Conflict as conflict:
            if isinstance(conflict, LeaseLost) or attempt == WRITES:
                raise
            await asyncio.sleep(0)  # another writer was first: merge with its version
    raise AssertionError("unreachable")


async def make_writing(context: RunContext, result: RunResult) -> Writing:
    """Return the entries and revisions of a result, based on the current beliefs; nothing is committed."""
    entries, slot = list[Entry](), context.slot
    if result.records:
        drafts = [draft if draft.by else replace(draft, by=slot) for draft in result.records]
        records = await context.memory.build_records(drafts)
        event = Remembered(count=len(records), kinds=dict(Counter[str](record.kind for record in records)))
        entries.append(Entry(event, slot, tuple(records)))
    for each in result.beliefs:
        entry = await context.memory.revision(each.slot, each.patch, each.shape, evidence=each.evidence, by=slot)
        entries += [entry] if entry else []
    more, revisions = await result.write() if result.write else ((), ())
    return [*entries, *more], revisions


def _tainted(entry: Entry) -> Entry:
    """Return an entry whose records are marked as based on third-party content."""
    marked = (replace(record, data={**record.data, TAINTED: True}) for record in entry.records)
    return replace(entry, records=tuple(marked))


async def silent(*_: object) -> Sequence[Entry]:
    """Add nothing to a conclusion."""
    return ()


async def stop_elsewhere(
    store: Store,
    mind: StreamKey,
    clock: Clock,
    ours: Container[str],
    *,
    session: str | None = None,
    slot: str | None = None,
    answers: bool = True,
) -> int:
    """Stop runs and answers held by other owners than ours; return their number. Their work counts as done.

    Args:
        session: only work about that conversation; slot: only that reasoner's work.
        answers: stop answers as well.
    """
    now, stopped = clock.now(), 0
    held = [
        work
        for work in await store.open_work(mind)
        if work.owner not in ours and not work.is_open_to("", now) and slot in (None, work.slot)
        if answers or not work.slot.startswith(ANSWER)
        if await _is_of_talk(store, mind, work, session)
    ]
    for (name, owner), found in groupby(sorted(held, key=lambda work: (work.slot, work.owner)), _holder):
        works = list(found)
        with contextlib.suppress(LeaseLost):  # it has ended
            stopped += await _stop(store, Commit(mind=mind, at=now), name, owner, works)
    return stopped


def _holder(work: Work) -> tuple[str, str]:
    return work.slot, work.owner


async def _stop(store: Store, commit: Commit, slot: str, owner: str, works: Sequence[Work]) -> int:
    if slot.startswith(ANSWER):
        asked = tuple(work.id for work in works if work.error != STOPPED)
        await store.commit(replace(commit, put_back=WorkReleased(asked, owner, STOPPED, counts=False)))
        return len(asked)
    begun = [work for work in works if work.running]
    if not begun:
        return 0
    about = tuple(work.cause for work in begun if work.cause > 0)
    entry = Entry(Thought(slot=slot, about=about, text="cancelled", model=""), slot)
    await store.commit(replace(commit, entries=(entry,), finish=WorkDone(tuple(work.id for work in begun), owner)))
    return 1


async def _is_of_talk(store: Store, mind: StreamKey, work: Work, session: str | None) -> bool:
    """Return whether work is about an utterance or a correction; other work (a life's) has its own commands."""
    if work.cause < 0:
        return session is None
    found = await store.events(mind, work.cause - 1, limit=1)
    event = found[0].event if found and found[0].seq == work.cause else None
    if isinstance(event, Heard):
        return session in (None, event.session)
    return isinstance(event, Corrected) and session is None
