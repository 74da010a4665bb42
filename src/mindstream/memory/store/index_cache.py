"""The columns of the streams that a process used last. Each access first reads new changes from the store.

The columns of a long stream are also kept in a file (store/kept_columns): it is written in the background, and the next
process maps it into memory. If there is no such file, the columns are filled in the background; until they are filled,
recall asks the store for candidates. Background work for a stream ends when the last object that uses the stream leaves
it, or when the store is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from mindstream import caches
from mindstream.errors import MindstreamError
from mindstream.identifiers import StreamKey
from mindstream.log.database import release_heap
from mindstream.log.erasures import digest_of
from mindstream.memory.store.columns import WHOLE, Columns
from mindstream.memory.store.kept_columns import (
    ArrayFile,
    DamagedFileError,
    delete_kept,
    keeping,
    load,
    path_of,
    verify,
)
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Changes, Store

STREAMS, RECORDS = 1_000, 250_000
"""STREAMS: maximum number of streams whose columns are held in memory. RECORDS: maximum number of records of all these
streams together (about 300 MB with vectors of 256 dimensions)."""
MAPPED = 16
"""For the limit RECORDS, this many records in a memory-mapped file count as one record in memory."""
SOON = 4_096
"""Maximum number of new records that are read while a caller waits (a quarter to half a second). If there are more,
they are read in the background."""
KEPT_FROM = 8_192
"""Minimum number of records that a stream must have for its columns to be written to a file."""
GROWN = 16
"""The file is written again when the columns have grown by one sixteenth."""
SAMPLE = 32
"""Approximate number of ids in a file of columns that are compared with the store when the file is opened."""
REST_S, RESTS = 0.5, 10
"""Background filling waits until no recall is running. REST_S: seconds between two checks. RESTS: maximum number of
checks; then filling starts anyway."""


class IndexCache:
    """Caches the columns (a stream's records as arrays, for ranking) of recently used streams.

    If the cache is full, the columns of the least recently used streams are dropped.

    Args:
        embedder, width: the name of the embedder of the vectors in the columns, and the length of a vector.
        streams, records: maximum number of streams, and of records, in the cache. The requested stream is always kept.
    """

    def __init__(
        self, store: Store, embedder: str = "", width: int = 0, streams: int = STREAMS, records: int = RECORDS
    ) -> None:
        self._store, self._embedder, self._width = store, embedder, width
        self._streams, self._records = streams, records
        self._folder: Path | None = getattr(store, "columns_folder", None)
        self._is_read: Callable[[StreamKey, int], bool] = getattr(store, "is_read", lambda *_: False)
        self._held: dict[str, Columns] = {}
        self._weights: dict[str, int] = {}
        self._texts: dict[str, int] = {}
        """Number of records whose texts the columns hold, by stream. The least recently used stream comes first."""
        self._filling: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._behind: dict[str, asyncio.Task[None]] = {}
        self._keeping: dict[str, asyncio.Task[None]] = {}
        self._users: dict[str, WeakSet[object]] = {}
        self._answering = 0
        caches.watch(self)
        at_work: WeakSet[Any] = getattr(store, "at_work", WeakSet())
        at_work.add(self)

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Delay the background filling of columns while the block runs, because a recall is running."""
        self._answering += 1
        try:
            yield
        finally:
            self._answering -= 1

    def use(self, stream: StreamKey, user: object) -> None:
        """Register an object that uses a stream."""
        self._users.setdefault(stream, WeakSet()).add(user)

    async def leave(self, stream: StreamKey, user: object) -> None:
        """Unregister an object that uses a stream; when none is left, background work for the stream ends."""
        users = self._users.get(stream, WeakSet())
        users.discard(user)
        if not users:
            self._users.pop(stream, None)
            await self._end(tasks[stream] for tasks in (self._behind, self._keeping) if stream in tasks)

    async def close(self) -> None:
        """End all background work: unfinished files are deleted; unfinished columns are continued by the next
        access."""
        await self._end([*self._behind.values(), *self._keeping.values()])

    async def _end(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        ending = list(tasks)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    async def columns(self, stream: StreamKey) -> Columns:
        """Return a stream's complete columns. Many changes are read in portions, and other tasks run in between.

        Concurrent callers share the work; if a call is cancelled, a later one continues its work.
        """
        if (held := self._current(stream)) is not None:
            return self._used(held)
        async with self._lock(stream):
            columns = await self._begun(stream)
            await self._fill(columns)
            if columns.traces:
                columns = self._anew(stream)
                await self._fill(columns)
        return self._used(columns)

    async def at_hand(self, stream: StreamKey) -> Columns | None:
        """Return a stream's columns; None: they are being filled for the first time, or again after an erasure.

        A few missing changes are read at once. Many are read in the background; until that is done, the columns are
        `behind` the store.
        """
        if stream in self._behind:
            return self._readable(stream)
        if (held := self._current(stream)) is not None:
            return held
        async with self._lock(stream):
            columns = await self._begun(stream)
            more = await columns.take_portion(self._store)
            if columns.traces:
                columns = self._anew(stream)
                more = await columns.take_portion(self._store)
            if more and columns.ahead > SOON:
                if columns.complete:  # settle the vectors now: while the columns are `behind`, no search settles them
                    await self._in_steps(columns.vectors.settling(bits=True))
                columns.behind = columns.vectors.behind = True
                self._begin(self._behind, stream, self._fill_behind)
                return self._readable(stream)
            await (self._fill if more else self._settle)(columns)
        return self._used(columns)

    def _current(self, stream: StreamKey) -> Columns | None:
        """Return a stream's columns if nothing can have changed since they were filled; else None.

        Columns that are returned become the most recently used.
        """
        held = self.whole(stream)
        if held is None or stream in self._filling or held.traces or not self._is_read(stream, held.upto):
            return None
        self._held[stream] = self._held.pop(stream)  # move it to the end, as the most recently used
        return held

    def _readable(self, stream: StreamKey) -> Columns | None:
        columns = self._held.get(stream)
        return columns if columns is not None and columns.complete and not columns.traces else None

    async def of(self, stream: StreamKey, ids: list[str]) -> Columns:
        """Return columns with the current state of at least these records, without waiting for the whole stream."""
        columns = await self.at_hand(stream)
        if columns is not None and not columns.behind:
            return columns
        some = Columns(stream, self._embedder, self._width)
        some.take(Changes(await self._store.records(stream, ids)))
        return some

    def whole(self, stream: StreamKey) -> Columns | None:
        """Return a stream's columns if they are in the cache and contain all changes up to some earlier time.

        The newest changes may be missing. Return None for other columns, and while many newer changes are read in the
        background (`behind`).
        """
        columns = self._held.get(stream)
        return columns if columns is not None and columns.complete and not columns.behind else None

    async def settled(self) -> None:
        """Wait until all background work is done."""
        while tasks := [*self._behind.values(), *self._keeping.values()]:
            await asyncio.gather(*tasks)

    def _lock(self, stream: StreamKey) -> asyncio.Lock:
        return self._filling.setdefault(stream, asyncio.Lock())

    async def _begun(self, stream: StreamKey) -> Columns:
        """Return the columns in memory, else the columns in the file, else empty columns."""
        if stream not in self._held:
            self._held[stream] = await self._kept(stream) or self._empty(stream)
        return self._held[stream]

    def _empty(self, stream: StreamKey) -> Columns:
        return Columns(stream, self._embedder, self._width)

    def _anew(self, stream: StreamKey) -> Columns:
        """Return new empty columns, because the old ones contain traces of erased records; clear other caches, too."""
        caches.empty(stream)
        columns = self._held[stream] = self._empty(stream)
        return columns

    async def _kept(self, stream: StreamKey) -> Columns | None:
        """Return columns from their file, and begin to verify the rest of the file.

        Return None if there is no usable file. A file that cannot be read, is damaged or does not match this store is
        deleted.
        """
        if self._folder is None or not (path := path_of(self._folder, stream, self._embedder)).is_file():
            return None
        columns = self._empty(stream)
        try:
            file = await asyncio.to_thread(load, path, columns)
            count = len(columns)
            sample = [columns.ids[at] for at in sorted({*range(0, count, count // SAMPLE + 1), count - 1})]
            there = await self._store.records(stream, sample)
            if [record.id for record in there] != sample or await self._store.version() < columns.upto:
                raise DamagedFileError(f"{path} belongs to another store")
            # checked last: an erasure that begins after this check discards the columns itself (by `forget`)
            if await self._is_erased(stream, file.meta["erased"]):
                raise DamagedFileError(f"{path} belongs to an erased stream")
        except (DamagedFileError, OSError, ValueError, KeyError, TypeError, IndexError):
            path.unlink(missing_ok=True)
            return None
        columns.kept, columns.complete = len(columns), True
        if stream not in self._keeping:
            self._begin(self._keeping, stream, partial(self._check, file))
        return columns

    async def _is_erased(self, stream: StreamKey, since: int) -> bool:
        """Return whether a whole stream was erased after the erasure `since`.

        `store.changes` cannot show this, because the rows that would name the erased records are deleted, too.
        """
        salt, erased = await self._store.erased_since(since)
        return any(each.whole and each.digest == digest_of(salt, stream) for each in erased)

    async def _check(self, file: ArrayFile, stream: StreamKey) -> None:
        """Verify the part of a file that was not verified when it was opened; damaged columns are dropped and
        rebuilt."""
        await self._rest()
        try:
            await asyncio.to_thread(verify, file)
        except DamagedFileError:
            delete_kept(self._folder, stream)
            self._drop(stream)

    async def _fill(self, columns: Columns) -> None:
        async for _ in columns.reading(self._store):
            await asyncio.sleep(0)
        await self._settle(columns)

    async def _settle(self, columns: Columns) -> None:
        if columns.vectors.is_far_behind:
            await self._in_steps(columns.vectors.settling())
        columns.complete, columns.behind, columns.vectors.behind = True, False, False

    async def _in_steps(self, steps: Iterator[None]) -> None:
        for _ in steps:
            await asyncio.sleep(0)

    async def _fill_behind(self, stream: StreamKey) -> None:
        await self._rest()
        await self.columns(stream)

    async def _rest(self) -> None:
        for _ in range(RESTS):
            await asyncio.sleep(REST_S)
            if not self._answering:
                break

    def _begin(
        self,
        tasks: dict[str, asyncio.Task[None]],
        stream: StreamKey,
        work: Callable[[StreamKey], Coroutine[Any, Any, None]],
    ) -> None:
        """Start background work. If the store fails, the work ends, and the next access starts it again."""

        async def run() -> None:
            with contextlib.suppress(MindstreamError, OSError):
                await work(stream)

        task = tasks[stream] = asyncio.ensure_future(run())
        task.add_done_callback(lambda done: tasks.pop(stream, None) if tasks.get(stream) is done else None)

    def _used(self, columns: Columns) -> Columns:
        """Cache columns as the most recently used ones, and return them.

        - If the cache is full, the least recently used columns are dropped.
        - If the columns have grown enough, writing them to a file begins.
        - If a record was erased while the columns were filled, the columns are returned, but not cached.
        """
        stream, count = columns.stream, len(columns)
        self._drop(stream)
        if columns.traces:  # a record was erased while the columns were filled: the next access rebuilds them
            return columns
        self._held[stream] = columns
        self._weights[stream] = count - columns.kept + columns.kept // MAPPED
        while len(self._held) > 1 and (len(self._held) > self._streams or sum(self._weights.values()) > self._records):
            self._drop(next(iter(self._held)))
        self.bound_texts(columns)
        is_due = count >= KEPT_FROM and count > columns.kept + columns.kept // GROWN
        if is_due and self._folder is not None and stream not in self._keeping:
            self._begin(self._keeping, stream, self._keep)
        return columns

    async def _keep(self, stream: StreamKey) -> None:
        """Write columns to a file and use the file (`_write`), then return the freed memory to the operating system.

        Writing the first file frees about 10 MB.
        """
        await self._write(stream)
        await asyncio.to_thread(release_heap)

    async def _write(self, stream: StreamKey) -> None:
        """Write columns to a file, then use the columns of the file instead, which need less memory."""
        # after an erasure, wait: if more follow, the file would have to be written again
        while (held := self._held.get(stream)) is not None and held.shortened:
            held.shortened = False
            await self._rest()
        known = await self._store.last_erasure()
        columns = await self.columns(stream)
        assert self._folder is not None
        upto, steps = columns.upto, keeping(columns, path_of(self._folder, stream, self._embedder), known)
        with contextlib.closing(steps):
            for step in steps:
                await asyncio.to_thread(step)
                if self._held.get(stream) is not columns:  # a record was erased, or the columns were dropped
                    if columns.traces:
                        delete_kept(self._folder, stream)
                    return
        gone = (await self._store.changes(stream, upto, 0, 1)).gone
        if gone or await self._is_erased(stream, known) or self._held.get(stream) is not columns:
            delete_kept(self._folder, stream)
            return
        async with self._lock(stream):
            if self._held.get(stream) is columns and (fresh := await self._kept(stream)):
                fresh.whole = columns.whole
                await self._fill(fresh)
                if self._held.get(stream) is columns:  # not replaced in the meantime
                    self._used(fresh)

    async def lose(self, stream: StreamKey, gone: Sequence[Record], changed: Sequence[tuple[Record, Record]]) -> bool:
        """Remove erased records from a stream's columns, and update reworded ones; False: the columns must be rebuilt.

        Args:
            gone: the erased records, with their content before the erasure.
            changed: records with changed words, each in its old and new form.
        """
        columns, lock = self._held.get(stream), self._lock(stream)
        if columns is None or lock.locked() or stream in self._behind:
            return False
        async with lock:
            if not columns.complete or columns.behind or columns.traces:
                return False
            ids = columns.around([*(record.id for record in gone), *(old.id for old, _ in changed)])
            near = {record.id: record for record in await self._store.records(stream, ids)}
            fresh = columns.without(gone, changed, near) if self._held.get(stream) is columns else None
            if fresh is None:
                return False
            self._held[stream], self._weights[stream] = fresh, len(fresh)
            columns.traces = True  # so that a task that is writing these columns to a file deletes the file
        for record in (*gone, *(new for _, new in changed)):
            columns.whole.drop(record.id)
        return True

    def forget(self, stream: str) -> None:
        """Drop a stream's columns and delete their file, after an erasure."""
        delete_kept(self._folder, StreamKey(stream))
        if (columns := self._held.get(stream)) is not None:
            columns.traces = True  # so that a task that is still filling these columns rebuilds them
            columns.whole.clear()  # so that a running recall does not return erased records
        self._drop(stream)

    def _drop(self, stream: str) -> None:
        for of_stream in (self._held, self._weights, self._texts):
            of_stream.pop(stream, None)

    def bound_texts(self, columns: Columns) -> None:
        """Register how many records with their texts the columns hold, and mark the columns as the last used.

        While all columns together hold more than WHOLE such records, the least recently used columns drop some.
        """
        self._texts.pop(columns.stream, None)
        self._texts[columns.stream] = len(columns.whole)
        while sum(self._texts.values()) > WHOLE:
            stream = next(iter(self._texts))
            self._texts.pop(stream)
            if longest := self._held.get(stream):
                longest.hold_less()
                self._texts[stream] = len(longest.whole)
