"""What another process has erased is let go of here, within LOOK_S: columns, remembered texts, open minds.

A process that listens to the database (`LISTEN`) calls `ErasureWatch.look` when it is told; who does not, looks.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Protocol

from mindstream import caches
from mindstream.errors import StorageError
from mindstream.log.erasures import Erased, digest_of

LOOK_S = 1.0
"""After so long at most a process has let go of what another one erased; and after what it is at just then."""


class TellsErasures(Protocol):
    """What is asked of a store."""

    async def last_erasure(self) -> int:
        """Return the number of the last erasure."""

    async def erased_since(self, number: int) -> tuple[str, list[Erased]]:
        """Return what digests are made with, and the erasures after a number."""


class ErasureWatch:
    """How far a process has heard of a store's erasures."""

    def __init__(self, store: TellsErasures) -> None:
        self._store = store
        self._upto = -1

    async def look(self) -> list[str]:
        """Have all that was erased since the last look let go of; return whose it was, of those known here.

        The first look only notes how far it is: what was erased before is in nobody's hands.
        """
        if self._upto < 0:
            self._upto = await self._store.last_erasure()
            return []
        salt, erased = await self._store.erased_since(self._upto)
        if not erased:
            return []
        self._upto = erased[-1].number
        whole = {each.digest: False for each in erased} | {each.digest: True for each in erased if each.whole}
        found = {stream: whole[digest] for stream in caches.streams() if (digest := digest_of(salt, stream)) in whole}
        for stream, is_whole in found.items():
            caches.empty(stream, whole=is_whole)
        return list(found)


@contextlib.contextmanager
def watching(store: TellsErasures) -> Iterator[None]:
    """Look every LOOK_S while the block runs."""

    async def go_on() -> None:
        watch = ErasureWatch(store)
        while True:
            with contextlib.suppress(StorageError):  # it is looked at again
                await watch.look()
            await asyncio.sleep(LOOK_S)

    going = asyncio.ensure_future(go_on())
    try:
        yield
    finally:
        going.cancel()
