"""The feed: listeners receive events as they happen."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator

from mindstream.log.events import Logged

ROOM = 900
"""Maximum number of events that wait for one listener; if there are more, the oldest are dropped."""


class Signal:
    """A flag that one task waits for, with a timeout. Waiting takes half the time that it takes with `asyncio.Event`
    and `asyncio.timeout`."""

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: asyncio.Future[None] | None = None

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self._is_set

    def set(self) -> None:
        """Set the flag and wake the task that waits for it."""
        self._is_set = True
        _ring(self._waiting)

    def clear(self) -> None:
        """Clear the flag, so that the next `wait` waits."""
        self._is_set = False

    async def wait(self, within_s: float | None = None) -> bool:
        """Wait until the flag is set, at most `within_s` seconds; return whether it is set."""
        if not self._is_set:
            loop = asyncio.get_running_loop()
            self._waiting = loop.create_future()
            timer = None if within_s is None else loop.call_later(within_s, _ring, self._waiting)
            try:
                await self._waiting
            finally:
                self._waiting = None
                if timer is not None:
                    timer.cancel()
        return self._is_set


def _ring(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


class Feed:
    """Passes every event of this process to listeners; stored events can also be read from the store.

    A listener that does not read delays no other listener and uses bounded memory: it loses the oldest events, and then
    finds a gap in the numbers (`seq`) of the events.
    """

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[Logged | None]] = set()
        self._subscribers: list[Callable[[Logged], None]] = []

    def publish(self, logged: Logged) -> None:
        """Pass an event to all listeners and subscribers."""
        for told in self._subscribers:
            told(logged)
        for listener in self._listeners:
            _put(listener, logged)

    @contextlib.contextmanager
    def listening(self) -> Iterator[AsyncIterator[Logged]]:
        """Yield an iterator over the events that are published while the block runs."""
        listener: asyncio.Queue[Logged | None] = asyncio.Queue(ROOM)
        self._listeners.add(listener)
        try:
            yield _each(listener)
        finally:
            self._listeners.discard(listener)

    @contextlib.contextmanager
    def subscribe(self, told: Callable[[Logged], None]) -> Iterator[None]:
        """Call `told` with each event, synchronously, until the block ends; `told` must be fast and must not raise."""
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
