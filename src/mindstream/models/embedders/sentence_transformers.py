"""Embedders of the package sentence-transformers: better than the default, and slower; PyTorch comes with them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mindstream.errors import SettingsError


class SentenceTransformers:
    """A model by its name on the hub, or in a folder; it is loaded when this is made, which takes seconds."""

    def __init__(self, model: str) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise SettingsError(
                f"'st:{model}' needs a package that is not installed: pip install 'mindstream[sentence-transformers]'"
            ) from None
        try:
            self._model = SentenceTransformer(model)
        except (OSError, ValueError) as error:
            raise SettingsError(f"the embedder 'st:{model}' cannot be loaded: {error}") from None
        self.name = f"st:{model}"
        self.width = int(self._model.get_sentence_embedding_dimension())
        self._one_at_a_time = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, one row per text; a blank text gives zeros."""
        return await asyncio.to_thread(self._vectors, texts)

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        found = np.zeros((len(texts), self.width), dtype=np.float32)
        spoken = [i for i, text in enumerate(texts) if text.strip()]
        if spoken:
            with self._one_at_a_time:
                found[spoken] = self._model.encode(
                    [texts[i] for i in spoken], normalize_embeddings=True, show_progress_bar=False
                )
        return found
