"""The event loop of a mind: a mind's tasks, locks and connections belong to the event loop on which it was opened.

A call from another loop (a web request, a Celery task, Streamlit) is run on this home loop. If the home loop is not
running, a thread runs it until the call has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import aclosing
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from mindstream.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")
START_S = 5.0
"""Timeout for a thread to start running a loop, in seconds."""


class HomeLoop:
    """The event loop that an object is bound to (its home loop)."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._guests = 0
        self._thread: threading.Thread | None = None
        self._changing = threading.Lock()

    def is_here(self) -> bool:
        """Return whether the caller runs on this loop."""
        return asyncio.get_running_loop() is self._loop

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on this loop for a caller on another loop; cancelling the caller cancels the coroutine.

        Raises:
            InputError: the loop is closed.
        """
        try:
            with self._running():
                return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))
        finally:
            work.close()  # if the coroutine never started, Python would warn

    async def iterate(self, items: AsyncGenerator[T]) -> AsyncGenerator[T]:
        """Yield the items of a generator that runs on this loop; closing the returned generator closes `items`."""
        here = asyncio.get_running_loop()
        queue = asyncio.Queue[list[T]]()

        async def pump() -> None:
            async with aclosing(items):
                async for item in items:
                    here.call_soon_threadsafe(queue.put_nowait, [item])

        with self._running():
            pumping = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(pump(), self._loop))
            pumping.add_done_callback(lambda _: queue.put_nowait([]))
            try:
                while got := await queue.get():
                    yield got[0]
                await pumping
            finally:
                pumping.cancel()
                await asyncio.gather(pumping, return_exceptions=True)

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Keep the loop running until the block ends."""
        with self._changing:
            if self._loop.is_closed():
                raise InputError(
                    "this mind was opened on an event loop that is closed; open the mind on the loop that calls it, "
                    "or use one loop for all calls (mindstream.adapters.loop runs one in a thread)"
                )
            self._guests += 1
            if not self._loop.is_running():
                self._start()
        try:
            yield
        finally:
            with self._changing:
                self._guests -= 1
                thread = self._thread
                if thread is not None and not self._guests:
                    self._loop.call_soon_threadsafe(self._loop.stop)
                    thread.join()
                    self._thread = None

    def _start(self) -> None:
        """Start a thread that runs the loop; return when the loop is running, or after START_S seconds."""
        begun = threading.Event()
        self._loop.call_soon_threadsafe(begun.set)
        self._thread = threading.Thread(target=self._loop.run_forever, name="mindstream home loop", daemon=True)
        self._thread.start()
        begun.wait(START_S)


class _AtHome(Protocol):
    home: HomeLoop


S = TypeVar("S", bound=_AtHome)


def at_home(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Decorate a coroutine method so that it runs on its object's home loop."""

    @wraps(method)
    async def carried(self: S, /, *args: P.args, **more: P.kwargs) -> T:
        work = method(self, *args, **more)
        return await (work if self.home.is_here() else self.home.call(work))

    return carried


def streamed_at_home(
    method: Callable[Concatenate[S, P], AsyncGenerator[T]],
) -> Callable[Concatenate[S, P], AsyncGenerator[T]]:
    """Decorate an async generator method so that it runs on its object's home loop."""

    @wraps(method)
    def carried(self: S, /, *args: P.args, **more: P.kwargs) -> AsyncGenerator[T]:
        items = method(self, *args, **more)
        try:
            return items if self.home.is_here() else self.home.iterate(items)
        except RuntimeError:  # no loop runs yet: decide when the first item is requested
            return _later(self.home, items)

    return carried


async def _later(home: HomeLoop, items: AsyncGenerator[T]) -> AsyncGenerator[T]:
    coming = items if home.is_here() else home.iterate(items)
    async with aclosing(coming):
        async for item in coming:
            yield item
