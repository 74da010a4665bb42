"""What comes from an endpoint, a few pieces at a time: to wake all that stands between it and a reader costs far more
than the words do."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing

from mindstream.models.providers.adapter import Arrival, Delta

GAP_S = 0.04
"""So long what follows is gathered: 25 times a second is smooth to the eye."""
AT_ONCE = 24
"""So many characters are passed on as they come: a first word is waited for."""
MOST = 256
"""So many arrivals at most are gathered; then the endpoint waits."""


class Gathered:
    """A stream's arrivals, in order: the first characters as they come, then what came within GAP_S together."""

    def __init__(self) -> None:
        self._came: list[Arrival] = []
        self._something, self._room, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._error: BaseException | None = None
        self._passed = 0

    async def next(self) -> list[Arrival]:
        """Return what came, pieces of one kind joined; nothing at the end.

        Raises:
            BaseException: what the stream raised, behind what came before it.
        """
        if self._passed > AT_ONCE and not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GAP_S):
                    await self._ended.wait()
        await self._something.wait()
        got, self._came = joined(self._came), []
        self._room.set()
        if not self._ended.is_set():
            self._something.clear()
        if not got and self._error is not None:
            raise self._error
        self._passed += sum(len(each.text) for each in got if isinstance(each, Delta))
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
