"""`Background` runs reasoners during a conversation, with leases so that no work is lost and no result written twice.

Each reasoner has one slot, and each slot has one loop: claim open work, run the reasoner, and commit its result
together with the end of the work. The lease is renewed during the run; if the process dies, the lease expires and
another process claims the work. A failed run is logged and tried again later; after TRIES failed runs the work is
dead-lettered.

`Turns`: of all processes that talk with a user, only one answers each utterance, and utterances are answered in order.
Answering an utterance is a work item (log/work), too: its lease begins when the utterance is committed, and the commit
of the answer ends the work.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import asdict, replace
from itertools import groupby
from operator import attrgetter
from typing import TypeAlias

from mindstream import chance, tracing
from mindstream.clock import Clock, Moment
from mindstream.errors import (
    OUTAGES,
    Conflict,
    ErasedMeanwhile,
    InputError,
    LeaseLost,
    ModelError,
    ModelResting,
    StorageError,
)
from mindstream.foreign_code import ForeignFailure, ForeignTask, Overdue, Stopped, describe
from mindstream.identifiers import StreamKey
from mindstream.log import erasures
from mindstream.log.events import Corrected, Failed, Heard, Logged, Said, SetAside, Signal, Thought
from mindstream.log.work import ANSWER, LONGEST_LEASE_S, STOPPED, Work, hour, silence_after
from mindstream.memory.lease import looking, renewing
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import TAINTED
from mindstream.memory.store.store import Commit, Entry, NewWork, Store, WorkDone, WorkKept, WorkReleased, read_log
from mindstream.models.model import Cause, calls_for
from mindstream.reasoners.reasoner import (
    CRASHES,
    MAX_REST_S,
    STUCK,
    TRIES,
    Newer,
    Occurrence,
    Reasoner,
    Run,
    RunContext,
    RunResult,
    Slot,
    Utterance,
    Writing,
    build_context,
    checked_reasoner,
    rows_of,
    utterances_in,
)
from mindstream.tools.call import Approve, approver, with_approval
from mindstream.tools.tool import Tool
from mindstream.tracing import span

HOLDER: ContextVar[str] = ContextVar("holder", default="")
"""The owner under which this asyncio task has claimed utterances to answer; "": the task has claimed none.

Another process left these utterances unanswered.
"""
POLL_S = 0.2
"""Poll interval while waiting for earlier answers of other processes, in seconds."""


class Turns:
    """The order in which one conversation's utterances are answered, among all processes.

    Attributes:
        claimed: log rows of the utterances that this process has to answer and has not answered yet.
    """

    def __init__(self, memory: Memory, owner: str, slot: str, lease_s: float) -> None:
        self.slot, self.claimed = slot, set[int]()
        self._memory, self._owner, self._lease_s = memory, owner, lease_s
        self._on: set[int] = set()

    def is_on(self, heard: int) -> bool:
        """Return whether this process is answering an utterance, or will answer it after earlier utterances.

        `heard`: the log row of the utterance.
        """
        return heard in self._on

    def owner(self, heard: int) -> str:
        """Return the owner under which this process holds the work item for answering an utterance (its log row)."""
        return self._owner if heard in self.claimed else HOLDER.get() or self._owner

    @contextlib.asynccontextmanager
    async def of(self, heard: int, stop: Callable[[], object]) -> AsyncIterator[int | None]:
        """Wait until earlier utterances are answered, by any process; then yield the id of this answer's work item.

        Yield None if the answer has no work item, for example because the utterance was answered before.

        Args:
            heard: the log row of the utterance to answer.
            stop: cancels the answer; called when another process requests that.

        Raises:
            LeaseLost: another process answers the utterance.
        """
        own: int | None = None

        def look(work: Sequence[Work]) -> None:
            if any(each.id == own and each.error == STOPPED for each in work):
                stop()

        self._on.add(heard)  # before the store is read, so that the next utterance finds this one in `is_on`
        try:
            if (found := await self.find(heard)) is None:
                yield None
                return
            own, answers = found
            store, clock = self._memory.store, self._memory.clock
            with (
                renewing(store, clock, lambda: (own,), self.owner(heard), self._lease_s),
                looking(self._memory, look),
            ):
                if any(self._is_before(each, heard) for each in answers):
                    await self._wait(heard)
                yield own
        finally:
            self._on.discard(heard)

    async def _answers(self) -> list[Work]:
        return [work for work in await self._memory.store.open_work(self._memory.key) if work.slot == self.slot]

    async def find(self, heard: int) -> tuple[int, list[Work]] | None:
        """Return the id of the work item for answering an utterance, and all open work items for answers.

        The result is None if this process holds no work item for the utterance. If this process answers the utterance
        again without a claim, a work item that another process holds is ended.

        Raises:
            LeaseLost: this process should answer the utterance, but another process answers or has answered it.
        """
        try:
            answers = await self._answers()
            found = next((work for work in answers if work.cause == heard), None)
            if found is not None and found.owner == self.owner(heard):
                return found.id, answers
            if heard in self.claimed or HOLDER.get():
                raise LeaseLost(f"another process answers, or has answered, the utterance at log row {heard}")
            if found is not None:
                await self._memory.store.release_work(self._memory.key, heard, found.owner, (self.slot,))
        except LeaseLost:
            raise
        except StorageError:  # a fault of the store must not prevent the answer
            pass
        return None

    async def _wait(self, heard: int) -> None:
        """Wait until the utterances before an utterance are answered. Do not wait for answers of dead processes.

        Args:
            heard: the log row of the utterance.
        """
        changed = Signal()
        with self._memory.store.subscribe(self._memory.key, changed.set), contextlib.suppress(StorageError):
            while any(self._is_before(work, heard) for work in await self._answers()):
                await changed.wait(POLL_S)
                changed.clear()

    def _is_before(self, work: Work, heard: int) -> bool:
        others = work.owner != self._owner and not work.is_open_to("", self._memory.clock.now())
        return work.cause < heard and (others or work.cause in self._on)


async def find_unanswered(store: Store, mind: StreamKey, work: Work) -> Logged | None:
    """Return the log row of the utterance that claimed work has to answer.

    If the utterance was answered, erased or cancelled, end the work and return None.
    """
    rows = await store.events(mind, work.cause - 1, [Heard.kind], 1)
    if rows and rows[0].seq == work.cause and work.error != STOPPED:
        said = [row.event async for row in read_log(store, mind, work.cause, [Said.kind])]
        if not any(isinstance(event, Said) and event.answers == work.cause for event in said):
            return rows[0]
    await store.release_work(mind, work.cause, work.owner, (work.slot,))
    return None


WRITES = 100
"""Maximum number of attempts to commit a result when other writers commit first."""
PAUSE_S = 60.0
"""Seconds of silence after which a slot processes a postponed utterance (`Background.defer`).

The silence begins when no answer is in progress.
"""
WRITING_S = 30.0
"""Timeout for building the entries of a result, in seconds."""

SpeakUp: TypeAlias = Callable[[RunContext, RunResult, Sequence[Entry]], Awaitable[Sequence[Entry]]]
"""A function that returns log entries to add to a reasoner's result.

Examples of such entries are a follow-up, and the judgement of a gate's decision.
"""


async def conclude(
    context: RunContext, run_result: RunResult, speak_up: SpeakUp, about: tuple[int, ...], finish: WorkDone | None
) -> list[Logged]:
    """Commit a reasoner's result; return the log rows that were written.

    Args:
        speak_up: returns log entries to add, such as a follow-up.
        about: the log rows that the run was about.
        finish: the end of the run's work, for the same commit; None: there is no work.

    Raises:
        LeaseLost: another process has taken over the work.
        Conflict: in each of WRITES attempts, another writer was first.
        StorageError, ForeignFailure, Overdue: the result could not be built or written.
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
            await asyncio.sleep(0)  # another writer was first: build the entries again from its version
    raise AssertionError("unreachable")


async def make_writing(context: RunContext, result: RunResult) -> Writing:
    """Return the log entries and record revisions of a result, based on the current beliefs; nothing is committed."""
    entries, slot = list[Entry](), context.slot
    if result.records:
        drafts = [draft if draft.by else replace(draft, by=slot) for draft in result.records]
        entries.append(Entry.remembered(await context.memory.build_records(drafts), slot))
    for each in result.beliefs:
        entry = await context.memory.revision(each.slot, each.patch, each.shape, evidence=each.evidence, by=slot)
        entries += [entry] if entry else []
    more, revisions = await result.write() if result.write else ((), ())
    return [*entries, *more], revisions


def _tainted(entry: Entry) -> Entry:
    """Return a log entry whose records are marked as based on third-party content."""
    marked = (replace(record, data={**record.data, TAINTED: True}) for record in entry.records)
    return replace(entry, records=tuple(marked))


async def silent(*_: object) -> Sequence[Entry]:
    """Return no log entries; the default of `Background(speak_up=…)`."""
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
    """Stop runs and answers that other owners (not in `ours`) hold; return their number.

    A run is stopped by recording its work as done. The work of an answer is only marked by STOPPED: the process that
    writes the answer then stops.

    Args:
        session: stop only work about this conversation; None: about any.
        slot: stop only work of this slot; None: of any.
        answers: whether to stop answers as well.
    """
    now, stopped, holder = clock.now(), 0, attrgetter("slot", "owner")
    held = [
        work
        for work in await store.open_work(mind)
        if work.owner not in ours and not work.is_open_to("", now) and slot in (None, work.slot)
        if answers or not work.slot.startswith(ANSWER)
        if await _is_of_talk(store, mind, work, session)
    ]
    for (name, owner), found in groupby(sorted(held, key=holder), holder):
        works = list(found)
        with contextlib.suppress(LeaseLost):  # the work has ended in the meantime
            stopped += await _stop(store, Commit(mind=mind, at=now), name, owner, works)
    return stopped


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
    """Return whether work is about an utterance of a session. If `session` is None, return whether it is about any
    utterance or a correction, or was caused by silence or a set time.

    Other work, such as that of a life, is stopped by other commands.
    """
    if work.cause < 0:
        return session is None
    found = await store.events(mind, work.cause - 1, limit=1)
    event = found[0].event if found and found[0].seq == work.cause else None
    if isinstance(event, Heard):
        return session in (None, event.session)
    return isinstance(event, Corrected) and session is None


LOG = logging.getLogger("mindstream.reasoners")
"""Logger of failed runs; without logging configuration, Python writes warnings to standard error."""
QUIET = 2
"""Maximum number of times that the poll interval of a slot without work is quadrupled."""


FORGOTTEN = "texts that the run had read were erased in the meantime"


class Background:
    """Run reasoners during a conversation, each in its slot.

    Args:
        speak_up: returns log entries to add to a reasoner's result, such as a follow-up.
        tools: tools for the runs, in addition to the reasoners' own.
        approve: decides about calls of tools that change the world (tools/call.py).
        lease_s: duration of a lease on work in seconds; a lease that is not renewed expires.
        retry_s: pause after the first failed run in seconds; each further pause is four times as long.
        session: the name of the conversation.
        thinks: whether the reasoners run in this process; otherwise their work is released for another process
            (`mindstream work`).
        owner: the name under which work is claimed; "": a new random one.

    Attributes:
        floor: a lock that is held while an answer is given. Results of reasoners are written when the lock is free.
            Therefore a belief does not change during an answer, and no follow-up interrupts an answer.

    Raises:
        InputError: a slot is used twice, a reasoner is invalid, or the duration of the lease is not above 0 or too
            long.
    """

    def __init__(
        self,
        memory: Memory,
        reasoners: Sequence[Reasoner] = (),
        speak_up: SpeakUp = silent,
        *,
        tools: Sequence[Tool] = (),
        approve: Approve = (),
        lease_s: float = 10.0,
        retry_s: float = 0.5,
        session: str = "",
        thinks: bool = True,
        owner: str = "",
    ) -> None:
        if not 0 < lease_s <= LONGEST_LEASE_S:
            raise InputError(f"lease_s must be above 0 and at most {LONGEST_LEASE_S:.0f} seconds, not {lease_s}")
        self.memory, self.owner, self.floor = memory, owner or chance.token(), asyncio.Lock()
        self._slots: dict[str, Slot] = {}
        self.add(*reasoners)
        self._speak_up, self._tools, self._thinks = speak_up, tools, thinks
        self._approve = approver(approve)
        self._lease_s, self._retry_s = lease_s, retry_s
        self._waiting = set[Signal]()
        """Signals of the callers that wait in `settled`."""
        self._held: set[int] = set()
        self._deferred: dict[int, str] = {}
        """Log rows of utterances that were postponed to the next run of a slot, each with the name of that slot."""
        self._pause: asyncio.TimerHandle | None = None
        self._hearing = 0
        self._over = False
        self.turns = Turns(memory, self.owner, f"{ANSWER}{session}", lease_s)
        self._releasing: set[asyncio.Task[None]] = set()

    def add(self, *reasoners: Reasoner) -> None:
        """Add reasoners; call it before `run`.

        Raises:
            InputError: a slot is used twice, or a reasoner is invalid.
        """
        for reasoner in map(checked_reasoner, reasoners):
            if reasoner.slot in self._slots:
                raise InputError(f"two reasoners use the slot {reasoner.slot!r}; give one of them another slot")
            self._slots[reasoner.slot] = Slot(reasoner)

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of the slots."""
        return tuple(self._slots)

    async def work(self) -> list[Work]:
        """Return the mind's open work for the reasoners of this runner, oldest first."""
        return [work for work in await self.memory.store.open_work(self.memory.key) if work.slot in self._slots]

    def cancel(self, slot: str | None = None) -> int:
        """Stop the runs of a slot, or of all slots, in this process; return their number.

        The work of a stopped run counts as done.
        """
        runs = [each.run for name, each in self._slots.items() if slot in (None, name)]
        return sum(run.thinking.stop() for run in runs if run and run.thinking)

    @contextlib.contextmanager
    def hearing(self) -> Iterator[None]:
        """Prevent claims while the block commits an utterance, so that `hold` can be called before the utterance is
        claimed."""
        self._hearing += 1
        try:
            yield
        finally:
            self._hearing -= 1

    def hold(self, heard: int) -> None:
        """Keep reasoners from processing an utterance (its log row) until it is released: the utterance is answered
        first."""
        self._held.add(heard)
        self.turns.claimed.add(heard)
        self._stop_pause()

    def claims(self, turn: Occurrence, besides: Sequence[str] = (), *, answered: bool = False) -> NewWork:
        """Return the work that an event causes: one item for each slot whose trigger fires.

        Args:
            besides: names of slots that get no item.
            answered: whether to add a work item for answering the utterance.
        """
        fired = [name for name, slot in self._slots.items() if slot.reasoner.trigger.fires(turn)]
        slots = tuple(name for name in fired if name not in besides)
        if answered:
            return NewWork((*slots, self.turns.slot), self.owner, self._lease())
        return NewWork(slots, self.owner, self._lease() if self._thinks else 0.0)

    def release(self, heard: int) -> None:
        """Let reasoners process an utterance (its log row) that was held. If the answer is neither committed nor in
        progress, end the work item for answering the utterance."""
        was_held = heard in self._held
        self._held.discard(heard)
        self.wake()
        self._start_pause()
        is_left = heard in self.turns.claimed and not self.turns.is_on(heard)
        if is_left or (was_held and not self._thinks):
            task = asyncio.ensure_future(self._release_work(heard))
            self._releasing.add(task)
            task.add_done_callback(self._releasing.discard)

    def deferral(self, heard: int, slot: str) -> WorkKept | None:
        """Return an extension of the lease on a slot's deferred work and on this utterance. The lease then lasts until
        the pause (PAUSE_S) that waits for a further utterance is over. The caller commits the extension with the
        answer, before it calls `defer`. None: other processes run the reasoners."""
        causes = (heard, *(cause for cause, name in self._deferred.items() if name == slot))
        lease = self.memory.clock.now() + min(LONGEST_LEASE_S, PAUSE_S + self._lease_s)
        return WorkKept(slot, causes, self.owner, lease) if self._thinks else None

    def defer(self, heard: int, slot: str) -> None:
        """Leave an utterance (its log row) for the next run of a slot; other slots may process it now.

        If a run of the slot is in progress, it claims the utterance between two of its steps. Otherwise the slot
        processes it together with the next utterance, after PAUSE_S seconds of silence, or when `resume` is called.
        """
        self.release(heard)
        self._deferred[heard] = slot
        self._start_pause()

    def _start_pause(self) -> None:
        """Start the timer after which deferred utterances are processed, unless an answer is in progress or due."""
        self._stop_pause()
        if self._deferred and not self._held:
            self._pause = asyncio.get_running_loop().call_later(PAUSE_S, self.resume)

    def _stop_pause(self) -> None:
        if self._pause:
            self._pause.cancel()

    def resume(self) -> None:
        """Let the slots process the utterances that were postponed to their next runs."""
        if self._deferred:
            self._deferred.clear()
            self.wake()

    async def _release_work(self, heard: int) -> None:
        """Release the reasoners' work on an utterance (its log row) that this process holds and has not started.

        Other processes can then do the work. The work item for answering the utterance is ended, not released. It stays
        if this process is answering the utterance, or will answer it after earlier utterances.
        """
        ended = () if self.turns.is_on(heard) else (self.turns.slot,)
        if ended:
            self.turns.claimed.discard(heard)
        with contextlib.suppress(StorageError):  # if this fails, the lease expires by itself
            await self.memory.store.release_work(self.memory.key, heard, self.owner, ended)

    def wake(self) -> None:
        """Let all slots look for work now, even those that pause because their model was unavailable. Idle times begin
        anew."""
        for slot in self._slots.values():
            if slot.outages:
                slot.due = None
            if (idle_s := slot.reasoner.trigger.idle_s) is not None:
                slot.silent_at = asyncio.get_running_loop().time() + idle_s
            slot.woken.set()

    async def run(self) -> None:
        """Run the reasoners until cancelled, then release unfinished work."""
        try:
            async with asyncio.TaskGroup() as group:
                for slot in self._slots.values():
                    task = self._serve(slot) if self._thinks else self._call_others(slot)
                    group.create_task(task, name=f"reasoner {slot.name}")
            await asyncio.get_running_loop().create_future()
        finally:
            self._over = True
            self._stop_pause()
            self._notify()
            await asyncio.gather(*self._releasing, return_exceptions=True)
            with contextlib.suppress(StorageError):
                await asyncio.shield(self.memory.store.give_up(self.owner))

    async def settled(
        self, upto: int | None = None, slots: Sequence[str] | None = None, ids: Sequence[int] | None = None
    ) -> None:
        """Wait until no work is open, or until waiting is pointless.

        Utterances that were postponed to a slot's next run (`defer`), in any conversation, are not waited for. Waiting
        is pointless if the store fails repeatedly, a model is unavailable, or the mind is closed. The method always
        returns, because runs have a timeout, and work that keeps failing is dead-lettered.

        Args:
            upto: consider only work about log rows up to this one; None: about any.
            slots: consider only work of these slots; None: of all.
            ids: consider only the work with these ids. Without ids, work that silence or a set time causes is ignored.
        """

        async def find_open() -> list[Work] | None:
            """Return the work that is waited for; None: unknown."""
            with contextlib.suppress(StorageError):  # if the failure lasts, the loop of a slot reports it
                work = [each for each in await self.work() if slots is None or each.slot in slots]
                work = [each for each in work if not self._slots[each.slot].is_waiting_out]
                if ids is not None:
                    return [each for each in work if each.id in ids]
                now = self.memory.clock.now()
                work = [each for each in work if not self._is_left(each, now)]
                return [each for each in work if each.cause > 0 and (upto is None or each.cause <= upto)]
            return None

        before = {name: slot.stuck for name, slot in self._slots.items()}

        def is_stuck() -> bool:
            return any(slot.stuck >= STUCK and slot.stuck != before[name] for name, slot in self._slots.items())

        changed = Signal()
        self._waiting.add(changed)
        try:
            with self.memory.store.subscribe(self.memory.key, changed.set):
                while not self._over and (work := await find_open()) != [] and not is_stuck():
                    is_ours = work is not None and all(each.running and each.owner == self.owner for each in work)
                    # this process is told when its own runs end; work that another process may do is checked more often
                    await changed.wait(self._lease_s / (4 if is_ours else 20))
                    changed.clear()
        finally:
            self._waiting.discard(changed)

    def _is_left(self, work: Work, now: Moment) -> bool:
        """Return whether this process or another one has postponed work to the next run of its slot."""
        return self._deferred.get(work.cause) == work.slot or (work.owner != self.owner and work.is_kept(now))

    def _notify(self) -> None:
        for changed in self._waiting:
            changed.set()

    async def _serve(self, slot: Slot) -> None:
        while True:
            try:
                while work := await self._claim(slot):
                    await self._think(slot, Run(work))
                    slot.stuck = 0
                    self._notify()
                slot.stuck = 0
                await self._rest(slot)
            except asyncio.CancelledError:
                if (task := asyncio.current_task()) is None or task.cancelling():
                    raise
                await self._get_stuck(slot, "the store cancelled the call")
            except Exception as error:  # noqa: BLE001 (nothing ends the runner: it retries after a pause)
                await self._get_stuck(slot, describe(error))

    async def _get_stuck(self, slot: Slot, why: str) -> None:
        slot.stuck += 1
        self.memory.show(Failed(text=why, where=slot.name))
        self._notify()
        await asyncio.sleep(min(self._retry_s * slot.stuck, self._lease_s / 3))

    async def _call_others(self, slot: Slot) -> None:
        """Create the work that silence or a set time causes, in a process that does not run the reasoners itself."""
        trigger = slot.reasoner.trigger
        while trigger.idle_s is not None or (trigger.at is not None and not trigger.each):
            slot.woken.clear()
            try:
                await self._rest(slot)
            except StorageError:
                await asyncio.sleep(self._lease_s / 3)
            trigger = slot.reasoner.trigger

    async def _rest(self, slot: Slot) -> None:
        """Wait until the slot is woken or its poll interval is over. If the interval is over, create the work that
        silence or a set time causes. At the time of a trigger with `each`, run the reasoner without creating work."""
        trigger, now_s = slot.reasoner.trigger, asyncio.get_running_loop().time()
        at = None if slot.hour == trigger.at and not trigger.each else trigger.at
        rest_s = self._lease_s / 3 * 4**slot.quiet
        if slot.due is not None:
            rest_s, at = max(0.0, slot.due - now_s), None
        else:
            rest_s = rest_s if at is None else min(rest_s, max(0.0, at - self.memory.clock.now()))
            rest_s = rest_s if slot.silent_at is None else min(rest_s, max(0.0, slot.silent_at - now_s))
        if not await slot.woken.wait(rest_s):
            if at is not None and self.memory.clock.now() >= at:
                await (self._think(slot, Run([])) if trigger.each else self._open(slot, hour(at)))
                slot.hour = at
            if slot.due is None and trigger.idle_s is not None:
                await self._use_silence(slot, trigger.on, trigger.idle_s)

    async def _use_silence(self, slot: Slot, on: Sequence[str], idle_s: float) -> None:
        """Create the work that silence causes, if no process has logged an event of the kinds in `on` for `idle_s`
        seconds.

        If the last such event is more recent, set the time of the next check. If there has been no such event, do
        nothing until the next utterance.
        """
        now_s, was_silent_at = asyncio.get_running_loop().time(), slot.silent_at
        if was_silent_at is None or now_s < was_silent_at:
            return
        rows = [await self.memory.store.last(self.memory.key, kind) for kind in on]
        newest = max((row for row in rows if row), key=lambda row: row.seq, default=None)
        left_s = newest.at + idle_s - self.memory.clock.now() if newest else 0.0
        if newest and left_s <= 0:
            await self._open(slot, silence_after(newest.seq))
        if slot.silent_at == was_silent_at:  # otherwise an utterance was heard in the meantime
            slot.silent_at = now_s + left_s if left_s > 0 else None

    async def _open(self, slot: Slot, occasion: int) -> None:
        lease = self._lease() if self._thinks else 0.0
        await self.memory.commit(wake=NewWork((slot.name,), self.owner, lease, occasion))

    async def _claim(self, slot: Slot) -> list[Work]:
        """Claim open work.

        If an item has failed before, or was claimed more than TRIES times, claim only the oldest item, so that no other
        item fails together with it.
        """
        slot.quiet = 1 if slot.woken.is_set() else min(slot.quiet + 1, QUIET)
        slot.woken.clear()  # a wake from here on causes another look
        if self._hearing or slot.is_resting:
            return []
        slot.due = None
        before = min(self._held, default=None)
        left, now = await self._unheld(slot), self.memory.clock.now()
        due = [each for each in left if self._deferred.get(each.cause) != slot.name]
        if not all(each.is_kept(now) for each in due):
            slot.quiet = 0  # poll often: another process may release this work
        ours = [each for each in left if each.is_open_to(self.owner, now)]
        ours = ours if any(each in due for each in ours) else []
        if self._hearing or before != min(self._held, default=None):  # an utterance came in the meantime
            return []
        if len(ours) > 1 and any(work.failures or work.attempts > TRIES for work in ours):
            # after a failure, claim only the oldest work, so that no other work fails with it
            before = sorted(work.cause for work in ours)[1]
        return await self._take(slot, before) if ours else []

    async def _unheld(self, slot: Slot) -> list[Work]:
        """Return a slot's open work, except work on the utterance that is about to be answered and on later ones."""
        before = min(self._held, default=None)
        return [
            work for work in await self.work() if work.slot == slot.name and (before is None or work.cause < before)
        ]

    def _newer(self, slot: Slot, run: Run) -> Newer:
        async def newer() -> Sequence[Utterance]:
            """Claim the newer utterances for this run and return them, except those that must first be answered."""
            known, now = set(run.ids), self.memory.clock.now
            if self._hearing or not any(
                w.is_open_to(self.owner, now()) and w.id not in known for w in await self._unheld(slot)
            ):
                return ()
            fresh = [each for each in await self._take(slot, min(self._held, default=None)) if each.id not in known]
            run.work.extend(fresh)
            return utterances_in(await rows_of(self.memory, fresh))

        return newer

    async def _think(self, slot: Slot, run: Run) -> None:
        """Run the reasoner of a slot. Commit its result, its failure, or the event that dead-letters the run's work."""
        slot.run = run
        outer = erasures.READING.set(None)
        try:
            erasures.READING.set(erasures.Reading(await self.memory.store.last_erasure()))  # before anything is read
            if any(work.attempts > CRASHES for work in run.work):
                await self._set_aside(slot, run.work, f"claimed {CRASHES} times, but the process died each time")
                return
            with renewing(self.memory.store, self.memory.clock, lambda: run.ids, self.owner, self._lease_s):
                context = await self._context(slot, run)
                await self._conclude(run, context, await self._conclusion(slot, run, context))
            slot.due, slot.outages = None, 0
        except Stopped:
            await self._finish_cancelled(slot, run)
        except Overdue:
            await self._fail(slot, run, f"{slot.name}: no result within {slot.reasoner.timeout_s:.0f} seconds")
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
            # break a reference cycle: `thinking` refers to the context, which refers to the run
            slot.run = run.thinking = None

    async def _read_again(self, run: Run, erased: ErasedMeanwhile) -> None:
        """Release the work of a run after texts that the run had read were erased. The work is then done again without
        these texts."""
        if run.work and not erased.whole:
            with contextlib.suppress(LeaseLost, ErasedMeanwhile):  # the work was erased together with the texts
                await self.memory.commit(put_back=WorkReleased(run.ids, self.owner, FORGOTTEN, counts=False))

    async def _tell(self, entries: Sequence[Entry], run: Run, put_back: WorkReleased | None) -> None:
        """Log a failure and release the work. If texts that the run had read were erased, only release the work."""
        try:
            await self.memory.commit(*entries, put_back=put_back)
        except ErasedMeanwhile as erased:
            await self._read_again(run, erased)

    async def _context(self, slot: Slot, run: Run) -> RunContext:
        rows = await rows_of(self.memory, run.work)
        context = await build_context(self.memory, slot.name, rows, self._newer(slot, run))
        return replace(context, tools=with_approval(self._tools, self._approve, lambda: bool(context.strangers)))

    async def _conclusion(self, slot: Slot, run: Run, context: RunContext) -> RunResult:
        with span(tracing.INVOKE_AGENT, slot.name, {tracing.AGENT: slot.name, tracing.CONVERSATION: context.session}):
            thinking = run.thinking = ForeignTask(lambda: slot.reasoner.think(context))

            def look(work: Sequence[Work]) -> None:
                """Stop the run if another process ended or took over its work; its result could not be committed."""
                if not set(run.ids) <= {each.id for each in work if each.owner == self.owner}:
                    thinking.stop()

            with calls_for(Cause(rows=run.about)), looking(self.memory, look):
                return await thinking.result(slot.reasoner.timeout_s)

    async def _conclude(self, run: Run, context: RunContext, run_result: RunResult) -> None:
        finish = WorkDone(run.ids, self.owner) if run.work else None
        if not run.about and not run_result.thought:  # the run was not caused by an event and found nothing
            if finish:
                await self.memory.commit(finish=finish)
            return
        async with self.floor:
            await conclude(context, run_result, self._speak_up, run.about, finish)

    async def _wait_out(self, slot: Slot, run: Run, outage: ModelError) -> None:
        """Release the work, and pause the slot because its model is unavailable; log this only once per outage.

        The run does not count as failed.
        """
        is_known = slot.outages > 0 or isinstance(outage, ModelResting)  # already logged
        reason = f"{slot.name}: {describe(outage)}"
        slot.outages += 1
        wished_s = getattr(outage, "rest_s", None) or getattr(outage, "retry_after_s", None) or 0.0
        slot.rest(min(MAX_REST_S, max(wished_s, self._retry_s * 2.0 ** min(slot.outages, 20))))
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

    async def _take(self, slot: Slot, before: int | None) -> list[Work]:
        key, now = self.memory.key, self.memory.clock.now()
        taken = await self.memory.store.claim(key, slot.name, self.owner, now, self._lease(), before)
        for each in taken:
            if self._deferred.get(each.cause) == slot.name:
                del self._deferred[each.cause]
        return taken

    def _lease(self) -> float:
        return self.memory.clock.now() + self._lease_s
