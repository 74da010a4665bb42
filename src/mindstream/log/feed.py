"""The feed: listeners receive events as they happen."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator

from mindstream.log.events import Logged

ROOM = 900
"""Maximum number of events that wait for a listener; then the oldest are dropped."""


class Feed:
    """Passes every event of this process to listeners; stored events can also be read from the store.

    A listener that does not read blocks no other one and uses bounded memory: it loses the oldest events, and can
    detect it
    by the gap in their seqs.
    """

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[Logged | None]] = set()
        self._subscribers: list[Callable[[Logged], None]] = []

    def publish(self, logged: Logged) -> None:
        """Pass an event to all listeners."""
        for told in self._subscribers:
            told(logged)
        for listener in self._listeners:
            _put(listener, logged)

    @contextlib.contextmanager
    def listening(self) -> Iterator[AsyncIterator[Logged]]:
        """Return the events from now on, until the block ends."""
        listener: asyncio.Queue[Logged | None] = asyncio.Queue(ROOM)
        self._listeners.add(listener)
        try:
            yield _each(listener)
        finally:
            self._listeners.discard(listener)

    @contextlib.contextmanager
    def subscribe(self, told: Callable[[Logged], None]) -> Iterator[None]:
        """Call `told` with each event, synchronously, until the block ends: it must be fast, and not fail."""
        self._subscribers.append(told)
        try:
            yield
        finally:
            self._subscribers.remove(told)

    def close(self) -> None:
        """End all listeners' iterations."""
        for listener in self._listeners:
            _put(listener, None)


def _put(listener: asyncio.Queue[Logged | None], logged: Logged | None) -> None:
    if listener.full():
        listener.get_nowait()
    listener.put_nowait(logged)


async def _each(listener: asyncio.Queue[Logged | None]) -> AsyncIterator[Logged]:
    while (logged := await listener.get()) is not None:
        yield logged
