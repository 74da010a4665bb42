"""Vectors that are added later: a background task retries an unavailable embedder for records written without a
vector."""

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
"""Maximum number of waiting records; `reembed` finds any others."""
BATCH = 64
REST_S, MAX_REST_S = 0.5, 60.0
"""Pause after a failure, doubled each time up to the maximum, in seconds."""
MAX_REASON = 200
"""Maximum number of characters of an embedder's reason that are logged."""


class MissingVectors:
    """The records of a stream that were written without a vector, and the task that adds one."""

    def __init__(self, stream: Stream, embedding: Embedding) -> None:
        self._stream, self._embedding = stream, embedding
        self._owed: dict[str, None] = {}
        self._waiting: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._said_silent = self._looked_for_foreign = False

    def owe(self, ids: Iterable[str]) -> None:
        """Note records that could not be embedded; they count once they are written."""
        _add(self._owed, ids)

    def watch(self, written: Iterable[str]) -> None:
        """Queue those of these written records that lack a vector."""
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
        """Return why some records, or for the time being all (`silent`: the reason), are found only by their words.

        The reason is published to the feed once.
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
        """Stop. Records that still wait are found by their words, and by `reembed`."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        rest_s = REST_S
        while self._waiting or self._embedding.is_silent:
            answers = not self._embedding.is_silent or await self._embedding.patiently([PROBE]) is not None
            with contextlib.suppress(Exception):  # after any failure of the store the records keep waiting
                if answers and await self._give():
                    rest_s = REST_S
                    continue
            await asyncio.sleep(rest_s)
            rest_s = min(2 * rest_s, MAX_REST_S)

    async def _give(self) -> bool:
        """Give some records their vectors; return whether there is reason to go on at once."""
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
    """Write vectors of stored records, and log which texts the embedder refused; return how many got a vector.

    Args:
        rows: for each record its vector, or why there is none.
    """
    pairs, name = list(zip(records, rows, strict=True)), stream.embedder.name
    refused = [
        Failed(
            text=f"{name} refuses the text of record {record.id} ({len(record.text):,} characters), which is found by"
            f" its words only: {shortened(row, MAX_REASON)}",
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
