"""A stream's embedder, for which nobody waits long: it may be slow, silent, wrong, and come back later.

What is written waits a moment for its vector and is kept without one; a question waits a little longer and goes by its
words alone. Once the embedder was too late nobody waits for it again, until it has answered in time
(memory/missing_vectors asks it).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mindstream import caches
from mindstream.clock import SystemClock
from mindstream.errors import ModelUnavailable
from mindstream.memory.store.record import Vector
from mindstream.models.embedders.embedder import Embedder, unit
from mindstream.models.providers.failures import causes
from mindstream.tracing import genai, span

Floats = NDArray[np.float32]
AT_ONCE_S, SOON_S, LONG_S = 0.5, 1.0, 30.0
"""How long what is written, a question, and whoever works behind waits for vectors, in seconds."""
EACH_S = 0.01
"""So much longer for each text."""
RECENT = 1_024
"""So many texts that were embedded last are remembered with their vectors."""
BATCH = 256
"""So many texts are given to an embedder at once."""
WIDEST = 16_384
"""More numbers than any embedder gives."""
REAL = SystemClock()
"""An endpoint's silence is measured in the machine's own time, whatever clock the stream has."""


class Embedding:
    """An embedder and what is known of its manners.

    Attributes:
        is_slow: it did not answer a writer in time.
        is_silent: nor a question; or it failed.
        failure: what was wrong the last time.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.is_slow = self.is_silent = False
        self.failure = ""
        self._in_process = bool(getattr(embedder, "in_process", False))
        self._recent: dict[str, NDArray[np.float32]] = {}
        caches.watch(self)

    def forget(self, _: str) -> None:
        """Let go of the texts that were embedded last: something was erased."""
        self._recent.clear()

    async def at_once(self, texts: Sequence[str]) -> list[Vector | None]:
        """Embed what is to be written; None where there is no vector in time."""
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
        """Embed a question; None where the embedder does not answer in time, or is known not to."""
        rows = None if self.is_silent else await self._within(SOON_S, texts)
        if rows is None:
            self.is_slow = self.is_silent = True
        return rows

    async def patiently(self, texts: Sequence[str]) -> Floats | None:
        """Embed, however long it takes, and learn how long others would have to wait; None where it fails."""
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
        """Ask the embedder itself."""
        patience_s = LONG_S if self._in_process else patience_s
        try:
            async with asyncio.timeout(patience_s):
                rows = sound(await self._embed(texts), len(texts), self.embedder.width)
            if self._in_process and len(texts) <= RECENT:
                self._recent |= zip(texts, rows, strict=True)
                while len(self._recent) > RECENT:
                    del self._recent[next(iter(self._recent))]
            return rows
        except TimeoutError as late:  # an endpoint that failed is asked again meanwhile
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


def sound(rows: Floats, count: int, width: int = 0) -> Floats:
    """Return vectors, one a text, of length 1 or 0.

    Raises:
        ModelUnavailable: they are not finite, or not as many or as wide as they should be.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.asarray(rows, np.float32)
        if rows.ndim != 2 or len(rows) != count or not max(1, width) <= rows.shape[1] <= (width or WIDEST):
            raise ModelUnavailable(f"the embedder gave numbers of the shape {rows.shape} for {count} texts")
        lengths = np.linalg.norm(rows, axis=1)
    if not np.isfinite(lengths).all():
        raise ModelUnavailable("the embedder gave vectors that are no finite numbers")
    return unit(rows.copy()) if np.any(lengths > 1.01) else rows
