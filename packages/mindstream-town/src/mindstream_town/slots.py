"""A queue before the models of a town: the call on which most residents wait goes first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from contextvars import ContextVar

from mindstream.models.model import Model, Part, Request

Rank = Callable[[], tuple[int, int]]
RANK: ContextVar[Rank] = ContextVar("rank", default=lambda: (0, 0))
"""Returns the current place of the running step in the queue; the lowest goes first."""


class Slots:
    """Lets a number of calls run at the same time."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._queue: list[tuple[Rank, asyncio.Future[None]]] = []

    async def __aenter__(self) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append((RANK.get(), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was granted in the meantime
                self._release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._release()

    def _release(self) -> None:
        self._queue = [each for each in self._queue if not each[1].done()]
        if not self._queue:
            self._free += 1
            return
        first = min(self._queue, key=lambda each: each[0]())
        first[1].set_result(None)


class Queued:
    """A model whose calls wait for a slot."""

    def __init__(self, model: Model, slots: Slots) -> None:
        self.name, self._model, self._slots = model.name, model, slots

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        async with self._slots, aclosing(self._model.reply(request)) as parts:
            async for part in parts:
                yield part
