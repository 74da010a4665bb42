"""Vectors that come later: a task behind a stream asks an embedder that was silent, until it has answered."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mindstream.log.events import Failed
from mindstream.memory.recall.embedding import Embedding, Floats
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Revision

if TYPE_CHECKING:
    from mindstream.memory.store.columns import Columns
    from mindstream.memory.stream import Stream

MOST = 10_000
"""So many records wait at most; `reembed` finds the others."""
AT_ONCE = 64
REST_S, LONGEST_REST_S = 0.5, 60.0
"""How long to rest after a failure; twice as long each time."""
PROBE = "hello"


class MissingVectors:
    """The records of a stream that were written without a vector, and the task that gives them one."""

    def __init__(self, stream: Stream, embedding: Embedding) -> None:
        self._stream, self._embedding = stream, embedding
        self._owed: dict[str, None] = {}
        self._waiting: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._at_once = AT_ONCE
        self._said_silent = self._looked_for_foreign = False

    def owe(self, ids: Iterable[str]) -> None:
        """Take note of records that could not be embedded; they count once they are written."""
        _add(self._owed, ids)

    def watch(self, written: Iterable[str]) -> None:
        """Look after those of these records (ids) that are owed a vector."""
        if self._owed:
            ids = [id_ for id_ in written if id_ in self._owed]
            for id_ in ids:
                del self._owed[id_]
            _add(self._waiting, ids)
            if ids:
                self.begin()

    def begin(self) -> None:
        """Ask the embedder in the background, if nobody does already."""
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())

    async def tell(self, silent: str) -> None:
        """Say once that some records, or for the time being all (`silent`: why), are found by their words only."""
        if silent:
            self.begin()
            if not self._said_silent:
                self._stream.show(Failed(text=silent, where="recall"))
            self._said_silent = True
            return
        self._said_silent = False
        columns = None if self._looked_for_foreign else self._stream.columns_held()
        if columns is not None:
            self._looked_for_foreign = True
            if offer := self._offer(columns):
                self._stream.show(Failed(text=offer, where="recall"))

    def _offer(self, columns: Columns) -> str:
        """Say how many records the stream's embedder has made no vector of, and what to do; "" where there are none."""
        if not columns.foreign:
            return ""
        return (
            f"{columns.foreign:,} of {len(columns):,} records have no vector of {self._stream.embedder.name} and are"
            " found by their words only: `await stream.reembed()` gives them one"
        )

    async def close(self) -> None:
        """Stop; what still waits is found by its words, and by `reembed`."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        rest_s = REST_S
        while self._waiting or self._embedding.is_silent:
            asked = self._embedding.is_silent
            answers = not asked or await self._embedding.patiently([PROBE]) is not None
            with contextlib.suppress(Exception):  # whatever the store does, what waits goes on waiting
                if answers and await self._give(sure=asked):
                    rest_s = REST_S
                    continue
            await asyncio.sleep(rest_s)
            rest_s = min(2 * rest_s, LONGEST_REST_S)

    async def _give(self, sure: bool) -> bool:
        """Give some records their vectors; return whether there is reason to go on at once.

        `sure`: the embedder has just answered something else.
        """
        stream, ids = self._stream, list(self._waiting)[: self._at_once]
        records = await stream.store.records(stream.key, ids)
        rows = await self._embedding.patiently([record.text for record in records]) if records else None
        if records and rows is None:
            if sure and len(ids) == 1:  # it answers, but not to this
                del self._waiting[ids[0]]
            self._at_once = 1
            return False
        if rows is not None:
            await give(stream, records, rows)
        for id_ in ids:
            del self._waiting[id_]
        self._at_once = min(AT_ONCE, 2 * self._at_once)
        return not self._embedding.is_silent


async def give(stream: Stream, records: Sequence[Record], rows: Floats) -> None:
    """Write the vectors of records that are there."""
    revisions = [
        Revision(id=record.id, embedder=stream.embedder.name, vector=vector)
        for record, vector in zip(records, rows.astype(np.float16), strict=True)
    ]
    await stream.commit(revisions=revisions)


def _add(waiting: dict[str, None], ids: Iterable[str]) -> None:
    waiting.update(dict.fromkeys(ids))
    while len(waiting) > MOST:
        del waiting[next(iter(waiting))]
