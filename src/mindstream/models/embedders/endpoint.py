"""Embedders behind an endpoint with OpenAI's protocol."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

from mindstream.arrays import Floats
from mindstream.clock import Clock, SystemClock
from mindstream.errors import ModelUnavailable
from mindstream.models.embedders.embedder import unit
from mindstream.models.providers.adapter import waits
from mindstream.models.providers.address import Address
from mindstream.models.providers.failures import failures
from mindstream.models.wrappers.recovery import Pauses

MAX_RESPONSE_BYTES = 16_000_000
"""Maximum size of a response: 128 vectors of 4,096 numbers are 11 MB as text."""
MAX_WIDTH = 16_384
"""Maximum number of dimensions; no embedder has more."""
_BATCH = 128
MAX_TEXT_BYTES = 32_000
"""Maximum bytes of UTF-8 that are sent of a text: about 8,000 tokens, the usual limit of embedding models."""
_WIDTHS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}


class Endpoint:
    """An embedder at the endpoint of an address.

    Attributes:
        width: number of dimensions of the vectors. For a model whose number is not known in advance, 0 until the
            endpoint's first answer.
    """

    def __init__(self, address: Address, timeout_s: float | None = None, clock: Clock | None = None) -> None:
        self.name, self._address = address.name, address
        self.width = _WIDTHS.get(address.model, 0)
        self._timeout_s = timeout_s or waits(local=address.is_local).between_s
        self._clock, self._pauses = clock or SystemClock(), Pauses(self.name)

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, one row per text. A blank text is not sent, and its row is zeros.

        If the endpoint is down or busy, the request is repeated after pauses, as for models (`Pauses`). If the caller
        cancels during a pause, the CancelledError or TimeoutError has the endpoint's error as its cause.

        Raises:
            ModelError: the endpoint failed (see `failures`), or returned invalid vectors.
        """
        given = [place for place, text in enumerate(texts) if text.strip()]
        rows = await self._ask([_beginning(texts[place]) for place in given]) if given else 0.0
        found = np.zeros((len(texts), self.width), dtype=np.float32)
        found[given] = rows
        return unit(found)

    async def _ask(self, texts: list[str]) -> Floats:
        wire = await asyncio.to_thread(import_module, "mindstream.models.providers.wire")
        # opened per request: embedders have no method to close it
        async with wire.Client(self._address, MAX_RESPONSE_BYTES) as client:
            batches = (texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH))
            return np.concatenate([await self._ask_again(client, batch, wire.ERROR_READERS) for batch in batches])

    async def _ask_again(self, client: Any, batch: list[str], readers: Any) -> Floats:
        """Return the vectors of a batch; ask again after a pause if the endpoint is unavailable."""
        body = {"model": self._address.model, "input": batch, "encoding_format": "base64"}
        for attempt in count(1):
            try:
                with failures(self._address, readers):
                    async with asyncio.timeout(self._timeout_s):
                        answer = await client.ask("POST", "/embeddings", body)
                    return self._checked(
                        [_numbers(each["embedding"]) for each in _in_order(answer["data"])], len(batch)
                    )
            except ModelUnavailable as error:
                pause_s = self._pauses.after(attempt, error)
                if pause_s is None:
                    raise
                try:
                    await self._clock.sleep(pause_s)
                except asyncio.CancelledError as cancelled:
                    raise cancelled from error
        raise AssertionError("unreachable")

    def _checked(self, rows: Sequence[Sequence[float]], count: int) -> Floats:
        """Return vectors as an array, and record their width.

        Raises:
            ModelUnavailable: their number, width or values are not valid.
        """
        with np.errstate(over="ignore"):
            vectors = np.array(rows, dtype=np.float32)
        width = vectors.shape[1] if vectors.ndim == 2 else 0
        if len(vectors) != count or not 0 < width <= MAX_WIDTH or width != (self.width or width):
            expected = f"{count} vectors of {self.width or f'at most {MAX_WIDTH:,}'} numbers"
            raise ModelUnavailable(f"{self.name} returned an array of shape {vectors.shape} instead of {expected}")
        norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
        if not np.all(np.isfinite(norms) & (norms > 0)):
            raise ModelUnavailable(f"{self.name} returned vectors that are zero, infinite or not numbers")
        self.width = width
        return vectors


def _beginning(text: str) -> str:
    return text.encode(errors="ignore")[:MAX_TEXT_BYTES].decode(errors="ignore")


def _numbers(embedding: Any) -> Any:
    """Return a vector's numbers; some endpoints send a list instead of base64."""
    return np.frombuffer(base64.b64decode(embedding), "<f4") if isinstance(embedding, str) else embedding


def _in_order(vectors: list[Any]) -> list[Any]:
    """Return vectors in the order of their texts; some endpoints number them and send them in another order."""
    places = [vector.get("index") for vector in vectors]
    if all(place is None for place in places):
        return vectors
    if sorted(place for place in places if isinstance(place, int)) != list(range(len(places))):
        raise ValueError(f"the indices of the vectors must be 0 to {len(places) - 1}, each once, not {places[:20]}")
    return sorted(vectors, key=lambda vector: vector["index"])
