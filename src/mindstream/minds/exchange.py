"""An answer in a task of its own, and the caller that reads its events (the listener)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from mindstream.log.events import Logged
from mindstream.log.feed import Signal

GONE_S = 1.0
"""Seconds that an answer waits for its listener before it continues without waiting."""


class Exchange:
    """A queue between the task of an answer and its listener, which iterates over it and closes it at the end.

    The task waits until each piece was read, so that only the shown part of an interrupted answer is stored. It does
    not wait for a listener that stops reading, so that this delays no other answer.
    """

    _turn: asyncio.Task[None]

    def __init__(self) -> None:
        self._events: deque[Logged | None] = deque()
        self._more, self._all_taken = Signal(), Signal()
        self._untaken, self._is_gone, self._is_read = 0, False, False

    def put(self, logged: Logged | None) -> None:
        """Add an event without waiting; None marks the end."""
        self._events.append(logged)
        self._untaken += 1
        self._more.set()
        self._all_taken.clear()

    async def show(self, logged: Logged) -> None:
        """Add an event, and wait until the listener has read it or is considered gone (after GONE_S)."""
        self.put(logged)
        if not self._is_gone:
            self._is_gone = not await self._all_taken.wait(GONE_S)

    def end(self, turn: asyncio.Task[None]) -> None:
        """Mark the end of the answer; call this when its task is done."""
        if not turn.cancelled():
            turn.exception()  # marks it as retrieved: the listener gets it, so asyncio must not report it
        self.put(None)

    def events(self, heard: Logged, turn: asyncio.Task[None]) -> Exchange:
        """Return the events for the listener: the utterance, then those of its answer until `end`."""
        self._turn = turn
        self.put(heard)
        return self

    def __aiter__(self) -> AsyncIterator[Logged]:
        return self

    async def __anext__(self) -> Logged:
        """Return the next event; at the end, raise the exception of the task if it has one."""
        if self._is_read:  # the listener has read an event, and asks for the next one
            self._is_gone = self._is_read = False
            self._untaken -= 1
            if not self._untaken:
                self._all_taken.set()
        while not self._events:
            self._more.clear()
            await self._more.wait()
        if (logged := self._events.popleft()) is None:
            if not self._turn.cancelled():
                self._turn.result()
            raise StopAsyncIteration
        self._is_read = True
        return logged

    async def aclose(self) -> None:
        """Cancel the task, unless it is done; the part of the answer that was shown is stored."""
        self._turn.cancel()
        await asyncio.wait({self._turn})
