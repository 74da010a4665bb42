"""How a thought is written, whoever runs it: in one commit with the end of its work, against what is believed then."""

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
"""So often a conclusion is written anew because another writer was first."""
WRITING_S = 30.0
"""How long a conclusion may take to make what is to be written."""

SpeakUp: TypeAlias = Callable[[RunContext, RunResult, Sequence[Entry]], Awaitable[Sequence[Entry]]]
"""Adds to what a conclusion writes: whether the mind says more, unasked, and what became of a gate's decision."""


async def conclude(
    context: RunContext, run_result: RunResult, speak_up: SpeakUp, about: tuple[int, ...], finish: WorkDone | None
) -> list[Logged]:
    """Write what a reasoner has come to about these rows of the log; return what was logged.

    Raises:
        LeaseLost: another process has taken the work over.
        StorageError, ForeignFailure, Overdue: it could not be made, or not be written.
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
            await asyncio.sleep(0)  # another writer was first: write against what it wrote
    return await _written(context, thought, await ForeignTask(writing).result(WRITING_S), finish)


async def make_writing(context: RunContext, result: RunResult) -> Writing:
    """Make what is to be written of a result against what is believed now; nothing is committed."""
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
    """Return what is to be written, marked as drawn from what strangers wrote."""
    marked = (replace(record, data={**record.data, TAINTED: True}) for record in entry.records)
    return replace(entry, records=tuple(marked))


async def _written(context: RunContext, thought: Thought, writing: Writing, finish: WorkDone | None) -> list[Logged]:
    entries, revisions = writing
    first = Entry(thought, context.slot)
    return await context.memory.commit(first, *entries, revisions=revisions, finish=finish)
