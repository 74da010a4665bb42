"""The seam: an embedder turns texts into unit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Embedder(Protocol):
    """Texts to vectors whose cosine says how alike they are.

    One that computes in this process says so by an attribute `in_process = True`: it may be busy, or still loading, but
    it answers, and is waited for; others are not waited for long (memory/recall/embedding).
    """

    @property
    def name(self) -> str:
        """Name the embedder; vectors of different embedders are never compared."""

    @property
    def width(self) -> int:
        """Return how many numbers a vector has."""

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, one row per text: shape (len(texts), width); a text without words gives zeros."""


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale each row to length one, in place; rows of zeros stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, norms, out=vectors, where=norms > 0)
    return vectors
