"""One process lives a life at a time: it holds its work by lease, and whatever it writes is fenced by that."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from mindstream import chance
from mindstream.clock import Moment
from mindstream.errors import Conflict, InputError
from mindstream.life.events import SLOT, LifeBegan, TaskChanged
from mindstream.memory.store.store import Entry, Fence, NewWork
from mindstream.memory.stream import Stream

LEASE_S, LEAST_S = 10.0, 0.5
"""How long a life stays with a process that does not renew it; so often it is renewed at most."""


class LivesElsewhere(Conflict):
    """Another process lives this life now."""


async def begin(stream: Stream, event: LifeBegan, *tasks: TaskChanged) -> None:
    """Give a mind a goal, and tasks for it; whoever opens its life next, or lives it now, takes it up."""
    nobody = NewWork((SLOT,), "nobody", 0.0)
    await stream.commit(*(Entry(each, stream.name) for each in (event, *tasks)), wake=nobody)


async def find_lease(stream: Stream) -> Moment | None:
    """Return until when a process holds this mind's life, if it does not renew that; None: nobody does."""
    now = stream.clock.now()
    found = [work for work in await stream.store.open_work(stream.key) if work.slot == SLOT]
    return max((work.lease for work in found if work.running and not work.is_open_to("", now)), default=None)


async def is_lived(stream: Stream) -> bool:
    """Tell whether a process lives this mind's life now, or died a moment ago."""
    return await find_lease(stream) is not None


@contextlib.asynccontextmanager
async def tenure(stream: Stream, lease_s: float = LEASE_S) -> AsyncIterator[Fence]:
    """Hold a life while the block runs; a process that dies holds it for `lease_s` yet.

    Raises:
        LivesElsewhere: another process holds it.
        InputError: this mind has no goal.
    """
    owner = chance.token()
    if not any(work.slot == SLOT for work in await stream.store.open_work(stream.key)):
        raise InputError("this mind has no goal yet: give it one with --goal")
    now = stream.clock.now()
    claimed = await stream.store.claim(stream.key, SLOT, owner, now, now + lease_s)
    if not claimed:
        raise LivesElsewhere("another process lives this life now; it can be watched, answered, paused and stopped")
    ids = tuple(work.id for work in claimed)

    async def renew() -> None:
        while True:
            await asyncio.sleep(max(lease_s / 3, LEAST_S))
            with contextlib.suppress(Exception):  # whether it is lost, the next commit will say
                await stream.store.renew(ids, owner, stream.clock.now() + lease_s)

    renewing = asyncio.ensure_future(renew())
    try:
        yield Fence(ids, owner)
    finally:
        renewing.cancel()
        with contextlib.suppress(Exception):  # else the lease runs out by itself
            await asyncio.shield(stream.store.give_up(owner))
