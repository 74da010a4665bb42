"""One process lives a life at a time (see memory/lease)."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from mindstream.clock import Moment
from mindstream.errors import InputError
from mindstream.life.events import SLOT, LifeBegan, TaskChanged
from mindstream.memory import lease
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Entry, Fence

LIVING = "living this life (which can be watched, answered, paused and stopped)"


async def begin(stream: Memory, event: LifeBegan, *tasks: TaskChanged) -> None:
    """Give a mind a goal, and tasks for it; whoever opens its life next, or lives it now, takes it up."""
    entries = (Entry(each, stream.name) for each in (event, *tasks))
    await stream.commit(*entries, wake=lease.for_anybody(SLOT))


async def find_lease(stream: Memory) -> Moment | None:
    """Return until when a process holds this mind's life, if it does not renew that; None: nobody does."""
    return await lease.find_lease(stream, SLOT)


async def is_lived(stream: Memory) -> bool:
    """Tell whether a process lives this mind's life now, or died a moment ago."""
    return await find_lease(stream) is not None


@contextlib.asynccontextmanager
async def hold(stream: Memory, lease_s: float) -> AsyncIterator[Fence]:
    """Hold a life while the block runs.

    Raises:
        HeldElsewhere: another process lives it.
        InputError: this mind has no goal.
    """
    if not await lease.is_open(stream, SLOT):
        raise InputError("this mind has no goal yet: give it one with --goal")
    async with lease.hold(stream, SLOT, LIVING, lease_s) as fence:
        yield fence
