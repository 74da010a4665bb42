"""Use any embedder in mindstream, in batches and with a cache: a LangChain `Embeddings`, a function, or a name.

    Memory.open("data", "ann", embed=AnyEmbedder(OpenAIEmbeddings(model="text-embedding-3-small")))

Endpoints with OpenAI's protocol need no adapter: `openai:NAME`, `http://host:port/v1#NAME`.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from mindstream import caches
from mindstream.arrays import Floats
from mindstream.errors import ModelUnavailable
from mindstream.models.embedders.embedder import Embedder, embedder, unit

BATCH, KEPT = 128, 4_096
"""Maximum number of texts of a request, and of vectors in the cache (by digests of their texts)."""


class AnyEmbedder:
    """A mindstream embedder that wraps another embedder.

    Args:
        embed: a LangChain `Embeddings`; a sync or async function from texts to vectors; an embedder of mindstream, or
            the name of one.
        name: a name that is stored with the vectors; vectors of different names are never compared. "": derived from
            the embedder.
        in_process: whether the embedder computes in this process. True: recalls wait until it has finished. False (such
            as for an endpoint): recalls wait only a short time. None: the attribute `in_process` of `embed`; without
            such an attribute, True for a function and False for other objects.
    """

    def __init__(
        self, embed: Any, name: str = "", *, in_process: bool | None = None, batch: int = BATCH, kept: int = KEPT
    ) -> None:
        self._inner: Any = embedder(embed) if isinstance(embed, str) else embed
        self.name: str = name or _name_of(self._inner)
        self.width: int = getattr(self._inner, "width", 0)
        by_itself = getattr(self._inner, "in_process", inspect.isroutine(self._inner))
        self.in_process: bool = by_itself if in_process is None else in_process
        self._batch, self._most = batch, kept
        self._kept = OrderedDict[bytes, Floats]()
        caches.watch(self)

    def forget(self, _: str) -> None:
        """Empty the cache after an erasure."""
        self._kept.clear()

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, one row per text; blank texts give zeros without a request.

        Raises:
            ModelUnavailable: the embedder did not return one vector per text.
        """
        digests = [hashlib.blake2b(text.encode(errors="replace"), digest_size=16).digest() for text in texts]
        found = {digest: self._kept[digest] for digest in digests if digest in self._kept}
        new = {key: text for key, text in zip(digests, texts, strict=True) if key not in found and text.strip()}
        keys = list(new)
        for start in range(0, len(keys), self._batch):
            some = keys[start : start + self._batch]
            found |= zip(some, await self._ask([new[key] for key in some]), strict=True)
        for key, vector in found.items():
            self._kept[key] = vector
            self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        rows = [found.get(key, np.zeros(self.width, np.float32)) for key in digests]
        return np.stack(rows) if rows else np.zeros((0, self.width), np.float32)

    async def _ask(self, texts: list[str]) -> Floats:
        inner = self._inner
        if hasattr(inner, "embed_query"):
            answer = await inner.aembed_documents(texts)
        elif hasattr(inner, "embed"):
            answer = await inner.embed(texts)
        elif inspect.iscoroutinefunction(inner):
            answer = await inner(texts)
        else:
            answer = await asyncio.to_thread(inner, texts)
        rows = np.array(answer, dtype=np.float32)
        if rows.ndim != 2 or len(rows) != len(texts) or rows.shape[1] != (self.width or rows.shape[1]):
            raise ModelUnavailable(
                f"{self.name} returned an array of shape {rows.shape}; expected {len(texts)} vectors"
                f" of {self.width or 'equally many'} numbers"
            )
        self.width = int(rows.shape[1])
        return unit(rows)


def as_embedder(embed: Any) -> Embedder | str | None:
    """Return an embedder of mindstream, a name or None unchanged; wrap any other embedder."""
    is_ours = embed is None or isinstance(embed, str) or (hasattr(embed, "embed") and hasattr(embed, "width"))
    return embed if is_ours else AnyEmbedder(embed)


def _name_of(inner: Any) -> str:
    if isinstance(name := getattr(inner, "name", None), str) and hasattr(inner, "width"):
        return name
    if inspect.isroutine(inner):
        return f"function:{inner.__module__}.{inner.__qualname__}"
    model = next((each for key in ("model", "model_name") if isinstance(each := getattr(inner, key, None), str)), "")
    return ":".join(filter(None, ("langchain", type(inner).__qualname__, model)))
