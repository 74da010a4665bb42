"""Let a memory sleep from outside a conversation, with the models of the settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from mindstream.log.events import Logged, Slept
from mindstream.minds.calls import CallLog
from mindstream.service.memory import Memory
from mindstream.service.opening import answering
from mindstream.settings import Settings


async def sleep(memory: Memory, settings: Settings, n: int, told: Callable[[Slept], None]) -> str:
    """Sleep once, drawing n records; `told` gets each step as it is done. Return the dream, or "".

    Raises:
        InputError: nothing is remembered of that user.
        UserError, StorageError: a model that cannot be used; a folder that cannot be written.
    """
    stream, calls = (await memory.require_known()).stream, CallLog()
    async with answering(settings, calls.take) as models:
        with stream.feed.listening() as events:
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_tell(events, told))
                    dream = await stream.sleep(
                        models.of("M1", "reasoner"), n, rater=models.of("importance", "reasoner")
                    )
                    stream.feed.close()
            finally:
                await calls.flush(stream)
    return dream


async def _tell(events: AsyncIterator[Logged], told: Callable[[Slept], None]) -> None:
    async for logged in events:
        if isinstance(logged.event, Slept):
            told(logged.event)
