"""What people and the world do to a life: rows of the log that others write, at any time, from any process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from mindstream import caches
from mindstream.clock import ManualClock, Moment
from mindstream.life.events import Answered, Questioned
from mindstream.life.state import FROM_OUTSIDE, LifeState, read_state
from mindstream.log.events import Event
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Entry

A_PAGE = 500
POLL_S = 0.5
"""How often it is looked whether another process wrote something."""


SimulatedUser: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Answers what M2 asks, in simulations; None: says nothing."""


async def newest_from_outside(stream: Memory) -> int:
    """Return the newest row of the kinds that others write; 0 where there is none."""
    found = [await stream.store.last(stream.key, kind) for kind in FROM_OUTSIDE]
    return max((row.seq for row in found if row is not None), default=0)


class Inbox:
    """Reads what others wrote, and waits for it."""

    def __init__(self, memory: Memory, state: LifeState, user: SimulatedUser | None = None) -> None:
        self._memory, self._state, self._user = memory, state, user
        self.written = 0
        """The newest row that this life has written itself."""
        self.pending: Callable[[], Sequence[Event]] = tuple
        """What the life has taken down and not written yet."""
        self.reread = False
        """Something was erased, so all that it is made of was read anew; whoever began before must begin again."""
        self._looked = 0
        self._changed: int | None = None

    async def put(self, question: Questioned) -> None:
        """Put a question to the simulated user, if there is one; people read it in the log."""
        if self._user and question.shown and (answer := await self._user(question.tip)):
            await self._memory.commit(Entry(Answered(id=question.id, text=answer), self._memory.name))

    async def read(self) -> None:
        """Take in what others wrote; what is known to be read is not looked through again, however long the log is.

        Where words were erased, by whatever process, the state is read anew from the log, which holds them no more.
        """
        if await self._is_erased():
            caches.empty(self._memory.key)
            fresh = await read_state(self._memory, hears=self._state.hears)
            for event in self.pending():
                fresh.apply(event, self._memory.clock.now())
            for name in LifeState.model_fields:
                setattr(self._state, name, getattr(fresh, name))
            self.reread = True
        while True:
            upto, after = self.written, max(self._looked, self._state.seen)
            rows = await self._memory.store.events(self._memory.key, after, FROM_OUTSIDE, A_PAGE)
            for row in rows:
                self._state.seen = row.seq
                if not row.system:
                    self._state.apply(row.event, row.at, row.seq)
            if len(rows) < A_PAGE:
                self._looked = max(self._looked, upto)  # whatever stands before our own row was there to be read
                return

    async def _is_erased(self) -> bool:
        """Tell whether words of this mind were erased since this was asked last; the first time they were not."""
        is_first = self._changed is None
        changes = await self._memory.store.changes(self._memory.key, self._changed or 0, most=1)
        self._changed = changes.upto
        return bool(changes.gone) and not is_first

    async def wait(self, until: Moment | None, is_enough: Callable[[], bool]) -> None:
        """Return when there is enough, or at that moment. A clock that is moved by hand is moved there at once."""
        clock = self._memory.clock
        await self.read()
        while not is_enough() and (until is None or clock.now() < until):
            if isinstance(clock, ManualClock) and until is not None:
                clock.advance(until - clock.now())
            else:
                await self._pause(POLL_S if until is None else min(POLL_S, until - clock.now()))
            await self.read()

    async def _pause(self, seconds: float) -> None:
        """Wait, or until something is written in this process."""
        with self._memory.feed.listening() as events, contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                async for logged in events:
                    if logged.event.kind in FROM_OUTSIDE and not logged.system:
                        return
                await asyncio.sleep(seconds)
