"""Ask an endpoint no faster than it allows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing

from mindstream.clock import MINUTE_S, Clock, SystemClock
from mindstream.models.model import Model, Part, Request


class Limit:
    """Lets `at_once` requests run side by side and `per_minute` begin in any minute; the others wait their turn."""

    def __init__(
        self, model: Model, at_once: int = 8, per_minute: int | None = None, *, clock: Clock | None = None
    ) -> None:
        if at_once < 1 or (per_minute is not None and per_minute < 1):
            raise ValueError(f"a limit lets at least one request through, not {at_once} at once, {per_minute} a minute")
        self.name = model.name
        self._model = model
        self._clock = clock or SystemClock()
        self._room = asyncio.Semaphore(at_once)
        self._gate = asyncio.Lock()
        self._begun: deque[float] | None = None if per_minute is None else deque(maxlen=per_minute)

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        async with self._room:
            await self._turn()
            async with aclosing(self._model.reply(request)) as parts:
                async for part in parts:
                    yield part

    async def _turn(self) -> None:
        if self._begun is None:
            return
        async with self._gate:
            if len(self._begun) == self._begun.maxlen:
                wait_s = self._begun[0] + MINUTE_S - self._clock.elapsed()
                if wait_s > 0:
                    await self._clock.sleep(wait_s)
            self._begun.append(self._clock.elapsed())
