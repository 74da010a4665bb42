"""Every call of a model becomes a row of the log, off the hot path."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence

from mindstream.clock import Clock, Moment
from mindstream.log.events import ModelCalled
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Entry
from mindstream.models.wrappers.meter import Metered


class CallLog:
    """Takes what the meters tell and writes it when there is time.

    Args:
        clock: the time of each call is read from it; None: it is that of the row, by the stream's clock.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock
        self._calls: asyncio.Queue[tuple[Metered, Moment | None]] = asyncio.Queue()
        self._under_way: asyncio.Future[None] | None = None

    def take(self, call: Metered) -> None:
        """Note a call; returns at once."""
        self._calls.put_nowait((call, self._clock.now() if self._clock else None))

    async def run(self, stream: Memory) -> None:
        """Write calls as they come, until cancelled."""
        while True:
            await self._write(stream, [await self._calls.get()])

    @contextlib.asynccontextmanager
    async def writing(self, stream: Memory) -> AsyncIterator[None]:
        """Write calls as they come while the block lasts, and then what is left."""
        running = asyncio.ensure_future(self.run(stream))
        try:
            yield
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            await self.flush(stream)

    async def flush(self, stream: Memory) -> None:
        """Write what is left, and wait for what was being written as `run` was cancelled."""
        if self._under_way is not None:
            await asyncio.wait([self._under_way])
        await self._write(stream, [])

    async def _write(self, stream: Memory, calls: list[tuple[Metered, Moment | None]]) -> None:
        while not self._calls.empty():
            calls.append(self._calls.get_nowait())
        if calls:
            self._under_way = asyncio.ensure_future(_commit(stream, calls))
            await asyncio.shield(self._under_way)


async def _commit(stream: Memory, calls: Sequence[tuple[Metered, Moment | None]]) -> None:
    with contextlib.suppress(Exception):  # whatever the store does, the talk goes on without its bill
        await stream.commit(*(Entry(build_event(*each), "mindstream", system=True) for each in calls))


def build_event(call: Metered, called_at: Moment | None = None) -> ModelCalled:
    """Return the row of the log for a call; `called_at`: when it ended, where the row's own time is another."""
    usage = call.usage
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
        asked=_asked(call),
        answered=call.words.answered if call.words else "",
    )


def _asked(call: Metered) -> str:
    if call.words is None:
        return ""
    return json.dumps([[each.role, each.text] for each in call.words.asked], ensure_ascii=False)
