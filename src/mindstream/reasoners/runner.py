"""Runs reasoners: context, thinking, and one commit that ends the work, or a failure.

A run that raises is logged, retried a bounded number of times, and then dead-lettered. If its model is unavailable, the
work rests until the model is back, and that is logged once.

A process that loses its work notices within a second and can write nothing of it. A process that answers is asked to
stop, and keeps the words said so far.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import groupby

from mindstream import chance
from mindstream.clock import Clock
from mindstream.errors import OUTAGES, ErasedMeanwhile, InputError, LeaseLost, ModelError, ModelResting, RateLimited
from mindstream.foreign_code import ForeignFailure, ForeignTask, Overdue, Stopped, describe
from mindstream.log import erasures
from mindstream.log.events import Corrected, Failed, Heard, SetAside, Thought
from mindstream.log.names import StreamKey
from mindstream.log.work import ANSWER, LONGEST_LEASE_S, STOPPED, Work
from mindstream.memory.lease import looking, renewing
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Commit, Entry, NewWork, Store, WorkDone, WorkReleased
from mindstream.models.cause import Cause, calls_for
from mindstream.reasoners.reasoner import (
    CRASHES,
    LONGEST_REST_S,
    TRIES,
    Newer,
    Occurrence,
    Reasoner,
    Run,
    RunContext,
    RunResult,
    Slot,
    build_context,
    checked_reasoner,
    nothing_newer,
    rows_of,
)
from mindstream.reasoners.write_result import SpeakUp, conclude
from mindstream.tools.tool import Tool
from mindstream.tracing import genai, span

LOG = logging.getLogger("mindstream.reasoners")
"""Logger of failed runs; without logging configuration, Python writes warnings to standard error."""


async def silent(*_: object) -> Sequence[Entry]:
    """Add nothing to a conclusion."""
    return ()


FORGOTTEN = "words that it had read were erased in the meantime"


class Runner:
    """Runs reasoners, each in its slot.

    Args:
        floor: held during an answer. Conclusions are written when it is free: a belief never changes during an
            answer, and
            no follow-up interrupts one.
        tools: tools for the runs, in addition to the reasoners' own.
        lease_s: how long work stays with a process that does not renew it.
        retry_s: pause after the first failed run; each further pause is four times as long.
        owner: the name of the holder of its work; "": a new one.

    Raises:
        InputError: a slot is used twice, a reasoner is invalid, or the lease is too long.
    """

    def __init__(
        self,
        memory: Memory,
        reasoners: Sequence[Reasoner] = (),
        floor: asyncio.Lock | None = None,
        speak_up: SpeakUp = silent,
        *,
        tools: Sequence[Tool] = (),
        lease_s: float = 10.0,
        retry_s: float = 0.5,
        owner: str = "",
    ) -> None:
        if not 0 < lease_s <= LONGEST_LEASE_S:
            raise InputError(f"lease_s is a time in seconds, above 0 and at most {LONGEST_LEASE_S:.0f}, not {lease_s}")
        self.memory = memory
        self.owner = owner or chance.token()
        self._slots: dict[str, Slot] = {}
        self.add(*reasoners)
        self.floor, self._tools = floor or asyncio.Lock(), tools
        self._speak_up = speak_up
        self._lease_s, self._retry_s = lease_s, retry_s

    def add(self, *reasoners: Reasoner) -> None:
        """Add reasoners; before `run`.

        Raises:
            InputError: a slot is used twice, or a reasoner is invalid.
        """
        for reasoner in map(checked_reasoner, reasoners):
            if reasoner.slot in self._slots:
                raise InputError(f"two reasoners write the slot {reasoner.slot!r}: give one of them another")
            self._slots[reasoner.slot] = Slot(reasoner)

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of the slots."""
        return tuple(self._slots)

    def claims(self, turn: Occurrence, besides: Sequence[str] = ()) -> NewWork:
        """Return the work that an occurrence causes, leased to this process; `besides`: slots that are left out."""
        fired = [name for name, slot in self._slots.items() if slot.reasoner.trigger.fires(turn)]
        slots = tuple(name for name in fired if name not in besides)
        return NewWork(slots, self.owner, self._lease())

    async def work(self) -> list[Work]:
        """List the mind's open work for these slots, oldest first."""
        return [work for work in await self.memory.store.open_work(self.memory.key) if work.slot in self._slots]

    def cancel(self, slot: str | None = None) -> int:
        """Stop the runs of a slot, or all; return their number. Their work counts as done."""
        runs = [each.run for name, each in self._slots.items() if slot in (None, name)]
        return sum(run.thinking.stop() for run in runs if run and run.thinking)

    async def _think(self, slot: Slot, run: Run) -> None:
        """Think, and commit the conclusion, the failure or the end of retries."""
        slot.run = run
        outer = erasures.READING.set(None)
        try:
            erasures.READING.set(erasures.Reading(await self.memory.store.last_erasure()))  # before anything is read
            if any(work.attempts > CRASHES for work in run.work):
                await self._set_aside(slot, run.work, f"taken up {CRASHES} times, and the process died each time")
                return
            with renewing(self.memory.store, self.memory.clock, lambda: run.ids, self.owner, self._lease_s):
                context = await self._occasion(slot, run)
                await self._conclude(run, context, await self._conclusion(slot, run, context))
            slot.due, slot.outages = None, 0
        except Stopped:
            await self._finish_cancelled(slot, run)
        except Overdue:
            await self._fail(slot, run, f"{slot.name}: no conclusion within {slot.reasoner.timeout_s:.0f} seconds")
        except Exception as error:  # noqa: BLE001 (any error is a failure of this run only)
            cause = error.cause if isinstance(error, ForeignFailure) else error
            if isinstance(cause, ErasedMeanwhile):
                await self._read_again(run, cause)
            elif isinstance(cause, OUTAGES):
                await self._wait_out(slot, run, cause)
            elif not isinstance(cause, LeaseLost):  # otherwise another process has the work
                reason = f"{slot.name}: {error if isinstance(error, ForeignFailure) else describe(error)}"
                await self._fail(slot, run, reason, cause)
        finally:
            erasures.READING.reset(outer)
            slot.run = None

    async def _read_again(self, run: Run, erased: ErasedMeanwhile) -> None:
        """Release work whose words were erased in part, so that it is done again without them."""
        if run.work and not erased.whole:
            with contextlib.suppress(LeaseLost, ErasedMeanwhile):  # it was erased with the words
                await self.memory.commit(put_back=WorkReleased(run.ids, self.owner, FORGOTTEN, counts=False))

    async def _tell(self, entries: Sequence[Entry], run: Run, put_back: WorkReleased | None) -> None:
        """Log a failure and release the work; if words were erased, only release the work."""
        try:
            await self.memory.commit(*entries, put_back=put_back)
        except ErasedMeanwhile as erased:
            await self._read_again(run, erased)

    async def _occasion(self, slot: Slot, run: Run) -> RunContext:
        rows = await rows_of(self.memory, run.work)
        return await build_context(self.memory, slot.name, rows, self._newer(slot, run), self._tools)

    def _newer(self, slot: Slot, run: Run) -> Newer:  # noqa: ARG002
        """Return the function by which a run in progress receives newer utterances."""
        return nothing_newer

    async def _conclusion(self, slot: Slot, run: Run, context: RunContext) -> RunResult:
        with span(genai.INVOKE_AGENT, slot.name, {genai.AGENT: slot.name, genai.CONVERSATION: context.session}):
            thinking = run.thinking = ForeignTask(lambda: slot.reasoner.think(context))

            def look(work: Sequence[Work]) -> None:
                """Stop if another process ended or took over the work: the result could not be committed."""
                if not set(run.ids) <= {each.id for each in work if each.owner == self.owner}:
                    thinking.stop()

            with calls_for(Cause(rows=run.about)), looking(self.memory, look):
                return await thinking.result(slot.reasoner.timeout_s)

    async def _conclude(self, run: Run, context: RunContext, run_result: RunResult) -> None:
        finish = WorkDone(run.ids, self.owner) if run.work else None
        if not run.about and not run_result.thought:  # it woke by itself and found nothing
            if finish:
                await self.memory.commit(finish=finish)
            return
        async with self.floor:
            await conclude(context, run_result, self._speak_up, run.about, finish)

    async def _wait_out(self, slot: Slot, run: Run, outage: ModelError) -> None:
        """Release the work unchanged, to rest until the model is available; log that once per outage."""
        is_known = slot.outages > 0 or isinstance(outage, ModelResting)  # already logged
        reason = f"{slot.name}: {describe(outage)}"
        slot.outages += 1
        wished_s = outage.rest_s if isinstance(outage, ModelResting) else 0.0
        wished_s = outage.retry_after_s or 0.0 if isinstance(outage, RateLimited) else wished_s
        slot.rest(min(LONGEST_REST_S, max(wished_s, self._retry_s * 2.0 ** min(slot.outages, 20))))
        if not is_known:
            LOG.warning("%s", reason)
        news = [] if is_known else [Entry(Failed(text=reason, where=slot.name), slot.name)]
        put_back = WorkReleased(run.ids, self.owner, reason, counts=False) if run.work else None
        if news or put_back:
            await self._tell(news, run, put_back)

    async def _fail(self, slot: Slot, run: Run, reason: str, cause: BaseException | None = None) -> None:
        """Release the work for another attempt; dead-letter work that has failed too often."""
        LOG.warning("%s", reason, exc_info=cause)
        slot.outages = 0
        tired = [work for work in run.work if work.failures + 1 >= TRIES]
        again = [work for work in run.work if work.failures + 1 < TRIES]
        put_back = WorkReleased(tuple(work.id for work in again), self.owner, reason) if again else None
        if again:
            slot.rest(self._retry_s * 4 ** max(work.failures for work in again))
        if tired:
            await self._set_aside(slot, tired, reason, put_back)
        else:
            await self._tell([Entry(Failed(text=reason, where=slot.name), slot.name)], run, put_back)

    async def _set_aside(
        self, slot: Slot, work: Sequence[Work], reason: str, put_back: WorkReleased | None = None
    ) -> None:
        about, attempts = Run([*work]).about, max(each.attempts for each in work)
        event = Entry(SetAside(slot=slot.name, about=about, reason=reason, attempts=attempts), slot.name)
        with contextlib.suppress(LeaseLost, ErasedMeanwhile):
            finish = WorkDone(tuple(each.id for each in work), self.owner)
            await self.memory.commit(event, finish=finish, put_back=put_back)

    async def _finish_cancelled(self, slot: Slot, run: Run) -> None:
        thought = Thought(slot=slot.name, about=run.about, text="cancelled", model="")
        with contextlib.suppress(LeaseLost, ErasedMeanwhile):
            finish = WorkDone(run.ids, self.owner) if run.work else None
            await self.memory.commit(Entry(thought, slot.name), finish=finish)

    def _one_by_one(self, ours: Sequence[Work]) -> int | None:
        """Return the cause before which work is claimed; None: claim all.

        After a failure, work is claimed one item at a time, so that a failing one does not block the others.
        """
        has_failed = len(ours) > 1 and any(w.failures or w.attempts > TRIES for w in ours)
        return sorted(work.cause for work in ours)[1] if has_failed else None

    async def _take(self, slot: Slot, before: int | None) -> list[Work]:
        key, now = self.memory.key, self.memory.clock.now()
        return await self.memory.store.claim(key, slot.name, self.owner, now, self._lease(), before)

    def _lease(self) -> float:
        return self.memory.clock.now() + self._lease_s


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
