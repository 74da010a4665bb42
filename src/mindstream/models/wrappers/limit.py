"""Ask an endpoint no more at once than it takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from mindstream.models.model import Model, Part, Request


class Limit:
    """Lets `at_once` requests run side by side; the others wait their turn."""

    def __init__(self, model: Model, at_once: int = 8) -> None:
        if at_once < 1:
            raise ValueError(f"a limit lets at least one request through, not {at_once} at once")
        self.name = model.name
        self._model = model
        self._room = asyncio.Semaphore(at_once)

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        async with self._room, aclosing(self._model.reply(request)) as parts:
            async for part in parts:
                yield part
