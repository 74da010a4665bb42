"""The background runner: beside a conversation, never lost, never twice.

Each slot has one loop: claim what is open, think, and write the conclusion in one commit with the end of the work. The
lease is held on to while it thinks; if the process dies, it runs out, and whoever is there next takes the work up.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from mindstream import chance
from mindstream.errors import Conflict, InputError, LeaseLost, ModelError, StorageError
from mindstream.log.events import Failed, Heard, Thought, Waiting
from mindstream.log.work import Work
from mindstream.memory.record import Record
from mindstream.memory.store import Entry, Finish, Wake
from mindstream.memory.stream import Stream
from mindstream.reasoners.reasoner import Conclusion, Occasion, Reasoner, Utterance
from mindstream.reasoners.trigger import Turn
from mindstream.tracing import span

SpeakUp = Callable[[Occasion, Conclusion, Sequence[Entry]], Awaitable[Sequence[Entry]]]
"""Adds to what a conclusion writes: whether the mind says more, unasked, and what became of a gate's decision."""


@dataclass
class _Slot:
    reasoner: Reasoner
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    idle_due: bool = False
    """Something was heard since it last used the silence."""
    scope: asyncio.Timeout | None = None
    """The run that is going on; rescheduling it to now cancels it."""
    cancelled: bool = False


class Background:
    """Runs reasoners beside a conversation.

    Args:
        floor: held while the Talker speaks; conclusions are written when it is free, so that a belief never changes
            in the middle of an answer and nobody speaks over another.
        lease_s: how long work stays with a process that does not renew it.
        remembered: how many records of the talk a reasoner is shown.
    """

    def __init__(
        self,
        stream: Stream,
        reasoners: Sequence[Reasoner],
        floor: asyncio.Lock,
        speak_up: SpeakUp,
        *,
        lease_s: float = 10.0,
        remembered: int = 40,
    ) -> None:
        self.stream = stream
        self.owner = chance.token()
        self._slots = {reasoner.slot: _Slot(reasoner) for reasoner in reasoners}
        self._floor = floor
        self._speak_up = speak_up
        self._lease_s, self._remembered = lease_s, remembered
        self._moved = asyncio.Condition()
        self._held: set[int] = set()
        self._hearing = 0
        self._failed: set[int] = set()
        """Work on which a run of this process failed; it waits for something new, or for the next start."""
        self._stuck = False
        """The store cannot be written: nothing can be settled until it can."""

    @property
    def slots(self) -> tuple[str, ...]:
        """Name the slots that an utterance wakes."""
        return tuple(self._slots)

    def claims(self, turn: Turn, besides: Sequence[str] = ()) -> Wake:
        """Return the work that an utterance causes, some slots left out, leased to this process."""
        fired = [name for name, slot in self._slots.items() if slot.reasoner.trigger.fires(turn)]
        slots = tuple(name for name in fired if name not in besides)
        return Wake(slots, self.owner, self.stream.clock.now() + self._lease_s)

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
                    group.create_task(self._serve(slot), name=f"reasoner {slot.reasoner.slot}")
        finally:
            with contextlib.suppress(StorageError):
                await asyncio.shield(self.stream.store.give_up(self.owner))

    def work(self) -> list[Work]:
        """List what is open for this mind, oldest first."""
        return [work for work in self.stream.store.open_work(self.stream.name) if work.slot in self._slots]

    def cancel(self, slot: str | None = None) -> int:
        """Stop the runs that go on (of one slot, or all); return how many. What they were about counts as done."""
        running = [s for name, s in self._slots.items() if s.scope is not None and slot in (None, name)]
        for each in running:
            each.cancelled = True
            assert each.scope is not None
            each.scope.reschedule(0)
        return len(running)

    async def settled(self, upto: int | None = None, slots: Sequence[str] | None = None) -> None:
        """Return when nothing is open up to that utterance that could still come to something now."""

        def open_() -> bool:
            return any(
                (upto is None or work.cause <= upto)
                and (slots is None or work.slot in slots)
                and not (work.id in self._failed and not work.running)
                for work in self.work()
            )

        async with self._moved:
            while open_() and not self._stuck:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._lease_s / 20):  # another process may be at it
                        await self._moved.wait()

    async def _serve(self, slot: _Slot) -> None:
        while True:
            try:
                while work := await self._claim(slot.reasoner.slot):
                    self._stuck = False
                    done = await self._think(slot, work)
                    async with self._moved:
                        self._moved.notify_all()
                    if not done:
                        break
            except StorageError as error:
                self._stuck = True
                self.stream.show(Failed(text=str(error), where=slot.reasoner.slot))
            await self._rest(slot)

    async def _rest(self, slot: _Slot) -> None:
        """Wait for a wake; look up now and then, for leases of the dead run out; use silence where the trigger says."""
        idle_s = slot.reasoner.trigger.idle_s if slot.idle_due else None
        try:
            async with asyncio.timeout(self._lease_s / 3 if idle_s is None else idle_s):
                await slot.woken.wait()
        except TimeoutError:
            if idle_s is not None:
                slot.idle_due = False
                await self._think(slot, ())
        slot.woken.clear()

    async def _claim(self, slot: str) -> list[Work]:
        """Take up what is open; what failed since the mind was opened only together with something new."""
        now = self.stream.clock.now()
        before = min(self._held, default=None)  # what is about to be answered waits for its answer
        ours = [
            work
            for work in self.work()
            if work.slot == slot
            and (work.owner == self.owner or work.lease <= now)
            and (before is None or work.cause < before)
        ]
        if self._hearing or all(work.id in self._failed for work in ours):
            return []
        return await self.stream.store.claim(self.stream.name, slot, self.owner, now, now + self._lease_s, before)

    async def _think(self, slot: _Slot, work: Sequence[Work]) -> bool:
        """Think about it; return False where it failed and is put back."""
        ids, name = [each.id for each in work], slot.reasoner.slot
        patience_s = slot.reasoner.patience_s
        slot.cancelled = False
        try:
            async with self._holding(ids), asyncio.timeout(patience_s) as slot.scope:
                occasion = self._occasion(name, work, ids)
                with span("invoke_agent", name, agent_name=name, conversation_id=occasion.session):
                    conclusion = await slot.reasoner.think(occasion)
                slot.scope.reschedule(None)
                await self._conclude(name, occasion, conclusion, ids)
            return True
        except LeaseLost:
            return True  # another process took it over; it is theirs to finish
        except TimeoutError:
            if slot.cancelled:
                await self._finish_cancelled(name, work)
                return True
            reason = f"{name}: no conclusion within {patience_s:.0f} seconds"
        except (ModelError, InputError, Conflict) as error:
            reason = f"{name}: {error}"
        finally:
            slot.scope = None
        await self.stream.commit(Entry(Failed(text=reason, where=name), name))
        self._failed.update(ids)
        await self.stream.store.release(ids, self.owner, reason)
        return False

    async def _conclude(self, slot: str, occasion: Occasion, conclusion: Conclusion, ids: Sequence[int]) -> None:
        about = [utterance.seq for utterance in occasion.utterances]
        thought = Thought(
            slot=slot, about=tuple(about), text=conclusion.thought, model=conclusion.model, words=conclusion.words,
            ask_next=conclusion.ask_next,
        )  # fmt: skip
        async with self._floor:
            while True:
                entries, revisions = await conclusion.write()
                more = await self._speak_up(occasion, conclusion, entries)
                try:
                    await self.stream.commit(
                        Entry(thought, slot),
                        *entries,
                        *more,
                        revisions=revisions,
                        finish=Finish(tuple(ids), self.owner) if ids else None,
                    )
                except LeaseLost:
                    raise
                except Conflict:
                    await asyncio.sleep(0)  # another writer was first: write against what it wrote
                    continue
                return

    async def _finish_cancelled(self, slot: str, work: Sequence[Work]) -> None:
        thought = Thought(slot=slot, about=tuple(each.cause for each in work), text="cancelled", model="")
        finish = Finish(tuple(each.id for each in work), self.owner)
        with contextlib.suppress(LeaseLost):
            await self.stream.commit(Entry(thought, slot), finish=finish)

    def _occasion(self, slot: str, work: Sequence[Work], ids: list[int]) -> Occasion:
        utterances = self._utterances(work)

        async def newer() -> Sequence[Utterance]:
            """Steer the run: claim what was heard since, and think about it in this run."""
            if not any(each.slot == slot and each.id not in ids and each.owner == self.owner for each in self.work()):
                return ()
            now = self.stream.clock.now()
            claimed = await self.stream.store.claim(self.stream.name, slot, self.owner, now, now + self._lease_s)
            fresh = [each for each in claimed if each.id not in ids]
            ids.extend(each.id for each in fresh)
            heard = self._utterances(fresh)
            utterances.extend(heard)
            return heard

        return Occasion(slot, self.stream, utterances, *self._talk(utterances), newer=newer)

    def _talk(self, utterances: Sequence[Utterance]) -> tuple[list[Record], str, bool]:
        """Return the talk before these utterances, the Talker's reply to the newest, and whether it waits instead."""
        if not utterances:
            return self.stream.latest("chat", self._remembered), "", False
        newest, own = utterances[-1], {utterance.record for utterance in utterances}
        talk = self.stream.latest("chat", self._remembered, episode=newest.session)
        before = [record for record in talk if record.id not in own and record.seq < newest.seq]
        reply = "\n".join(r.text for r in talk if r.seq > newest.seq and not r.data.get("by_user"))
        waiting = self.stream.store.events(self.stream.name, after=newest.seq, kinds=["waiting"], limit=20)
        waits = any(isinstance(row.event, Waiting) and row.event.answers == newest.seq for row in waiting)
        return before, reply, waits and not reply

    def _utterances(self, work: Sequence[Work]) -> list[Utterance]:
        utterances = []
        for each in work:
            for logged in self.stream.store.events(self.stream.name, after=each.cause - 1, kinds=["heard"], limit=1):
                if logged.seq == each.cause and isinstance(logged.event, Heard):
                    heard = logged.event
                    utterances.append(Utterance(logged.seq, heard.text, heard.record, heard.session, logged.at))
        return utterances

    @contextlib.asynccontextmanager
    async def _holding(self, ids: Sequence[int]) -> AsyncIterator[None]:
        """Renew the lease while the block runs."""

        async def renew() -> None:
            while True:
                await asyncio.sleep(self._lease_s / 3)
                with contextlib.suppress(StorageError):
                    await self.stream.store.renew(ids, self.owner, self.stream.clock.now() + self._lease_s)

        holding = asyncio.ensure_future(renew())
        try:
            yield
        finally:
            holding.cancel()
