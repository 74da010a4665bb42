"""Exclusive work on a stream: one process holds it by a lease, which it renews.

A process that died does not renew its lease; when the lease has expired, another process continues the work. Writes of
a process that lost the lease are refused. Runs of reasoners and plans, lives and towns are held in this way.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TypeAlias

from mindstream import chance
from mindstream.clock import Clock, Moment
from mindstream.errors import HeldElsewhere, StorageError
from mindstream.identifiers import StreamKey
from mindstream.log.work import Work
from mindstream.memory.store.store import Fence, NewWork, WorkStore
from mindstream.memory.stream import Stream

LEASE_S, MIN_RENEWAL_S = 10.0, 0.5
"""Lease duration, and minimum renewal interval (for a lease of a second or more), in seconds."""
LOOK_S, WATCH_S = 0.1, 1.0


def for_anybody(slot: str) -> NewWork:
    """Return new work that any process may claim at once."""
    return NewWork((slot,), "nobody", 0.0)


async def is_open(stream: Stream, slot: str) -> bool:
    """Return whether a slot has unfinished work, whether or not a process has claimed it."""
    return any(work.slot == slot for work in await stream.store.open_work(stream.key))


async def find_lease(stream: Stream, slot: str) -> Moment | None:
    """Return when the lease of a slot's work expires; None if no process holds the work."""
    holder = await _find_holder(stream, slot)
    return holder.lease if holder else None


@contextlib.contextmanager
def renewing(
    store: WorkStore, clock: Clock, work: Callable[[], Sequence[int]], owner: str, lease_s: float
) -> Iterator[None]:
    """Renew the lease of work while the block runs. If the lease is lost, the next commit that depends on it (by a
    fence) fails."""
    with renewing_by(lambda until: store.renew(work(), owner, until), clock, lease_s):
        yield


@contextlib.contextmanager
def renewing_by(renew: Callable[[Moment], Awaitable[object]], clock: Clock, lease_s: float) -> Iterator[None]:
    """Call `renew` with a new expiry, at intervals, while the block runs; errors are ignored."""

    async def renew_it() -> None:
        with contextlib.suppress(Exception):
            await renew(clock.now() + lease_s)

    with _repeating(renew_it, max(lease_s / 3, min(MIN_RENEWAL_S, lease_s / 2))):
        yield


@contextlib.contextmanager
def looking(stream: Stream, at: Callable[[Sequence[Work]], None]) -> Iterator[None]:
    """Pass the open work of a stream to `at` every second while the block runs, so that `at` notices requests to
    stop. If several such blocks run with one store, each read of the store serves all of them."""
    watch = _watches.get(stream.store)
    if watch is None or watch.loop is not asyncio.get_running_loop():
        watch = _watches[stream.store] = _Watch(stream.store)
    entry = (stream.key, at)
    watch.add(entry)
    try:
        yield
    finally:
        watch.remove(entry)


class _Watch:
    """While `looking` blocks run, reads the open work of their streams every WATCH_S seconds. If no block runs, there
    is no timer."""

    def __init__(self, store: WorkStore) -> None:
        self.loop = asyncio.get_running_loop()
        self._store = weakref.ref(store)
        self._entries: list[_Entry] = []
        self._next: asyncio.TimerHandle | None = None
        self._reading: asyncio.Task[None] | None = None

    def add(self, entry: _Entry) -> None:
        self._entries.append(entry)
        if self._next is None and self._reading is None:
            self._next = self.loop.call_later(WATCH_S, self._begin)

    def remove(self, entry: _Entry) -> None:
        self._entries.remove(entry)
        if self._next is not None and not self._entries:
            self._next.cancel()
            self._next = None

    def _begin(self) -> None:
        self._next, self._reading = None, asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        try:
            asked = self._entries[:]
            if asked and (store := self._store()) is not None:
                with contextlib.suppress(StorageError):
                    work = await store.open_work(*dict.fromkeys(key for key, _ in asked))
                    for key, at in (entry for entry in asked if entry in self._entries):
                        at([each for each in work if each.mind == key])
        finally:
            self._reading = None
            if self._entries:
                self._next = self.loop.call_later(WATCH_S, self._begin)


_Entry: TypeAlias = tuple[StreamKey, Callable[[Sequence[Work]], None]]
_watches: weakref.WeakKeyDictionary[WorkStore, _Watch] = weakref.WeakKeyDictionary()


@contextlib.contextmanager
def _repeating(do: Callable[[], Awaitable[object]], every_s: float) -> Iterator[None]:
    """Call `do` at intervals while the block runs. If the block ends within the first interval, no task is created."""
    task: asyncio.Task[None] | None = None

    async def go_on() -> None:
        while True:
            await do()
            await asyncio.sleep(every_s)

    def begin() -> None:
        nonlocal task
        task = asyncio.ensure_future(go_on())

    timer = asyncio.get_running_loop().call_later(every_s, begin)
    try:
        yield
    finally:
        timer.cancel()
        if task is not None:
            task.cancel()


@contextlib.asynccontextmanager
async def hold(stream: Stream, slot: str, what: str, lease_s: float = LEASE_S) -> AsyncIterator[Fence]:
    """Hold work exclusively while the block runs. If the process dies, the lease expires after `lease_s` seconds.

    Args:
        what: what the holder does, for the error message, such as "living this life".

    Raises:
        HeldElsewhere: another process holds the work.
    """
    owner, now = f"{os.getpid()}-{chance.token()}", stream.clock.now()
    claimed = await stream.store.claim(stream.key, slot, owner, now, now + lease_s)
    if not claimed:
        raise _held_elsewhere(await _find_holder(stream, slot), what)
    ids = tuple(work.id for work in claimed)
    try:
        with renewing(stream.store, stream.clock, lambda: ids, owner, lease_s):
            yield Fence(ids, owner)
    finally:
        with contextlib.suppress(Exception):  # if releasing the work fails, the lease expires by itself
            await asyncio.shield(stream.store.give_up(owner))


async def outlast(stream: Stream, slot: str, what: str) -> None:
    """Wait until no process holds this work; if none does, return at once. The lease of a dead process is not renewed,
    and so it expires.

    Raises:
        HeldElsewhere: the lease was renewed or taken over, so the process that holds the work is alive.
    """
    first = await _find_holder(stream, slot)
    while (holder := await _find_holder(stream, slot)) is not None:
        if first is None or (holder.owner, holder.lease) != (first.owner, first.lease):
            raise _held_elsewhere(holder, what)
        await asyncio.sleep(LOOK_S)


async def _find_holder(stream: Stream, slot: str) -> Work | None:
    now = stream.clock.now()
    found = [work for work in await stream.store.open_work(stream.key) if work.slot == slot]
    held = [work for work in found if work.running and not work.is_open_to("", now)]
    return max(held, key=lambda work: work.lease, default=None)


def _held_elsewhere(holder: Work | None, what: str) -> HeldElsewhere:
    number = holder.owner.partition("-")[0] if holder else ""
    who = f"process {number}" if number.isdigit() else "another process"
    return HeldElsewhere(f"{who} is {what} now: wait until it is done, or stop it first")
