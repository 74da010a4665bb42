"""The columns of the streams that a process used last, caught up with the store whenever they are asked for."""

from __future__ import annotations

import asyncio
from itertools import chain
from weakref import WeakValueDictionary

from mindstream import caches
from mindstream.memory.columns import Columns
from mindstream.memory.store import Store


class Shelf:
    """Columns by stream; the least recently used leave."""

    def __init__(self, store: Store, embedder: str = "", width: int = 0, streams: int = 64) -> None:
        self._store = store
        self._embedder = embedder
        self._width = width
        self._room = streams
        self._held: dict[str, Columns] = {}
        self._filling: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        caches.watch(self)

    def columns(self, stream: str) -> Columns:
        """Return a stream's columns, caught up with the store: at once, however long that takes."""
        columns = self._held.get(stream)
        if columns is not None:
            columns.catch_up(self._store)
            columns = self._without_traces(columns)
        if columns is None:
            columns = self._begin(stream)
            columns.catch_up(self._store)
        return self._keep(columns)

    async def catch_up(self, stream: str) -> Columns:
        """Return a stream's columns, caught up with the store: where much is new, in portions, others running between.

        Whoever asks meanwhile shares the work; where it is broken off, the next one goes on from there.
        """
        columns = self._held.get(stream)
        if columns is not None and not self._has_more(columns) and not columns.traces:
            return self._keep(columns)
        lock = self._filling.setdefault(stream, asyncio.Lock())
        async with lock:
            columns = self._held.get(stream)
            if columns is not None:
                await self._fill(columns)
                columns = self._without_traces(columns)
            if columns is None:
                columns = self._begin(stream)
                await self._fill(columns)
        return self._keep(columns)

    async def _fill(self, columns: Columns) -> None:
        for _ in chain(columns.reading(self._store), columns.vectors.settling()):
            await asyncio.sleep(0)

    def _has_more(self, columns: Columns) -> bool:
        return columns.take_portion(self._store) or columns.vectors.is_far_behind

    def _without_traces(self, columns: Columns) -> Columns | None:
        """Let columns go where something was erased, so that it leaves no trace in its neighbours; None then."""
        if columns.traces:
            caches.empty(columns.stream)
        return None if columns.traces else columns

    def _begin(self, stream: str) -> Columns:
        self._held[stream] = columns = Columns(stream, self._embedder, self._width)
        return columns

    def _keep(self, columns: Columns) -> Columns:
        """Put columns where the most recently used are."""
        self._held.pop(columns.stream, None)
        self._held[columns.stream] = columns
        while len(self._held) > self._room:
            del self._held[next(iter(self._held))]
        return columns

    def forget(self, stream: str) -> None:
        """Let a stream's columns go; they are filled anew when they are asked for."""
        self._held.pop(stream, None)
