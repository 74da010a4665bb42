"""The background runner: beside a conversation, never lost, never twice, and ended by nothing that a run does.

Each slot has one loop: claim what is open, think, and write the conclusion in one commit with the end of the work. The
lease is held on to while it thinks; if the process dies, it runs out, and whoever is there next takes the work up.
Whatever a run raises is that run's failure: it is logged, tried a bounded number of times, and then set aside.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence

from mindstream import chance
from mindstream.errors import InputError, LeaseLost, StorageError
from mindstream.isolation import Broken, Isolated, Overdue, Stopped, describe
from mindstream.log.events import Failed, SetAside, Thought
from mindstream.log.work import LONGEST_LEASE_S, Work
from mindstream.memory.store import Entry, Finish, PutBack, Wake
from mindstream.memory.stream import Stream
from mindstream.reasoners.concluding import SpeakUp, conclude
from mindstream.reasoners.occasions import occasion_of, utterances_of
from mindstream.reasoners.reasoner import Conclusion, Occasion, Reasoner, Utterance
from mindstream.reasoners.run import CRASHES, STUCK, TRIES, Run, Slot
from mindstream.reasoners.trigger import Turn
from mindstream.tools.tool import Tool
from mindstream.tracing import span


class Background:
    """Runs reasoners beside a conversation.

    Args:
        floor: held while the Talker speaks; conclusions are written when it is free, so that a belief never changes
            in the middle of an answer and nobody speaks over another.
        tools: what runs may call, beside the reasoners' own.
        lease_s: how long work stays with a process that does not renew it.
        retry_s: how long work rests after the first run that failed; after the next, four times as long.

    Raises:
        InputError: two reasoners have one slot; a lease that is too long.
    """

    def __init__(
        self,
        stream: Stream,
        reasoners: Sequence[Reasoner],
        floor: asyncio.Lock,
        speak_up: SpeakUp,
        *,
        tools: Sequence[Tool] = (),
        lease_s: float = 10.0,
        retry_s: float = 0.5,
    ) -> None:
        if not 0 < lease_s <= LONGEST_LEASE_S:
            raise InputError(f"lease_s is a time in seconds, above 0 and at most {LONGEST_LEASE_S:.0f}, not {lease_s}")
        self.stream = stream
        self.owner = chance.token()
        self._slots: dict[str, Slot] = {}
        self.add(*reasoners)
        self._floor, self._tools = floor, tools
        self._speak_up = speak_up
        self._lease_s, self._retry_s = lease_s, retry_s
        self._moved = asyncio.Condition()
        self._held: set[int] = set()
        self._hearing = 0
        self._over = False

    def add(self, *reasoners: Reasoner) -> None:
        """Let more reasoners work; before `run`.

        Raises:
            InputError: two of them have one slot.
        """
        for reasoner in reasoners:
            if reasoner.slot in self._slots:
                raise InputError(f"two reasoners write the slot {reasoner.slot!r}: give one of them another")
            self._slots[reasoner.slot] = Slot(reasoner)

    @property
    def slots(self) -> tuple[str, ...]:
        """Name the slots that an utterance wakes."""
        return tuple(self._slots)

    def claims(self, turn: Turn, besides: Sequence[str] = ()) -> Wake:
        """Return the work that an utterance causes, some slots left out, leased to this process."""
        fired = [name for name, slot in self._slots.items() if slot.reasoner.trigger.fires(turn)]
        slots = tuple(name for name in fired if name not in besides)
        return Wake(slots, self.owner, self._lease())

    @contextlib.contextmanager
    def hearing(self) -> Iterator[None]:
        """Claim nothing while the block runs: what is being written down is to be held first."""
        self._hearing += 1
        try:
            yield
        finally:
            self._hearing -= 1

    def hold(self, heard: int) -> None:
        """Leave an utterance alone until it is released: the Talker is about to answer it."""
        self._held.add(heard)

    def release(self, heard: int) -> None:
        """Think about it now: about what was heard and, where the Talker has not waited, about what it said."""
        self._held.discard(heard)
        self.wake()

    def wake(self) -> None:
        """Look for work now."""
        for slot in self._slots.values():
            slot.idle_due = slot.reasoner.trigger.idle_s is not None
            slot.woken.set()

    async def run(self) -> None:
        """Work until cancelled; then let go of what was not finished."""
        try:
            async with asyncio.TaskGroup() as group:
                for slot in self._slots.values():
                    group.create_task(self._serve(slot), name=f"reasoner {slot.name}")
        finally:
            self._over = True
            await self._tell_moved()
            with contextlib.suppress(StorageError):
                await asyncio.shield(self.stream.store.give_up(self.owner))

    def work(self) -> list[Work]:
        """List what is open for this mind, oldest first."""
        return [work for work in self.stream.store.open_work(self.stream.name) if work.slot in self._slots]

    def cancel(self, slot: str | None = None) -> int:
        """Stop the runs that go on (of one slot, or all); return how many. What they were about counts as done."""
        runs = [each.run for name, each in self._slots.items() if slot in (None, name)]
        return sum(run.thinking.stop() for run in runs if run and run.thinking)

    async def settled(self, upto: int | None = None, slots: Sequence[str] | None = None) -> None:
        """Return when nothing is open up to that utterance; or when nothing can come of waiting.

        That is so when the store cannot be used, and when the mind is closed. It always comes: a run has a time limit,
        and what fails again and again is set aside.
        """

        def is_open() -> bool:
            with contextlib.suppress(StorageError):  # whether that is so for long, the slots will find out
                work = [each for each in self.work() if slots is None or each.slot in slots]
                return any(upto is None or each.cause <= upto for each in work)
            return True

        before = {name: slot.stuck for name, slot in self._slots.items()}

        def is_stuck() -> bool:
            return any(slot.stuck >= STUCK and slot.stuck != before[name] for name, slot in self._slots.items())

        async with self._moved:
            while not self._over and is_open() and not is_stuck():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._lease_s / 20):  # another process may be at it
                        await self._moved.wait()

    async def _tell_moved(self) -> None:
        async with self._moved:
            self._moved.notify_all()

    def _lease(self) -> float:
        return self.stream.clock.now() + self._lease_s

    async def _serve(self, slot: Slot) -> None:
        while True:
            try:
                while work := await self._claim(slot):
                    await self._think(slot, Run(work))
                    slot.stuck = 0
                    await self._tell_moved()
                slot.stuck = 0
                await self._rest(slot)
            except asyncio.CancelledError:
                if (task := asyncio.current_task()) is None or task.cancelling():
                    raise
                await self._get_stuck(slot, "the store broke off by itself")
            except Exception as error:  # noqa: BLE001 (nothing ends the runner: it rests and tries again)
                await self._get_stuck(slot, describe(error))

    async def _get_stuck(self, slot: Slot, why: str) -> None:
        slot.stuck += 1
        self.stream.show(Failed(text=why, where=slot.name))
        await self._tell_moved()
        await asyncio.sleep(min(self._retry_s * slot.stuck, self._lease_s / 3))

    async def _rest(self, slot: Slot) -> None:
        """Wait for a wake; look up now and then, for leases of the dead run out; use silence where the trigger says."""
        idle_s = slot.reasoner.trigger.idle_s if slot.idle_due else None
        rest_s = self._lease_s / 3 if idle_s is None else idle_s
        if slot.due is not None:
            rest_s, idle_s = max(0.0, slot.due - asyncio.get_running_loop().time()), None
        try:
            async with asyncio.timeout(rest_s):
                await slot.woken.wait()
        except TimeoutError:
            if idle_s is not None:
                slot.idle_due = False
                await self._think(slot, Run([]))
        slot.woken.clear()

    async def _claim(self, slot: Slot) -> list[Work]:
        """Take up what is open; where something has failed before, one by one, so that it stands in nobody's way."""
        if self._hearing or slot.is_resting:
            return []
        slot.due = None
        now = self.stream.clock.now()
        ours = [work for work in self._unheld(slot) if work.is_open_to(self.owner, now)]
        if not ours:
            return []
        before = min(self._held, default=None)
        if len(ours) > 1 and any(work.failures or work.attempts > TRIES for work in ours):
            before = ours[1].cause
        return await self._take(slot, before)

    def _unheld(self, slot: Slot) -> list[Work]:
        """Return a slot's open work; what is about to be answered, and all after it, waits for the answer."""
        before = min(self._held, default=None)
        return [work for work in self.work() if work.slot == slot.name and (before is None or work.cause < before)]

    async def _take(self, slot: Slot, before: int | None) -> list[Work]:
        name, now = self.stream.name, self.stream.clock.now()
        return await self.stream.store.claim(name, slot.name, self.owner, now, self._lease(), before)

    async def _think(self, slot: Slot, run: Run) -> None:
        """Think about it, and write what comes of it: a conclusion, a failure, or the end of trying."""
        slot.run = run
        try:
            if any(work.attempts > CRASHES for work in run.work):
                await self._set_aside(slot, run.work, f"taken up {CRASHES} times, and the process died each time")
                return
            with self._leased(run):
                occasion = self._occasion(slot, run)
                await self._conclude(run, occasion, await self._conclusion(slot, run, occasion))
            slot.due = None
        except Stopped:
            await self._finish_cancelled(slot, run)
        except Overdue:
            await self._fail(slot, run, f"{slot.name}: no conclusion within {slot.reasoner.patience_s:.0f} seconds")
        except Exception as error:  # noqa: BLE001 (whatever it is, it is the failure of this run and no more)
            cause = error.cause if isinstance(error, Broken) else error
            if not isinstance(cause, LeaseLost):  # else another process took it over; it is theirs to finish
                await self._fail(slot, run, f"{slot.name}: {error if isinstance(error, Broken) else describe(error)}")
        finally:
            slot.run = None

    def _occasion(self, slot: Slot, run: Run) -> Occasion:
        utterances = utterances_of(self.stream, run.work)

        async def newer() -> Sequence[Utterance]:
            """Steer the run: take up what was heard since and is not held for its answer."""
            known = set(run.ids)
            if self._hearing or not any(w.owner == self.owner and w.id not in known for w in self._unheld(slot)):
                return ()
            fresh = [each for each in await self._take(slot, min(self._held, default=None)) if each.id not in known]
            run.work.extend(fresh)
            heard = utterances_of(self.stream, fresh)
            utterances.extend(heard)
            return heard

        return occasion_of(self.stream, slot.name, utterances, newer, self._tools)

    async def _conclusion(self, slot: Slot, run: Run, occasion: Occasion) -> Conclusion:
        with span("invoke_agent", slot.name, agent_name=slot.name, conversation_id=occasion.session):
            run.thinking = Isolated(lambda: slot.reasoner.think(occasion))
            return await run.thinking.result(slot.reasoner.patience_s)

    async def _conclude(self, run: Run, occasion: Occasion, conclusion: Conclusion) -> None:
        finish = Finish(run.ids, self.owner) if run.work else None
        async with self._floor:
            await conclude(occasion, conclusion, self._speak_up, run.about, finish)

    async def _fail(self, slot: Slot, run: Run, reason: str) -> None:
        """Put the work back, to be tried again; what has failed often enough is set aside."""
        tired = [work for work in run.work if work.failures + 1 >= TRIES]
        again = [work for work in run.work if work.failures + 1 < TRIES]
        put_back = PutBack(tuple(work.id for work in again), self.owner, reason) if again else None
        if again:
            slot.rest(self._retry_s * 4 ** max(work.failures for work in again))
        if tired:
            await self._set_aside(slot, tired, reason, put_back)
        else:
            await self.stream.commit(Entry(Failed(text=reason, where=slot.name), slot.name), put_back=put_back)

    async def _set_aside(self, slot: Slot, work: Sequence[Work], reason: str, put_back: PutBack | None = None) -> None:
        about, attempts = tuple(each.cause for each in work), max(each.attempts for each in work)
        event = Entry(SetAside(slot=slot.name, about=about, reason=reason, attempts=attempts), slot.name)
        with contextlib.suppress(LeaseLost):
            finish = Finish(tuple(each.id for each in work), self.owner)
            await self.stream.commit(event, finish=finish, put_back=put_back)

    async def _finish_cancelled(self, slot: Slot, run: Run) -> None:
        thought = Thought(slot=slot.name, about=run.about, text="cancelled", model="")
        with contextlib.suppress(LeaseLost):
            finish = Finish(run.ids, self.owner) if run.work else None
            await self.stream.commit(Entry(thought, slot.name), finish=finish)

    @contextlib.contextmanager
    def _leased(self, run: Run) -> Iterator[None]:
        """Renew the lease while the block runs."""

        async def renew() -> None:
            while True:
                await asyncio.sleep(self._lease_s / 3)
                with contextlib.suppress(Exception):  # whether it is lost, the commit will say
                    await self.stream.store.renew(run.ids, self.owner, self._lease())

        renewing = asyncio.ensure_future(renew())
        try:
            yield
        finally:
            renewing.cancel()
