"""Promises of reasoners (reasoners/reasoner): slot, trigger, time limit, and results that can be written.

A factory opens a `Trial`: the reasoner, an empty stream, and the utterances.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from mindstream.foreign_code import GRACE_S
from mindstream.log.events import Heard, Thought
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Entry
from mindstream.reasoners.background import Background, make_writing
from mindstream.reasoners.reasoner import (
    Occurrence,
    Reasoner,
    RunContext,
    RunResult,
    Trigger,
    build_context,
    nothing_newer,
)
from mindstream_evals.conformance.samples import Promises, expect

SAID = ("Hello, my name is Ann.", "I drink coffee at night, and it keeps me awake.")


@dataclass(frozen=True, slots=True)
class Trial:
    """A reasoner, an empty stream, and the utterances."""

    reasoner: Reasoner
    memory: Memory
    said: Sequence[str] = SAID


PROMISES = Promises[Trial]()


async def hear(trial: Trial) -> RunContext:
    """Store the utterances and return the context of a run about them."""
    stream, rows = trial.memory, []
    for text in trial.said:
        (record,) = await stream.build_records([RecordDraft(text=text, kind="chat", by="user", data={"by_user": True})])
        heard = Heard(text=text, session="contract", record=record.id)
        rows += await stream.commit(Entry(heard, "user", (record,)))
    return await build_context(stream, trial.reasoner.slot, rows, nothing_newer)


@PROMISES.add
async def it_says_what_it_writes_when_it_wakes_and_how_long_it_may_take(trial: Trial) -> None:
    reasoner = trial.reasoner
    slot, trigger, timeout_s = reasoner.slot, reasoner.trigger, reasoner.timeout_s
    expect(isinstance(slot, str) and bool(slot.strip()), f"the name of a slot, not {slot!r}")
    expect(isinstance(trigger, Trigger), f"a trigger, not {trigger!r}")
    expect(bool(trigger.every or trigger.idle_s or trigger.at is not None), "a trigger with at least one condition")
    expect(math.isfinite(timeout_s) and timeout_s > 0, f"a positive, finite time limit in seconds, not {timeout_s!r}")
    again = reasoner.slot, reasoner.trigger, reasoner.timeout_s
    expect(again == (slot, trigger, timeout_s), "the same slot, trigger and time limit each time")


@PROMISES.add
async def it_comes_to_a_conclusion_within_its_time(trial: Trial) -> None:
    context = await hear(trial)
    result = await _think(trial, context)
    expect(isinstance(result, RunResult), f"a RunResult, not {type(result).__name__}")


@PROMISES.add
async def thinking_alone_remembers_nothing(trial: Trial) -> None:
    context = await hear(trial)
    before = await _memory(trial.memory)
    await _think(trial, context)
    expect(await _memory(trial.memory) == before, "no new record before the result is written")


@PROMISES.add
async def a_conclusion_can_be_made_twice_and_written_once(trial: Trial) -> None:
    context = await hear(trial)
    result = await _think(trial, context)
    before = await _memory(trial.memory)
    once, twice = [_texts(await make_writing(context, result)) for _ in range(2)]
    expect(once == twice, f"the same writing from the same result each time, not {once} and {twice}")
    expect(await _memory(trial.memory) == before, "building the writing of a result does not commit it")
    entries, revisions = await make_writing(context, result)
    await trial.memory.commit(_thought(trial, result), *entries, revisions=revisions)


@PROMISES.add
async def it_is_written_anew_where_somebody_was_first(trial: Trial) -> None:
    context = await hear(trial)
    result = await _think(trial, context)
    for _ in range(2):  # the first pass stands for another process, which writes the same result first
        entries, revisions = await make_writing(context, result)
        await trial.memory.commit(_thought(trial, result), *entries, revisions=revisions)
    notes = [record.text for record in await trial.memory.latest("note", 99)]
    expect(len(notes) == len(set(notes)), f"each note once, not {notes}")


@PROMISES.add
async def a_run_that_raises_writes_nothing(trial: Trial) -> None:
    failing = _Failing(trial.reasoner)
    runner = Background(trial.memory, [failing], retry_s=0.001)
    context = await hear(trial)
    before = await _memory(trial.memory)
    await trial.memory.commit(context.events[-1].event, wake=runner.claims(Occurrence(1, "", "")))
    running = asyncio.ensure_future(runner.run())
    await runner.settled()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    kinds = [row.event.kind for row in await trial.memory.store.events(trial.memory.key)]
    expect(
        bool(failing.runs) and "thought" not in kinds and "set_aside" in kinds,
        f"`set_aside` in the log, not {kinds}",
    )
    expect(await _memory(trial.memory) == before, "no record of a run that raised an error")


@PROMISES.add
async def it_lets_itself_be_cancelled(trial: Trial) -> None:
    context = await hear(trial)
    before = await _memory(trial.memory)
    thinking = asyncio.ensure_future(trial.reasoner.think(context))
    await asyncio.sleep(0)
    thinking.cancel()
    async with asyncio.timeout(GRACE_S):
        (came,) = await asyncio.gather(thinking, return_exceptions=True)
    kind = type(came).__name__
    expect(isinstance(came, asyncio.CancelledError | RunResult), f"CancelledError or a RunResult, not {kind}")
    expect(await _memory(trial.memory) == before, "no record of a run that was cancelled")


@dataclass
class _Failing:
    """A reasoner that runs another reasoner and then raises an error."""

    inner: Reasoner
    trigger: Trigger = field(default_factory=Trigger)
    runs: int = 0

    @property
    def slot(self) -> str:
        return self.inner.slot

    @property
    def timeout_s(self) -> float:
        return self.inner.timeout_s

    async def think(self, context: RunContext) -> RunResult:
        self.runs += 1
        await self.inner.think(context)
        raise RuntimeError("the reasoner fails on purpose, after its work")


async def _think(trial: Trial, context: RunContext) -> RunResult:
    async with asyncio.timeout(trial.reasoner.timeout_s):
        return await trial.reasoner.think(context)


def _thought(trial: Trial, result: RunResult) -> Entry:
    thought = Thought(slot=trial.reasoner.slot, about=(), text=result.thought, model=result.model)
    return Entry(thought, trial.reasoner.slot)


async def _memory(stream: Memory) -> list[tuple[str, str]]:
    return [(record.id, record.text) for record in (await stream.store.changes(stream.key, 0)).records]


def _texts(writing: tuple[Sequence[Entry], Sequence[object]]) -> list[tuple[str, tuple[str, ...]]]:
    return [(entry.event.kind, tuple(record.text for record in entry.records)) for entry in writing[0]]
