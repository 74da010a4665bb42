"""Embedders of the package sentence-transformers: better than the default, and slower; PyTorch comes with them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mindstream.errors import SettingsError


class SentenceTransformers:
    """A model by its name on the hub, or by the path of a folder; loading it, when this is made, takes seconds.

    Raises:
        SettingsError: it cannot be loaded, or a folder of the working directory would be taken for the hub's model: a
            model's folder may hold code.
    """

    in_process = True

    def __init__(self, model: str) -> None:
        if not model.startswith(("/", "./", "../")) and os.path.lexists(model):
            raise SettingsError(
                f"'st:{model}' is also a folder here, which would be taken instead of the model on the hub:"
                f" name it by its path, st:./{model}, or begin in another folder"
            )
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
