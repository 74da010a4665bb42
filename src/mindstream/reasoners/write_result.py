"""How a thought is written, whoever runs it: in one commit with the end of its work, against what is believed then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from mindstream.errors import Conflict, LeaseLost
from mindstream.isolation import Isolated
from mindstream.log.events import Logged, Thought
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
        StorageError, Broken, Overdue: it could not be made, or not be written.
    """

    async def writing() -> Writing:
        entries, revisions = await run_result.write()
        entries = [*entries, *await speak_up(context, run_result, entries)]
        return [_tainted(entry) for entry in entries] if context.strangers else entries, revisions

    thought = Thought(
        slot=context.slot, about=about, text=run_result.thought, model=run_result.model, words=run_result.words,
        ask_next=run_result.ask_next,
    )  # fmt: skip
    for _ in range(WRITES - 1):
        try:
            return await _written(context, thought, await Isolated(writing).result(WRITING_S), finish)
        except LeaseLost:
            raise
        except Conflict:
            await asyncio.sleep(0)  # another writer was first: write against what it wrote
    return await _written(context, thought, await Isolated(writing).result(WRITING_S), finish)


def _tainted(entry: Entry) -> Entry:
    """Return what is to be written, marked as drawn from what strangers wrote."""
    marked = (replace(record, data={**record.data, TAINTED: True}) for record in entry.records)
    return replace(entry, records=tuple(marked))


async def _written(context: RunContext, thought: Thought, writing: Writing, finish: WorkDone | None) -> list[Logged]:
    entries, revisions = writing
    first = Entry(thought, context.slot)
    return await context.stream.commit(first, *entries, revisions=revisions, finish=finish)
