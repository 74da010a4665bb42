"""The inbox of a life: it reads the log rows that people and other processes write at any time."""

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
"""Maximum number of log rows that are read at once."""

POLL_S = 0.5
"""Poll interval for rows of other processes, in seconds."""


SimulatedUser: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Answers M2's questions in simulations; None: no answer."""


async def newest_from_outside(stream: Memory) -> int:
    """Return the number of the newest log row of the kinds in FROM_OUTSIDE; 0 if there is none."""
    found = [await stream.store.last(stream.key, kind) for kind in FROM_OUTSIDE]
    return max((row.seq for row in found if row is not None), default=0)


class Inbox:
    """Read log rows that people and other processes write, and wait for them."""

    def __init__(self, memory: Memory, state: LifeState, user: SimulatedUser | None = None) -> None:
        self._memory, self._state, self._user = memory, state, user
        self.written = 0
        """The newest log row that this life has written itself."""
        self.pending: Callable[[], Sequence[Event]] = tuple
        """Returns the events that the life has applied to its state but not written yet."""
        self.reread = False
        """Whether texts were erased, so that the whole state was read again; a turn in progress must then restart."""
        self._looked = 0
        self._changed: int | None = None

    async def put(self, question: Questioned) -> None:
        """Pass a question to the simulated user, if there is one. (Real users read the question from the log.)"""
        if self._user and question.shown and (answer := await self._user(question.tip)):
            await self._memory.commit(Entry(Answered(id=question.id, text=answer), self._memory.name))

    async def read(self) -> None:
        """Apply new rows of people and other processes to the state.

        If texts were erased, by any process, the whole state is read from the log again.
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
        """Return whether texts of this mind were erased since the last call; False at the first call."""
        is_first = self._changed is None
        changes = await self._memory.store.changes(self._memory.key, self._changed or 0, most=1)
        self._changed = changes.upto
        return bool(changes.gone) and not is_first

    async def wait(self, until: Moment | None, is_enough: Callable[[], bool]) -> None:
        """Wait until a condition holds or a time is reached; a manual clock is set to that time at once."""
        clock = self._memory.clock
        await self.read()
        while not is_enough() and (until is None or clock.now() < until):
            if isinstance(clock, ManualClock) and until is not None:
                clock.advance(until - clock.now())
            else:
                await self._pause(POLL_S if until is None else min(POLL_S, until - clock.now()))
            await self.read()

    async def _pause(self, seconds: float) -> None:
        """Wait for some seconds, or until this process writes a row of the kinds in FROM_OUTSIDE."""
        with self._memory.feed.listening() as events, contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                async for logged in events:
                    if logged.event.kind in FROM_OUTSIDE and not logged.system:
                        return
                await asyncio.sleep(seconds)
