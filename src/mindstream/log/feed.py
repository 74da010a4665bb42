"""Who wants to see events as they happen gets them here."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator

from mindstream.log.events import Logged

ROOM = 900
"""So many events wait for a listener that does not come; beyond, the oldest are dropped."""


class Feed:
    """Hands every event of this process to whoever listens; what is kept can be read again from the store.

    A listener that does not read holds up nobody and takes bounded memory: it loses the oldest events, and can tell by
    the gap in their seqs.
    """

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[Logged | None]] = set()
        self._subscribers: list[Callable[[Logged], None]] = []

    def publish(self, logged: Logged) -> None:
        """Hand an event to all listeners."""
        for told in self._subscribers:
            told(logged)
        for listener in self._listeners:
            _put(listener, logged)

    @contextlib.contextmanager
    def listening(self) -> Iterator[AsyncIterator[Logged]]:
        """Give the events from here on; leaving the block ends it."""
        listener: asyncio.Queue[Logged | None] = asyncio.Queue(ROOM)
        self._listeners.add(listener)
        try:
            yield _each(listener)
        finally:
            self._listeners.discard(listener)

    @contextlib.contextmanager
    def subscribe(self, told: Callable[[Logged], None]) -> Iterator[None]:
        """Call `told` with each event while the block lasts, where it happens: it must be quick, and not fail."""
        self._subscribers.append(told)
        try:
            yield
        finally:
            self._subscribers.remove(told)

    def close(self) -> None:
        """Tell all listeners that nothing more will come."""
        for listener in self._listeners:
            _put(listener, None)


def _put(listener: asyncio.Queue[Logged | None], logged: Logged | None) -> None:
    if listener.full():
        listener.get_nowait()
    listener.put_nowait(logged)


async def _each(listener: asyncio.Queue[Logged | None]) -> AsyncIterator[Logged]:
    while (logged := await listener.get()) is not None:
        yield logged
