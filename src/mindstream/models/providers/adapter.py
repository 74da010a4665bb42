"""The protocol `Adapter` between a provider and a client library, and the types of data that an endpoint sends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from mindstream.models.model import Call, Distribution, Logprobs, Request, TextLogprobs, Usage

MAX_GATHERED = 256
"""Maximum number of arrivals that are buffered; at this number, reading from the endpoint pauses."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of text: of the reply, of the model's thoughts before it, or of a call's arguments."""

    of: Literal["reply", "thought", "arguments"]
    text: str


@dataclass(frozen=True, slots=True)
class Withheld:
    """The endpoint refuses to answer, with its reason; `filtered`: a content filter refused, not the model itself."""

    why: str
    filtered: bool = False


@dataclass(frozen=True, slots=True)
class Truncated:
    """The reply was cut off at the endpoint's token limit."""


Arrival: TypeAlias = Delta | Call | Logprobs | TextLogprobs | Distribution | Usage | Withheld | Truncated
"""One piece of data from an endpoint. A `Call` is complete; before it, its arguments arrive as `Delta` for counting."""


class Arrivals(Protocol):
    """The reply of an endpoint to one request."""

    async def next(self, gap_s: float = 0.0) -> Sequence[Arrival]:
        """Wait for arrivals and return all of them in order; an empty sequence means that the reply is complete.

        A caller may cancel this method and call it again; no arrival is lost.

        Args:
            gap_s: seconds for which further arrivals are gathered, unless the reply ends. This saves CPU: waking all
                tasks between the endpoint and the reader costs far more than handling the text.

        Raises:
            ModelError: see `failures`; raised only after everything that arrived before it was returned.
        """


class Adapter(Protocol):
    """A client of one endpoint. Connections belong to one event loop, and so does an adapter."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[Arrivals]:
        """Send a request; its reply can be read inside the block. A request that fails is not repeated."""

    async def aclose(self) -> None:
        """Close idle connections."""


class Gathered:
    """Buffers the arrivals of a generator, which a separate task reads (see `gathered`)."""

    def __init__(self) -> None:
        self._came: list[Arrival] = []
        self._something, self._room, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._error: BaseException | None = None

    async def next(self, gap_s: float = 0.0) -> list[Arrival]:
        """See `Arrivals.next`; raises the generator's error after everything that arrived before it."""
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
        """Read a generator until it ends, and close it."""
        try:
            async with aclosing(stream):
                async for arrival in stream:
                    self._came.append(arrival)
                    self._something.set()
                    if len(self._came) >= MAX_GATHERED:
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
    """Gather a generator's arrivals while the block runs; then close it."""
    arrivals = Gathered()
    task = asyncio.create_task(arrivals.take(stream))
    try:
        yield arrivals
    finally:
        task.cancel()
        await asyncio.wait({task})


async def one_by_one(coming: AbstractAsyncContextManager[Arrivals]) -> AsyncGenerator[Arrival]:
    """Yield arrivals one at a time."""
    async with coming as arrivals:
        while came := await arrivals.next():
            for each in came:
                yield each


def joined(arrivals: Iterable[Arrival]) -> list[Arrival]:
    """Return arrivals with adjacent deltas of one kind joined."""
    found, texts, of = list[Arrival](), list[str](), None
    for each in (*arrivals, None):
        if isinstance(each, Delta) and each.of == of:
            texts.append(each.text)
            continue
        if of is not None:
            found.append(Delta(of, "".join(texts)))
        if isinstance(each, Delta):
            of, texts = each.of, [each.text]
        else:
            of = None
            found += [each] if each is not None else ()
    return found
