"""From a turn to whoever listens to it: event by event, in step, and without waiting for a listener that has gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from mindstream.log.events import Logged

GONE_S = 1.0
"""A listener that does not come back for so long holds up nobody: the turn goes on without it."""
AT_ONCE = 3
"""Number of rounds of the event loop in which a listener may take an event before it is waited for with a timeout."""


class Exchange:
    """Hands events over.

    The turn waits until each piece was taken: an answer that is broken off is remembered as far as it was shown.
    """

    def __init__(self) -> None:
        self._events: asyncio.Queue[Logged | None] = asyncio.Queue()
        self._open = 0
        self._free = asyncio.Event()
        self._free.set()
        self._gone = False

    def put(self, logged: Logged) -> None:
        """Hand an event over without waiting."""
        self._open += 1
        self._free.clear()
        self._events.put_nowait(logged)

    async def show(self, logged: Logged) -> None:
        """Hand an event over and return when it was taken, or when nobody comes to take it."""
        self.put(logged)
        if self._gone:
            return
        for _ in range(AT_ONCE):  # mostly it is taken at once: then no timer is needed
            await asyncio.sleep(0)
            if self._free.is_set():
                return
        try:
            async with asyncio.timeout(GONE_S):
                await self._free.wait()
        except TimeoutError:
            self._gone = True

    def close(self) -> None:
        """Say that nothing more will come."""
        self._events.put_nowait(None)

    async def events(self) -> AsyncGenerator[Logged]:
        """Give the events until the exchange is closed."""
        while (logged := await self._events.get()) is not None:
            yield logged
            self._gone = False
            self._open -= 1
            if not self._open:
                self._free.set()
