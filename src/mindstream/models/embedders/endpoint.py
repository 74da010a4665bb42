"""Embedders behind an endpoint that speaks OpenAI's protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from mindstream.errors import ModelUnavailable
from mindstream.models.embedders.embedder import unit
from mindstream.models.provider import CONNECT_S, SILENCE_S, Address, failures, openai_like

_BATCH = 128
_WIDTHS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}


class Endpoint:
    """An embedder by its address.

    Attributes:
        width: 0 until the endpoint's first answer where the model is not a well-known one.
    """

    def __init__(self, address: Address, silence_s: float = SILENCE_S) -> None:
        self.name = address.name
        self.width = _WIDTHS.get(address.model, 0)
        self._address = address
        self._silence_s = silence_s

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, one row per text; a blank text gives zeros and is not sent.

        Raises:
            ModelError: as a model's endpoint does.
        """
        spoken = [i for i, text in enumerate(texts) if text.strip()]
        rows = await self._asked([texts[i] for i in spoken]) if spoken else np.zeros((0, self.width), dtype=np.float32)
        found = np.zeros((len(texts), self.width), dtype=np.float32)
        found[spoken] = rows
        return unit(found)

    async def _asked(self, texts: list[str]) -> NDArray[np.float32]:
        at, rows = self._address, list[Sequence[float]]()
        adapter = await asyncio.to_thread(import_module, "pydantic_ai.embeddings.openai")
        from openai import DefaultAsyncHttpxClient, Timeout

        async with DefaultAsyncHttpxClient(timeout=Timeout(None, connect=CONNECT_S)) as http:
            model = adapter.OpenAIEmbeddingModel(at.model, provider=openai_like(at, http))
            with failures(at, self._silence_s):
                for start in range(0, len(texts), _BATCH):
                    async with asyncio.timeout(self._silence_s):
                        answer = await model.embed(texts[start : start + _BATCH], input_type="document")
                    rows.extend(answer.embeddings)
                vectors = np.array(rows, dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or vectors.shape[1] != (self.width or vectors.shape[1]):
            wanted = f"{len(texts)} vectors" + (f" of {self.width} numbers" if self.width else "")
            raise ModelUnavailable(f"{self.name} answered {vectors.shape} numbers instead of {wanted}")
        self.width = vectors.shape[1]
        return vectors
