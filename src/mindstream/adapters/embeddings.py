"""Others' embedders as ours: a LangChain `Embeddings`, or a function from texts to vectors; batched, with a cache.

What speaks OpenAI's protocol needs none of this: `embed="openai:NAME"`, or `http://host:port/v1#NAME`.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindstream import caches
from mindstream.models.embedders.embedder import Embedder, unit

BATCH, KEPT = 128, 4_096
"""So many texts are given to it at once; so many vectors are kept, by a digest of their texts."""


class ForeignEmbedder:
    """An embedder of ours, made of one of others.

    Args:
        foreign: has `embed_documents`, or `aembed_documents`; or takes texts and returns vectors, at once or awaited.
        name: under which its vectors are kept; vectors of different names are never compared. "": what it is called.
        in_process: it computes here, and is waited for; an endpoint is not waited for long. None: a function does.
    """

    def __init__(
        self, foreign: Any, name: str = "", *, in_process: bool | None = None, batch: int = BATCH, kept: int = KEPT
    ) -> None:
        self.name = name or _name_of(foreign)
        self.width = 0
        self.in_process = inspect.isroutine(foreign) if in_process is None else in_process
        self._foreign, self._batch, self._most = foreign, batch, kept
        self._kept = OrderedDict[bytes, NDArray[np.float32]]()
        caches.watch(self)

    def forget(self, _: str) -> None:
        """Let go of all vectors: something was erased."""
        self._kept.clear()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, one row per text; a blank text gives zeros and is not asked for."""
        digests = [hashlib.blake2b(text.encode(errors="replace"), digest_size=16).digest() for text in texts]
        found = {digest: self._kept[digest] for digest in digests if digest in self._kept}
        new = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in found}
        wanted = {digest: text for digest, text in new.items() if text.strip()}
        for start in range(0, len(wanted), self._batch):
            some = list(wanted.items())[start : start + self._batch]
            rows = np.array(await self._ask([text for _, text in some]), dtype=np.float32)
            self.width = self.width or int(rows.shape[1])
            found |= zip((digest for digest, _ in some), unit(rows), strict=True)
        self._kept |= found
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        nothing = np.zeros(self.width, np.float32)
        return (
            np.stack([found.get(digest, nothing) for digest in digests])
            if texts
            else np.zeros((0, self.width), np.float32)
        )

    async def _ask(self, texts: list[str]) -> Sequence[Sequence[float]]:
        answer = await asyncio.to_thread(_plain(self._foreign), texts)
        return await answer if inspect.isawaitable(answer) else answer


def as_embedder(embed: Any, name: str = "") -> Embedder | str:
    """Return an embedder of ours as it stands, or by its name; anybody else's made one."""
    return (
        embed
        if isinstance(embed, str) or (hasattr(embed, "embed") and hasattr(embed, "width"))
        else ForeignEmbedder(embed, name)
    )


def _plain(foreign: Any) -> Callable[[list[str]], Any]:
    """Return what is called with texts; LangChain's own `aembed_documents` only hands over to a thread."""
    named: Callable[[list[str]], Any] = foreign
    for name in ("aembed_documents", "embed_documents"):
        named = getattr(foreign, name, named)
    return named


def _name_of(foreign: Any) -> str:
    model = next((each for key in ("model", "model_name", "func") if (each := getattr(foreign, key, ""))), "")
    kind = foreign if inspect.isroutine(foreign) else type(foreign)
    named = model if isinstance(model, str) else getattr(model, "__qualname__", "")
    return ":".join(
        filter(None, ("langchain" if hasattr(foreign, "embed_query") else "function", kind.__qualname__, named))
    )
