"""The background runner: runs reasoners next to a conversation, with leases so that no work is lost or done twice.

Each slot has one loop: claim open work, think, and commit the conclusion together with the end of the work. The lease
is renewed during the run; if the process dies, the lease expires and another process claims the work. A failing run is
logged, retried a bounded number of times, and then dead-lettered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from mindstream.errors import StorageError
from mindstream.foreign_code import describe
from mindstream.log.events import Failed
from mindstream.log.work import ANSWER, Work, hour, silence_after
from mindstream.memory.store.store import NewWork
from mindstream.reasoners.reasoner import STUCK, Newer, Occurrence, Run, Slot, Utterance, rows_of, utterances_in
from mindstream.reasoners.runner import Runner
from mindstream.reasoners.turns import Turns

QUIET = 4
"""Maximum number of times that the poll interval of an idle slot is doubled."""


class Background(Runner):
    """Runs reasoners next to a conversation.

    Args:
        session: the conversation.
        thinks: run the reasoners here; otherwise their work is released for another process (`mindstream work`).
    """

    def __init__(self, *args: Any, session: str = "", thinks: bool = True, **more: Any) -> None:
        super().__init__(*args, **more)
        self._waiting = set[asyncio.Event]()
        """Callers of `settled`, to be notified of changes."""
        self._held: set[int] = set()
        self._hearing = 0
        self._over = False
        self._thinks = thinks
        self.turns = Turns(self.memory, self.owner, f"{ANSWER}{session}", self._lease_s)
        self._letting_go: set[asyncio.Task[None]] = set()

    @contextlib.contextmanager
    def hearing(self) -> Iterator[None]:
        """Claim nothing while the block runs: the utterance being committed must be held first."""
        self._hearing += 1
        try:
            yield
        finally:
            self._hearing -= 1

    def hold(self, heard: int) -> None:
        """Do not think about an utterance until it is released, because the Talker answers it first."""
        self._held.add(heard)
        self.turns.claimed.add(heard)

    def claims(self, turn: Occurrence, besides: Sequence[str] = (), *, answered: bool = False) -> NewWork:
        """Return the work that an utterance causes; `answered`: its answer is work, too."""
        work = super().claims(turn, besides)
        if answered:
            return replace(work, slots=(*work.slots, self.turns.slot))
        return work if self._thinks else replace(work, lease=0.0)

    def release(self, heard: int) -> None:
        """Think about an utterance now, and about its answer if the Talker has spoken already."""
        was_held = heard in self._held
        self._held.discard(heard)
        self.wake()
        is_left = heard in self.turns.claimed and not self.turns.is_on(heard)
        if is_left or (was_held and not self._thinks):
            task = asyncio.ensure_future(self._let_go(heard))
            self._letting_go.add(task)
            task.add_done_callback(self._letting_go.discard)

    async def _let_go(self, heard: int) -> None:
        """Release the work on an utterance for other processes; its answer ends unless it is waiting for its turn
        here."""
        ended = () if self.turns.is_on(heard) else (self.turns.slot,)
        if ended:
            self.turns.claimed.discard(heard)
        with contextlib.suppress(StorageError):  # else the lease runs out by itself
            await self.memory.store.let_go(self.memory.key, heard, self.owner, ended)

    def wake(self) -> None:
        """Look for work now, even if a model was unavailable a moment ago."""
        for slot in self._slots.values():
            if slot.outages:
                slot.due = None
            if (idle_s := slot.reasoner.trigger.idle_s) is not None:
                slot.silent_at = asyncio.get_running_loop().time() + idle_s
            slot.woken.set()

    async def run(self) -> None:
        """Work until cancelled, then release unfinished work."""
        try:
            async with asyncio.TaskGroup() as group:
                for slot in self._slots.values():
                    task = self._serve(slot) if self._thinks else self._call_others(slot)
                    group.create_task(task, name=f"reasoner {slot.name}")
            await asyncio.get_running_loop().create_future()
        finally:
            self._over = True
            self._notify()
            await asyncio.gather(*self._letting_go, return_exceptions=True)
            with contextlib.suppress(StorageError):
                await asyncio.shield(self.memory.store.give_up(self.owner))

    async def settled(
        self, upto: int | None = None, slots: Sequence[str] | None = None, ids: Sequence[int] | None = None
    ) -> None:
        """Return when no work is open (up to an utterance, of some slots, or of these ids), or when waiting is
        pointless.

        Waiting is pointless if the store fails repeatedly, a model is unavailable, or the mind is closed. It always
        returns:
        runs have a timeout, and work that keeps failing is dead-lettered. Work that silence or an hour causes is only
        waited
        for if named by id.
        """

        async def is_open() -> bool:
            with contextlib.suppress(StorageError):  # a slot's loop reports a lasting failure
                work = [each for each in await self.work() if slots is None or each.slot in slots]
                work = [each for each in work if not self._slots[each.slot].is_waiting_out]
                if ids is not None:
                    return any(each.id in ids for each in work)
                return any(each.cause > 0 and (upto is None or each.cause <= upto) for each in work)
            return True

        before = {name: slot.stuck for name, slot in self._slots.items()}

        def is_stuck() -> bool:
            return any(slot.stuck >= STUCK and slot.stuck != before[name] for name, slot in self._slots.items())

        changed = asyncio.Event()
        self._waiting.add(changed)
        try:
            with self.memory.store.heeding(self.memory.key, changed.set):
                while not self._over and await is_open() and not is_stuck():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self._lease_s / 20):  # another process may do the work
                            await changed.wait()
                    changed.clear()
        finally:
            self._waiting.discard(changed)

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
        """Open the work that silence or an hour causes, for other processes."""
        trigger = slot.reasoner.trigger
        while trigger.idle_s is not None or (trigger.at is not None and not trigger.each):
            slot.woken.clear()
            try:
                await self._rest(slot)
            except StorageError:
                await asyncio.sleep(self._lease_s / 3)
            trigger = slot.reasoner.trigger

    async def _rest(self, slot: Slot) -> None:
        """Wait until woken or until the poll interval is over; then open the work that silence or an hour causes."""
        trigger, now_s = slot.reasoner.trigger, asyncio.get_running_loop().time()
        at = None if slot.hour == trigger.at and not trigger.each else trigger.at
        rest_s = self._lease_s / 3 * 2**slot.quiet
        if slot.due is not None:
            rest_s, at = max(0.0, slot.due - now_s), None
        else:
            rest_s = rest_s if at is None else min(rest_s, max(0.0, at - self.memory.clock.now()))
            rest_s = rest_s if slot.silent_at is None else min(rest_s, max(0.0, slot.silent_at - now_s))
        try:
            async with asyncio.timeout(rest_s):
                await slot.woken.wait()
        except TimeoutError:
            if at is not None and self.memory.clock.now() >= at:
                await (self._think(slot, Run([])) if trigger.each else self._open(slot, hour(at)))
                slot.hour = at
            if slot.due is None and trigger.idle_s is not None:
                await self._use_silence(slot, trigger.on, trigger.idle_s)

    async def _use_silence(self, slot: Slot, on: Sequence[str], idle_s: float) -> None:
        """Open the work that silence causes if no process heard anything for that long; otherwise check again later."""
        now_s, was_silent_at = asyncio.get_running_loop().time(), slot.silent_at
        if was_silent_at is None or now_s < was_silent_at:
            return
        rows = [await self.memory.store.last(self.memory.key, kind) for kind in on]
        newest = max((row for row in rows if row), key=lambda row: row.seq, default=None)
        left_s = newest.at + idle_s - self.memory.clock.now() if newest else 0.0
        if newest and left_s <= 0:
            await self._open(slot, silence_after(newest.seq))
        if slot.silent_at == was_silent_at:  # else an utterance was heard in between
            slot.silent_at = now_s + left_s if left_s > 0 else None

    async def _open(self, slot: Slot, occasion: int) -> None:
        lease = self._lease() if self._thinks else 0.0
        await self.memory.commit(wake=NewWork((slot.name,), self.owner, lease, occasion))

    async def _claim(self, slot: Slot) -> list[Work]:
        """Claim open work; after a failure one item at a time, so that it blocks no other."""
        slot.quiet = 0 if slot.woken.is_set() else min(slot.quiet + 1, QUIET)
        slot.woken.clear()  # a wake from here on causes another look
        if self._hearing or slot.is_resting:
            return []
        slot.due = None
        before = min(self._held, default=None)
        left, now = await self._unheld(slot), self.memory.clock.now()
        slot.quiet = 0 if left else slot.quiet  # another process may release the work that it holds
        ours = [work for work in left if work.is_open_to(self.owner, now)]
        if self._hearing or before != min(self._held, default=None):  # an utterance came during the look
            return []
        return await self._take(slot, self._one_by_one(ours) or before) if ours else []

    async def _unheld(self, slot: Slot) -> list[Work]:
        """Return a slot's open work, except for the utterance that is about to be answered and all later ones."""
        before = min(self._held, default=None)
        return [
            work for work in await self.work() if work.slot == slot.name and (before is None or work.cause < before)
        ]

    def _newer(self, slot: Slot, run: Run) -> Newer:
        async def newer() -> Sequence[Utterance]:
            """Steer the run: claim the utterances heard since, except those held for their answers."""
            known, now = set(run.ids), self.memory.clock.now
            if self._hearing or not any(
                w.is_open_to(self.owner, now()) and w.id not in known for w in await self._unheld(slot)
            ):
                return ()
            fresh = [each for each in await self._take(slot, min(self._held, default=None)) if each.id not in known]
            run.work.extend(fresh)
            return utterances_in(await rows_of(self.memory, fresh))

        return newer
