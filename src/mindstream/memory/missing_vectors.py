"""Vectors that are added later: records that were written while the embedder was unavailable get their vector from a
background task, which retries the embedder."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mindstream.errors import ModelUnavailable
from mindstream.log.events import Failed
from mindstream.memory.recall.embedding import PROBE, Embedding, Floats, embed_each
from mindstream.memory.store.record import Record, Vector
from mindstream.memory.store.store import Entry, Revision
from mindstream.memory.store.validation import shortened

if TYPE_CHECKING:
    from mindstream.memory.store.columns import Columns
    from mindstream.memory.stream import Stream

MAX_WAITING = 10_000
"""Maximum number of records that wait for a vector; `reembed` finds the others."""
BATCH = 64
REST_S, MAX_REST_S = 0.5, 60.0
"""Pause, in seconds, after a failure; it doubles with each failure up to the maximum."""
MAX_REASON = 200
"""Maximum number of characters of an embedder's error message in the log."""


class MissingVectors:
    """The records of a stream that were written without a vector, and the task that adds their vectors."""

    def __init__(self, stream: Stream, embedding: Embedding) -> None:
        self._stream, self._embedding = stream, embedding
        self._owed: dict[str, None] = {}
        self._waiting: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._said_silent = self._looked_for_foreign = False

    def owe(self, ids: Iterable[str]) -> None:
        """Note records that could not be embedded; they are queued when they have been written (`watch`)."""
        _add(self._owed, ids)

    def watch(self, written: Iterable[str]) -> None:
        """Queue those of the written records that `owe` has noted, and start the background task."""
        if self._owed:
            ids = [id_ for id_ in written if id_ in self._owed]
            for id_ in ids:
                del self._owed[id_]
            _add(self._waiting, ids)
            if ids:
                self.begin()

    def begin(self) -> None:
        """Start the background task, unless it is running."""
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())

    async def tell(self, silent: str) -> str:
        """Return why some or all records are found only by their words; "" if vectors of all records were compared.

        A reason is published to the feed once.

        Args:
            silent: why the embedder gives no vectors at present, so that all records are affected; "": it works.
        """
        if silent:
            self.begin()
            if not self._said_silent:
                self._stream.show(Failed(text=silent, where="recall"))
            self._said_silent = True
            return silent
        self._said_silent = False
        columns = self._stream.columns_held()
        offer = self._offer(columns) if columns is not None else ""
        if columns is not None and not self._looked_for_foreign:
            self._looked_for_foreign = True
            if offer:
                self._stream.show(Failed(text=offer, where="recall"))
        return offer

    def _offer(self, columns: Columns) -> str:
        """Return how many records have no vector of the stream's embedder, and what to do; "" if there are none."""
        if not columns.foreign:
            return ""
        return (
            f"{columns.foreign:,} of {len(columns):,} records have no vector of {self._stream.embedder.name} and are"
            " found by their words only: `await stream.reembed()` gives them one"
        )

    async def close(self) -> None:
        """Stop the task. Records that still wait stay without a vector until `reembed` is called."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        rest_s = REST_S
        while self._waiting or self._embedding.is_silent:
            answers = not self._embedding.is_silent or await self._embedding.patiently([PROBE]) is not None
            with contextlib.suppress(Exception):  # whatever fails in the store, the records stay in the queue
                if answers and await self._give():
                    rest_s = REST_S
                    continue
            await asyncio.sleep(rest_s)
            rest_s = min(2 * rest_s, MAX_REST_S)

    async def _give(self) -> bool:
        """Add the vectors of some records; return whether to continue at once, without a pause."""
        stream, ids = self._stream, list(self._waiting)[:BATCH]
        records = await stream.store.records(stream.key, ids)
        try:
            rows = await embed_each(self._ask, [record.text for record in records])
        except ModelUnavailable:
            return False
        if records:
            await give(stream, records, rows)
        for id_ in ids:
            del self._waiting[id_]
        return not self._embedding.is_silent

    async def _ask(self, texts: Sequence[str]) -> Floats:
        rows = await self._embedding.patiently(texts)
        if rows is None:
            raise ModelUnavailable(self._embedding.failure)
        return rows


async def give(stream: Stream, records: Sequence[Record], rows: Sequence[Vector | str]) -> int:
    """Write vectors of stored records, and log which texts the embedder rejected; return the number of written vectors.

    Args:
        rows: for each record its vector, or the reason why there is none.
    """
    pairs, name = list(zip(records, rows, strict=True)), stream.embedder.name
    refused = [
        Failed(
            text=f"{name} rejects the text of record {record.id} ({len(record.text):,} characters), which is therefore"
            f" found by its words only: {shortened(row, MAX_REASON)}",
            where="embedding",
        )
        for record, row in pairs
        if isinstance(row, str)
    ]
    taken = [Revision(id=record.id, embedder=name, vector=row) for record, row in pairs if not isinstance(row, str)]
    await stream.commit(*(Entry(event, "embedder", system=True) for event in refused), revisions=taken)
    return len(taken)


def _add(waiting: dict[str, None], ids: Iterable[str]) -> None:
    waiting.update(dict.fromkeys(ids))
    while len(waiting) > MAX_WAITING:
        del waiting[next(iter(waiting))]
