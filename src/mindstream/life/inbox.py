"""A life's inbox: log rows that people and other processes write at any time."""

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
"""Poll interval for rows of other processes, in seconds."""


SimulatedUser: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Answers M2's questions in simulations; None: no answer."""


async def newest_from_outside(stream: Memory) -> int:
    """Return the newest log row of the kinds that others write; 0 if there is none."""
    found = [await stream.store.last(stream.key, kind) for kind in FROM_OUTSIDE]
    return max((row.seq for row in found if row is not None), default=0)


class Inbox:
    """Reads rows that others wrote, and waits for them."""

    def __init__(self, memory: Memory, state: LifeState, user: SimulatedUser | None = None) -> None:
        self._memory, self._state, self._user = memory, state, user
        self.written = 0
        """The newest row that this life has written itself."""
        self.pending: Callable[[], Sequence[Event]] = tuple
        """Events that the life has noted and not written yet."""
        self.reread = False
        """Words were erased, so the whole state was read again; a turn in progress must restart."""
        self._looked = 0
        self._changed: int | None = None

    async def put(self, question: Questioned) -> None:
        """Pass a question to the simulated user, if there is one; people read it in the log."""
        if self._user and question.shown and (answer := await self._user(question.tip)):
            await self._memory.commit(Entry(Answered(id=question.id, text=answer), self._memory.name))

    async def read(self) -> None:
        """Apply the rows of others; rows known to be read are skipped, however long the log is.

        If words were erased, by any process, the state is read again from the log.
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
                self._looked = max(self._looked, upto)  # all rows before our own were readable
                return

    async def _is_erased(self) -> bool:
        """Return whether words of this mind were erased since the last call; False at the first call."""
        is_first = self._changed is None
        changes = await self._memory.store.changes(self._memory.key, self._changed or 0, most=1)
        self._changed = changes.upto
        return bool(changes.gone) and not is_first

    async def wait(self, until: Moment | None, is_enough: Callable[[], bool]) -> None:
        """Return when a condition holds, or at that moment. A manual clock is moved there at once."""
        clock = self._memory.clock
        await self.read()
        while not is_enough() and (until is None or clock.now() < until):
            if isinstance(clock, ManualClock) and until is not None:
                clock.advance(until - clock.now())
            else:
                await self._pause(POLL_S if until is None else min(POLL_S, until - clock.now()))
            await self.read()

    async def _pause(self, seconds: float) -> None:
        """Wait, or until this process writes a row."""
        with self._memory.feed.listening() as events, contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                async for logged in events:
                    if logged.event.kind in FROM_OUTSIDE and not logged.system:
                        return
                await asyncio.sleep(seconds)
