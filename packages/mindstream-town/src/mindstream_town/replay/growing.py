"""The recording of a running town: it is extended by the new rows of the log, and each page gets the entries it
lacks."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mindstream.chance import token
from mindstream.location import AnyData
from mindstream.log.events import Logged
from mindstream.log.names import StreamName
from mindstream.memory.opening import open_store
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Store
from mindstream_town.events import TownEvent
from mindstream_town.inspect.history import History, read_history
from mindstream_town.journal import read_setting, rows_after
from mindstream_town.replay.ground import ground_of
from mindstream_town.replay.recording import Recorder, Sizes, counts, order
from mindstream_town.setting import Setting

MOST_MARKS = 256
"""Maximum number of marks from which a page can continue; older marks are dropped."""


@dataclass(frozen=True)
class Growth:
    """A complete recording, or an addition to one.

    Attributes:
        mark: value of `since` for the next request.
        whole: whether it is the complete recording; else it has only the entries since the requested mark.
        step: the last finished step; -1: none.
    """

    mark: str
    whole: bool
    step: int
    recording: dict[str, object]


class GrowingRecording:
    """A town's recording from its first step, read once and then extended. It changes no data.

    After an erasure it is read again completely.
    """

    def __init__(self, data: AnyData) -> None:
        self._data, self._reading = data, asyncio.Lock()
        self._history: tuple[int, History] | None = None
        self._begin(None)

    def _begin(self, setting: Setting | None) -> None:
        self._recorder = Recorder(setting) if setting is not None else None
        self._setting = setting
        self._made, self._grown, self._version, self._seq, self._step = token(6), 0, -2, 0, -1
        self._points: dict[str, int] = {}
        self._marks: OrderedDict[str, Sizes] = OrderedDict()

    async def since(self, mark: str) -> Growth:
        """Return the additions since a mark; for "" or an unknown mark, return the complete recording.

        Raises:
            InputError: there is no town.
            StorageError: the folder cannot be read.
        """
        async with self._reading:
            async with open_store(self._data) as store:
                await self._read(store)
            assert self._recorder is not None and self._setting is not None
            before, last = self._marks.get(mark), max(self._step, 0)
            now = f"{self._made}.{self._grown}"
            if before is not None:
                return Growth(now, False, self._step, self._recorder.part(before, last))
            whole = await asyncio.to_thread(self._recorder.whole, 0, last)
            return Growth(now, True, self._step, whole | ground_of(self._setting))

    async def history(self) -> History:
        """Return the town's history; it is read again whenever the store has changed."""
        async with self._reading:
            async with open_store(self._data) as store:
                version = await store.version()
                if self._history is None or self._history[0] != version:
                    self._history = version, await read_history(store)
            return self._history[1]

    async def _read(self, store: Store) -> None:
        """Read the new rows of the log."""
        version = await store.version()
        if version == self._version:
            return
        setting = await read_setting(store)
        if self._setting is None or tuple(setting.people) != tuple(self._setting.people):
            self._begin(setting)
        try:
            if not await self._add(store, setting):
                self._begin(setting)
                await self._add(store, setting)
        except BaseException:
            self._begin(None)  # rows may be applied partly, so the next call reads everything again
            raise
        self._version = version

    async def _add(self, store: Store, setting: Setting) -> bool:
        """Add new rows and records; return False after an erasure, in which case some may have been added."""
        rows, records = [row async for row in rows_after(store, self._seq)], dict[str, list[Record]]()
        for name in setting.people:
            key = store.key(StreamName("resident", name))
            changes = await store.changes(key, self._points.get(name, 0))
            if changes.gone and name in self._points:
                return False
            self._points[name] = changes.upto
            records[name] = changes.records
        await asyncio.to_thread(self._take_in, rows, records, setting)
        if rows:
            self._seq, self._grown = rows[-1].seq, self._grown + 1
            done = (row.event.step for row in rows if isinstance(row.event, TownEvent))
            self._step = max(self._step, *done, -1)
        self._mark()
        return True

    def _take_in(self, rows: Sequence[Logged], records: Mapping[str, Sequence[Record]], setting: Setting) -> None:
        """Apply rows; called in a thread, because it can take long for a large town."""
        assert self._recorder is not None
        for name, each in records.items():
            self._recorder.remember(name, each)
        for row in sorted((row for row in rows if counts(row, setting)), key=lambda row: order(row, setting)):
            self._recorder.take(row)

    def _mark(self) -> None:
        assert self._recorder is not None
        self._marks[f"{self._made}.{self._grown}"] = self._recorder.sizes()
        if len(self._marks) > MOST_MARKS:
            self._marks.popitem(last=False)
