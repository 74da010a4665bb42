"""An answer in a task of its own, and the caller that reads its events (the listener)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator

from mindstream.log.events import Logged
from mindstream.log.feed import Signal

GONE_S = 1.0
"""Seconds that an answer waits for its listener before it continues without waiting."""


class Exchange:
    """A queue between the task of an answer and its listener.

    The task waits until each piece was read, so that only the shown part of an interrupted answer is stored. It does
    not wait for a listener that stops reading, so that this delays no other answer.
    """

    def __init__(self) -> None:
        self._events: deque[Logged | None] = deque()
        self._more, self._all_taken = Signal(), Signal()
        self._untaken, self._is_gone = 0, False

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

    async def events(self, heard: Logged, turn: asyncio.Task[None]) -> AsyncGenerator[Logged]:
        """Yield the utterance and the events of its answer; closing the generator cancels the task.

        The last event is the one before `end`. An exception of the task is raised.
        """
        try:
            yield heard
            while (logged := await self._get()) is not None:
                yield logged
                self._taken()
            if not turn.cancelled():
                turn.result()
        finally:
            turn.cancel()
            await asyncio.wait({turn})

    async def _get(self) -> Logged | None:
        while not self._events:
            self._more.clear()
            await self._more.wait()
        return self._events.popleft()

    def _taken(self) -> None:
        self._is_gone = False
        self._untaken -= 1
        if not self._untaken:
            self._all_taken.set()
