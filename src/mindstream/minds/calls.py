"""Write every model call of a mind to its log, in the background."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

from mindstream.clock import Clock, Moment
from mindstream.log.events import ModelCalled
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Entry
from mindstream.models.wrappers.meter import Metered

LATER_S = 0.3
"""Maximum delay in seconds until the log row of a call is written. Because of the delay, most calls are written in the
commit of the answer or thought for which they were made."""


class CallLog:
    """Collect the model calls of a mind, with their usage, and write them to its log.

    Args:
        clock: gives the time when each call ended; None: the time of the log row is used.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock
        self._calls: list[Entry] = []
        self._more = asyncio.Event()
        self._under_way: asyncio.Future[None] | None = None

    def take(self, call: Metered) -> None:
        """Queue a call for the log, without waiting."""
        event = build_event(call, self._clock.now() if self._clock else None)
        self._calls.append(Entry(event, "mindstream", system=True))
        self._more.set()

    async def run(self, memory: Memory) -> None:
        """Write queued calls with the memory's next commit, or at most LATER_S later, until cancelled."""
        memory.beside += self._calls
        self._calls = memory.beside
        while True:
            await self._more.wait()
            self._more.clear()
            has_words = any(isinstance(each.event, ModelCalled) and each.event.asked for each in self._calls)
            await asyncio.sleep(0 if has_words else LATER_S)  # an erasure does not find texts that are only queued
            await self._write(memory)

    @contextlib.asynccontextmanager
    async def writing(self, memory: Memory) -> AsyncIterator[None]:
        """Write calls in the background while the block runs, and the remaining ones at its end."""
        running = asyncio.ensure_future(self.run(memory))
        try:
            yield
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            await self.flush(memory)

    async def flush(self, memory: Memory) -> None:
        """Write the queued calls. First wait for the commit that was in progress when `run` was cancelled."""
        if self._under_way is not None:
            await asyncio.wait([self._under_way])
        await self._write(memory)

    async def _write(self, memory: Memory) -> None:
        entries = self._calls[:]
        self._calls.clear()

        async def commit() -> None:
            with contextlib.suppress(Exception):  # a failing store must not end the conversation
                await memory.commit(*entries)

        if entries:
            self._under_way = asyncio.ensure_future(commit())
            await asyncio.shield(self._under_way)


def build_event(call: Metered, called_at: Moment | None = None) -> ModelCalled:
    """Return the log event of a call; `called_at`: the time when it ended, None: the time of the log row."""
    usage, words = call.usage, call.words
    asked = [[each.role, each.text] for each in words.asked] if words else None
    return ModelCalled(
        role=call.role,
        prompt=call.prompt,
        model=call.model,
        seconds=call.seconds,
        first_part_s=call.first_s,
        input_tokens=usage.input_tokens if usage else 0,
        output_tokens=usage.output_tokens if usage else 0,
        cached_tokens=usage.cached_tokens if usage else 0,
        cost_usd=usage.cost_usd if usage else None,
        cut=", ".join(map(str, call.cut)),
        error=call.error or ("broken off" if call.broken_off else ""),
        mended=call.mended,
        about=call.cause.rows,
        resident=call.cause.resident,
        step=call.cause.step,
        called_at=called_at,
        asked=json.dumps(asked, ensure_ascii=False) if asked is not None else "",
        answered=words.answered if words else "",
    )
