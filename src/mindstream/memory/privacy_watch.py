"""Apply erasures by other processes to this process within LOOK_S seconds: to its caches, and to open minds.

A PostgreSQL store announces erasures at once (`subscribe`); other stores are polled.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from mindstream import caches
from mindstream.errors import StorageError
from mindstream.identifiers import StreamKey
from mindstream.log.erasures import ERASURES, Erased, digest_of
from mindstream.memory.store.kept_columns import delete_erased, kept_beside

LOOK_S = 1.0
"""Poll interval for erasures by other processes, in seconds: the maximum time until this process drops the erased data.
If a mind is running a step, that step is finished first.
"""


class TellsErasures(Protocol):
    """The methods of a store that an ErasureWatch calls."""

    async def last_erasure(self) -> int:
        """Return the number of the last erasure."""

    async def erased_since(self, number: int) -> tuple[str, list[Erased]]:
        """Return the erasures with a number above this one, and the salt with which they hash the keys of streams."""

    def subscribe(self, stream: StreamKey | None, told: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `told` after each commit of any process to a stream; for the stream ERASURES, after each erasure."""


class ErasureWatch:
    """Applies the erasures of a store to this process's caches, and remembers the last one that it applied."""

    def __init__(self, store: TellsErasures) -> None:
        self._store = store
        self._folder: Path | None = getattr(store, "columns_folder", None)
        self._began: int | None = None
        self._upto: int | None = None

    async def begin(self) -> int:
        """Record and return the number of the last erasure. Call this before the process reads anything. Then only the
        kept files (store/kept_columns) can still contain data that was erased earlier."""
        if self._began is None:
            self._began = await self._store.last_erasure()
        return self._began

    async def look(self) -> list[str]:
        """Apply the erasures since the last look to this process's caches and to the kept files; return the affected
        streams that this process has opened.

        The first look also deletes the kept files (store/kept_columns) that still contain data erased earlier.
        """
        began, upto, kept = await self.begin(), self._upto, {}
        if upto is None:
            kept = await asyncio.to_thread(kept_beside, self._folder)
            upto = min([began, *(reached for _, reached in kept.values())])
        self._upto = upto
        salt, erased = await self._store.erased_since(upto)
        if not erased:
            return []
        new = [each for each in erased if each.number > began and not caches.was_erased_here(each.digest, each.number)]
        last = {each.digest: 0 for each in new} | {each.digest: each.number for each in new if each.whole}
        found = {stream: last[digest] for stream in caches.streams() if (digest := digest_of(salt, stream)) in last}
        for stream, number in found.items():
            caches.empty(stream, whole=number > 0, before=number)
        kept = kept or await asyncio.to_thread(kept_beside, self._folder)
        await asyncio.to_thread(delete_erased, kept, salt, erased)  # if this fails, the next look repeats it
        self._upto = erased[-1].number
        return list(found)


@contextlib.asynccontextmanager
async def watching(store: TellsErasures) -> AsyncIterator[None]:
    """While the block runs, apply erasures by other processes to this process: at once if the store announces them,
    otherwise within LOOK_S seconds."""
    watch, told = ErasureWatch(store), asyncio.Event()
    with contextlib.suppress(StorageError):  # if this fails, the first `look` calls `begin`
        await watch.begin()  # before this process reads anything

    async def go_on() -> None:
        with store.subscribe(ERASURES, told.set):
            while True:
                told.clear()
                with contextlib.suppress(StorageError, OSError):  # the next look tries again
                    await watch.look()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(told.wait(), LOOK_S)

    going = asyncio.ensure_future(go_on())
    try:
        yield
    finally:
        if not going.get_loop().is_closed():  # a memory may be closed on another loop than the one that opened it
            going.cancel()
