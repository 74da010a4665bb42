"""What another process has erased is let go of here, within LOOK_S: columns, held and kept, texts, open minds.

A database tells of it at once (`heeding`); whoever is not told looks now and then.
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
from mindstream.log.erasures import ERASURES, Erased, digest_of
from mindstream.log.names import StreamKey
from mindstream.memory.store.kept.columns_file import delete_erased, kept_beside

LOOK_S = 1.0
"""After so long at most a process has let go of what another one erased; and after what it is at just then."""


class TellsErasures(Protocol):
    """What is asked of a store."""

    async def last_erasure(self) -> int:
        """Return the number of the last erasure."""

    async def erased_since(self, number: int) -> tuple[str, list[Erased]]:
        """Return what digests are made with, and the erasures after a number."""

    def heeding(self, stream: StreamKey | None, told: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `told` when anybody has erased something."""


class ErasureWatch:
    """How far a process has heard of a store's erasures."""

    def __init__(self, store: TellsErasures) -> None:
        self._store = store
        self._folder: Path | None = getattr(store, "columns_folder", None)
        self._began: int | None = None
        self._upto: int | None = None

    async def begin(self) -> int:
        """Note how far erasures are: nobody here holds more of what was erased before, but in files that are kept."""
        if self._began is None:
            self._began = await self._store.last_erasure()
        return self._began

    async def look(self) -> list[str]:
        """Have all that was erased since it began let go of; return whose it was, of those known here.

        The first look takes files, too, of which something was erased before.
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
        await asyncio.to_thread(delete_erased, kept, salt, erased)  # where it fails it is tried again
        self._upto = erased[-1].number
        return list(found)


@contextlib.asynccontextmanager
async def watching(store: TellsErasures) -> AsyncIterator[None]:
    """Look whenever it is told of an erasure, and every LOOK_S, while the block runs."""
    watch, told = ErasureWatch(store), asyncio.Event()
    with contextlib.suppress(StorageError):  # it begins with the first look
        await watch.begin()  # before anything is read here

    async def go_on() -> None:
        with store.heeding(ERASURES, told.set):
            while True:
                told.clear()
                with contextlib.suppress(StorageError, OSError):  # it is looked at again
                    await watch.look()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(told.wait(), LOOK_S)

    going = asyncio.ensure_future(go_on())
    try:
        yield
    finally:
        going.cancel()
