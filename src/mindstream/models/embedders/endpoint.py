"""Embedders behind an endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mindstream.clock import Clock, SystemClock
from mindstream.errors import ModelUnavailable
from mindstream.models.embedders.embedder import unit
from mindstream.models.providers.address import Address
from mindstream.models.providers.failures import Fault, failures
from mindstream.models.providers.limits import waits
from mindstream.models.wrappers.retry import Pauses

Told: TypeAlias = Mapping[type[Exception], Callable[[Exception], Fault]]

WHOLE_BYTES = 16_000_000
"""128 vectors of 4,096 numbers are 11 MB as text."""
WIDEST = 16_384
"""More numbers a vector has no embedder."""
_BATCH = 128
MOST_BYTES = 32_000
"""Maximum part of a text that is sent, in bytes of UTF-8: about 8,000 tokens, the most that usual models read."""
_WIDTHS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}


class Endpoint:
    """An embedder by its address.

    Attributes:
        width: 0 until the endpoint's first answer where the model is not a well-known one.
    """

    def __init__(self, address: Address, timeout_s: float | None = None, clock: Clock | None = None) -> None:
        self.name = address.name
        self.width = _WIDTHS.get(address.model, 0)
        self._address = address
        self._timeout_s = timeout_s or waits(local=address.is_local).between_s
        self._clock = clock or SystemClock()
        self._pauses = Pauses(self.name)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, one row per text; a blank text gives zeros and is not sent.

        An endpoint that is down or busy is asked again, as a model's is (`Pauses`). Who does not wait so long finds
        what was wrong as the cause of the CancelledError or TimeoutError.

        Raises:
            ModelError: as a model's endpoint does; also for vectors that mean nothing.
        """
        spoken = [i for i, text in enumerate(texts) if text.strip()]
        rows = (
            await self._ask([_beginning(texts[i]) for i in spoken])
            if spoken
            else np.zeros((0, self.width), dtype=np.float32)
        )
        found = np.zeros((len(texts), self.width), dtype=np.float32)
        found[spoken] = rows
        return unit(found)

    async def _ask(self, texts: list[str]) -> NDArray[np.float32]:
        batches: list[NDArray[np.float32]] = []
        wire = await asyncio.to_thread(import_module, "mindstream.models.providers.wire")
        async with wire.Client(self._address, WHOLE_BYTES) as client:  # closed here: nobody closes an embedder
            for start in range(0, len(texts), _BATCH):
                batch = texts[start : start + _BATCH]
                batches.append(await self._insist(partial(self._ask_once, client, batch, wire.TOLD)))
        return np.concatenate(batches)

    async def _insist(self, ask: Callable[[], Awaitable[NDArray[np.float32]]]) -> NDArray[np.float32]:
        attempt = 1
        while True:
            try:
                return await ask()
            except ModelUnavailable as error:
                pause_s = self._pauses.after(attempt, error)
                if pause_s is None:
                    raise
                try:
                    await self._clock.sleep(pause_s)
                except asyncio.CancelledError as cancelled:
                    raise cancelled from error
            attempt += 1

    async def _ask_once(self, client: Any, batch: list[str], told: Told) -> NDArray[np.float32]:
        asked = {"model": self._address.model, "input": batch, "encoding_format": "base64"}
        with failures(self._address, told):
            async with asyncio.timeout(self._timeout_s):
                answer = await client.ask("POST", "/embeddings", asked)
            return self._checked([_numbers(each["embedding"]) for each in _in_order(answer["data"])], len(batch))

    def _checked(self, rows: Sequence[Sequence[float]], count: int) -> NDArray[np.float32]:
        """Return vectors as an array if they are as many, as wide and as sound as they have to be."""
        with np.errstate(over="ignore"):
            vectors = np.array(rows, dtype=np.float32)
        width = vectors.shape[1] if vectors.ndim == 2 else 0
        if len(vectors) != count or not 0 < width <= WIDEST or width != (self.width or width):
            wanted = f"{count} vectors" + (f" of {self.width} numbers" if self.width else "")
            raise ModelUnavailable(f"{self.name} answered {vectors.shape} numbers instead of {wanted}")
        norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
        if not np.all(np.isfinite(norms)) or np.any(norms == 0):
            raise ModelUnavailable(f"{self.name} answered vectors that are zero, infinite or no numbers")
        self.width = width
        return vectors


def _beginning(text: str) -> str:
    if len(text) <= MOST_BYTES // 4:
        return text
    return text.encode(errors="ignore")[:MOST_BYTES].decode(errors="ignore")


def _numbers(embedding: Any) -> Any:
    """Return a vector's numbers; an endpoint may know no base64, and list them."""
    return np.frombuffer(base64.b64decode(embedding), "<f4") if isinstance(embedding, str) else embedding


def _in_order(vectors: list[Any]) -> list[Any]:
    """Return vectors in the order of their texts; an endpoint may send them in another and number them."""
    places = [vector.get("index") for vector in vectors]
    if any(place is not None for place in places):
        if sorted(place for place in places if isinstance(place, int)) != list(range(len(places))):
            raise ValueError("the vectors' indices are not those of the texts")
        vectors = sorted(vectors, key=lambda vector: vector["index"])
    return vectors
