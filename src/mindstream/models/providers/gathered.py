"""What an adapter's generator gives, a few pieces at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, aclosing

from mindstream.models.providers.adapter import Arrival, Arrivals, Delta

MOST = 256
"""So many arrivals at most are gathered; then the endpoint waits."""


class Gathered:
    """A generator's arrivals, in order, taken by a task of its own."""

    def __init__(self) -> None:
        self._came: list[Arrival] = []
        self._something, self._room, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._error: BaseException | None = None

    async def next(self, gap_s: float = 0.0) -> list[Arrival]:
        """Return what came within `gap_s` or is waited for, pieces of one kind joined; nothing at the end.

        Raises:
            BaseException: what the stream raised, behind what came before it.
        """
        if gap_s and not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(gap_s):
                    await self._ended.wait()
        await self._something.wait()
        got, self._came = joined(self._came), []
        self._room.set()
        if not self._ended.is_set():
            self._something.clear()
        if not got and self._error is not None:
            raise self._error
        return got

    async def take(self, stream: AsyncGenerator[Arrival]) -> None:
        """Take what a stream brings until it ends, and close it."""
        try:
            async with aclosing(stream):
                async for arrival in stream:
                    self._came.append(arrival)
                    self._something.set()
                    if len(self._came) >= MOST:
                        self._room.clear()
                        await self._room.wait()
        except BaseException as error:
            self._error = error
            if not isinstance(error, Exception):
                raise
        finally:
            self._ended.set()
            self._something.set()


@contextlib.asynccontextmanager
async def gathered(stream: AsyncGenerator[Arrival]) -> AsyncIterator[Gathered]:
    """Gather what a stream brings while the block runs; then close it."""
    of = Gathered()
    taking = asyncio.create_task(of.take(stream))
    try:
        yield of
    finally:
        taking.cancel()
        await asyncio.wait({taking})


async def one_by_one(coming: AbstractAsyncContextManager[Arrivals]) -> AsyncGenerator[Arrival]:
    """Give arrivals one at a time, as they come."""
    async with coming as arrivals:
        while came := await arrivals.next():
            for each in came:
                yield each


def joined(arrivals: Iterable[Arrival]) -> list[Arrival]:
    """Return arrivals with neighbouring pieces of one kind as one."""
    found: list[Arrival] = []
    for each in arrivals:
        last = found[-1] if found else None
        if isinstance(each, Delta) and isinstance(last, Delta) and each.of == last.of:
            found[-1] = Delta(each.of, last.text + each.text)
        else:
            found.append(each)
    return found
