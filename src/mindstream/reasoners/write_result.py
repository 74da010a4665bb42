"""Commits a reasoner's result together with the end of its work, merged into the latest beliefs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from typing import TypeAlias

from mindstream.errors import Conflict, LeaseLost
from mindstream.foreign_code import ForeignTask
from mindstream.log.events import Logged, Remembered, Thought
from mindstream.memory.store.record import TAINTED
from mindstream.memory.store.store import Entry, WorkDone
from mindstream.reasoners.reasoner import RunContext, RunResult, Writing

WRITES = 100
"""Maximum number of attempts when other writers come first."""
WRITING_S = 30.0
"""Timeout for building what is to be written, in seconds."""

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

    thought = Thought(
        slot=context.slot,
        about=about,
        text=run_result.thought,
        model=run_result.model,
        **asdict(run_result.briefing),
    )
    for _ in range(WRITES - 1):
        try:
            return await _written(context, thought, await ForeignTask(writing).result(WRITING_S), finish)
        except LeaseLost:
            raise
        except Conflict:
            await asyncio.sleep(0)  # another writer was first: merge with its version
    return await _written(context, thought, await ForeignTask(writing).result(WRITING_S), finish)


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


async def _written(context: RunContext, thought: Thought, writing: Writing, finish: WorkDone | None) -> list[Logged]:
    entries, revisions = writing
    first = Entry(thought, context.slot)
    return await context.memory.commit(first, *entries, revisions=revisions, finish=finish)
