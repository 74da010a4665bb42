"""The columns of the streams that a process used last, caught up with the store whenever they are asked for."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from weakref import WeakValueDictionary

from mindstream import caches
from mindstream.log.names import StreamKey
from mindstream.memory.store.columns import Columns
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Store

STREAMS, RECORDS = 1_000, 250_000
"""So many streams are held, as long as they have so many records together: with 256 numbers a vector, some 300 MB."""


class IndexCache:
    """Columns by stream; the least recently used leave.

    Args:
        streams, records: how many are held at most; the one that is asked for always is.
    """

    def __init__(
        self, store: Store, embedder: str = "", width: int = 0, streams: int = STREAMS, records: int = RECORDS
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._width = width
        self._streams, self._records = streams, records
        self._held: dict[str, Columns] = {}
        self._whole = OrderedDict[str, Record]()
        self._lengths: dict[str, int] = {}
        self._count = 0
        self._filling: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        caches.watch(self)

    async def columns(self, stream: StreamKey) -> Columns:
        """Return a stream's columns, caught up with the store: where much is new, in portions, others running between.

        Whoever asks meanwhile shares the work; where it is broken off, the next one goes on from there.
        """
        lock = self._filling.setdefault(stream, asyncio.Lock())
        async with lock:
            columns = self._held.get(stream)
            if columns is not None:
                await self._fill(columns)
                if columns.traces:  # of what was erased, in its neighbours
                    caches.empty(stream)
                    columns = None
            if columns is None:
                self._held[stream] = columns = Columns(stream, self._embedder, self._width, self._whole)
                await self._fill(columns)
        return self._keep(columns)

    async def _fill(self, columns: Columns) -> None:
        async for _ in columns.reading(self._store):
            await asyncio.sleep(0)
        if columns.vectors.is_far_behind:
            for _ in columns.vectors.settling():
                await asyncio.sleep(0)

    def _keep(self, columns: Columns) -> Columns:
        """Put columns where the most recently used are."""
        self._drop(columns.stream)
        self._held[columns.stream] = columns
        self._lengths[columns.stream] = len(columns)
        self._count += len(columns)
        while len(self._held) > 1 and (len(self._held) > self._streams or self._count > self._records):
            self.forget(next(iter(self._held)))
        return columns

    def forget(self, stream: str) -> None:
        """Let a stream's columns go; they are filled anew when they are asked for."""
        self._drop(stream)
        for id_ in [id_ for id_, record in self._whole.items() if record.stream == stream]:
            del self._whole[id_]

    def _drop(self, stream: str) -> None:
        self._held.pop(stream, None)
        self._count -= self._lengths.pop(stream, 0)
