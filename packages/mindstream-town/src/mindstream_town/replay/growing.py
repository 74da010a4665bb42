"""The recording of a town that may live on meanwhile: what is new of it is read from its log, and told to each page."""

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
"""Of so many moments at which it had grown it is known how long all was."""


@dataclass(frozen=True)
class Growth:
    """A recording, or what was added to it.

    Attributes:
        mark: by which the next one is asked for.
        whole: all of it; else only what came since the mark that was named.
        step: the last step that is done; -1: none.
    """

    mark: str
    whole: bool
    step: int
    recording: dict[str, object]


class GrowingRecording:
    """A town's recording from its first step on, read once and then only further. Nothing is written.

    What somebody had erased is not kept: then all is read anew.
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
        """Return what was added since a mark; all of it where that is not known, or "".

        Raises:
            InputError: no town lives there.
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
        """Return what happened, as `town/inspect` looks at it; it is read anew where something has been written."""
        async with self._reading:
            async with open_store(self._data) as store:
                version = await store.version()
                if self._history is None or self._history[0] != version:
                    self._history = version, await read_history(store)
            return self._history[1]

    async def _read(self, store: Store) -> None:
        """Take in what has been written since the last time."""
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
            self._begin(None)  # some of it was taken in, nobody knows how much: the next one reads all anew
            raise
        self._version = version

    async def _add(self, store: Store, setting: Setting) -> bool:
        """Add rows and records; return False, with some of it added, where something was erased."""
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
        """Take in what was read, which takes a while for a large town: in a thread, so that others are answered."""
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
