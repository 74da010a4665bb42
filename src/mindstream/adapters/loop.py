"""One event loop for all adapters, in a thread of its own, because frameworks call from threads and short-lived loops.

handle = Handle("data", "ann")
handle.wait(lambda memory: memory.recall("keys"))  # from a thread
await handle.do(lambda memory: memory.recall("keys"))  # from any loop
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from mindstream.errors import StorageError
from mindstream.memory.memory import Memory
from mindstream.memory.opening import open_store
from mindstream.memory.store.store import Store
from mindstream.models.embedders.embedder import Embedder

T = TypeVar("T")
Data: TypeAlias = str | Path | Store
"""A data folder, the URL of a database, or an open store."""
Work: TypeAlias = Coroutine[Any, Any, T]
MAX_OPEN = 64
"""Maximum number of open memories; if there are more, the least recently used idle ones are closed."""
LAST_S = 5.0
"""Maximum seconds for which the end of the program is delayed to store the effects of recalls on memory strength."""

_starting = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_stores: dict[str, Store] = {}
_memories: OrderedDict[tuple[object, ...], asyncio.Task[tuple[Memory, AsyncExitStack]]] = OrderedDict()
_working: Counter[tuple[object, ...]] = Counter()


def wait(work: Work[T]) -> T:
    """Run a coroutine on the adapters' loop and return its result; the calling thread waits.

    Raises:
        RuntimeError: the caller runs on the adapters' loop itself, so waiting would deadlock.
    """
    if _is_here():
        work.close()
        raise RuntimeError(
            "a blocking method of an adapter was called on the adapters' own event loop, which would deadlock: use the"
            " async method there"
        )
    done = asyncio.run_coroutine_threadsafe(work, _running())
    try:
        return done.result()
    except BaseException:  # also Ctrl-C: work that the caller no longer waits for is cancelled
        done.cancel()
        raise


async def do(work: Work[T]) -> T:
    """Run a coroutine on the adapters' loop and return its result; cancelling the call cancels the coroutine."""
    if _is_here():
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _running()))


class Handle:
    """A memory for callers on any thread or loop. It is opened when it is used; handles with the same arguments share
    it.

    Args:
        data: a folder, a database's URL, or a store. The store of a tenant shows only the data of that tenant.
        user: the owner of the memory; memories of different names are isolated from one another.
        embed: an embedder, or its name; None: the embedder of the stored vectors.
    """

    def __init__(self, data: Data, user: str, embed: Embedder | str | None = None) -> None:
        self.data = str(data) if isinstance(data, str | Path) else data
        self.user, self.embed = user, embed
        folder = os.path.realpath(data) if isinstance(data, str | Path) and "://" not in str(data) else self.data
        self._place = folder if isinstance(folder, str) else ""
        self._key = (
            folder if isinstance(folder, str) else id(folder),
            user,
            embed if isinstance(embed, str) else id(embed),
        )

    def wait(self, work: Callable[[Memory], Work[T]]) -> T:
        """Use the memory; the calling thread waits."""
        return wait(self._done(work))

    async def do(self, work: Callable[[Memory], Work[T]]) -> T:
        """Use the memory without blocking the calling loop."""
        return await do(self._done(work))

    def close(self) -> None:
        """Close the memory for all adapters that use it; the next use opens it again."""
        wait(_close(self._key))

    async def _done(self, work: Callable[[Memory], Work[T]]) -> T:
        _working[self._key] += 1
        try:
            return await work(await self._memory())
        finally:
            _working[self._key] -= 1
            if not _working[self._key]:
                del _working[self._key]
            if len(_memories) > MAX_OPEN:
                await asyncio.shield(_close_oldest())

    async def _memory(self) -> Memory:
        opening = _memories.get(self._key)
        if opening is None or _failed(opening):
            opening = _memories[self._key] = asyncio.ensure_future(self._open())
        _memories.move_to_end(self._key)
        return (await asyncio.shield(opening))[0]

    async def _open(self) -> tuple[Memory, AsyncExitStack]:
        stack = AsyncExitStack()
        if isinstance(self.data, str):
            store = _stores[self._place] = _stores.get(self._place) or open_store(self.data)
        else:
            store = self.data
        return await stack.enter_async_context(Memory.open(store, self.user, embed=self.embed)), stack


def both(work: Callable[..., Work[Any]]) -> tuple[Any, Any]:
    """Return a sync and an async method for objects with a `handle`.

    Args:
        work: an async method that gets the memory as its keyword argument `memory`.
    """

    @wraps(work)
    def waited(self: Any, *args: Any, **more: Any) -> Any:
        return self.handle.wait(lambda memory: work(self, *args, memory=memory, **more))

    @wraps(work)
    async def awaited(self: Any, *args: Any, **more: Any) -> Any:
        return await self.handle.do(lambda memory: work(self, *args, memory=memory, **more))

    return waited, awaited


async def _close_oldest() -> None:
    """Close the least recently used idle memories, as many as are open beyond MAX_OPEN.

    The records of these memories are on disk already.
    """
    for key in [key for key in _memories if key not in _working][: len(_memories) - MAX_OPEN]:
        if key not in _working:  # a use may have begun during an earlier close
            # StorageError: effects of an earlier recall were not stored; this does not concern the caller
            with contextlib.suppress(StorageError):
                await _close(key)


def _failed(opening: asyncio.Task[Any]) -> bool:
    return opening.done() and (opening.cancelled() or opening.exception() is not None)


async def _close(key: tuple[object, ...]) -> None:
    if (opened := _memories.pop(key, None)) is not None and not _failed(opened):
        await (await opened)[1].aclose()
    place = key[0]
    if isinstance(place, str) and place in _stores and not any(place == other[0] for other in _memories):
        await _stores.pop(place).close()


def _running() -> asyncio.AbstractEventLoop:
    global _loop
    with _starting:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="mindstream adapters", daemon=True).start()
        return _loop


def _is_here() -> bool:
    try:
        return asyncio.get_running_loop() is _loop
    except RuntimeError:
        return False


async def _settle() -> None:
    for opened in list(_memories.values()):
        if opened.done() and not _failed(opened):
            await opened.result()[0].settle()


def _end() -> None:
    """Store the effects of the latest recalls at the end of the program; all other data is on disk already."""
    if _loop is not None and _memories:
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(_settle(), _loop).result(LAST_S)


def _forked() -> None:
    """Reset the state in a forked process, which has neither the loop's thread nor connections of its own."""
    global _loop, _starting
    _loop, _starting = None, threading.Lock()
    _stores.clear()
    _memories.clear()
    _working.clear()


atexit.register(_end)
if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_forked)
