"""A cross-encoder of the package sentence-transformers: scores a question and a text together, one pair at a time."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence

from mindstream.errors import ModelUnavailable


class CrossEncoder:
    """A model by its name on the hub, or by the path of a folder; loading it, when this is made, takes seconds.

    Raises:
        ModelUnavailable: it cannot be loaded, or a folder of the working directory would be taken for the hub's model.
    """

    def __init__(self, model: str) -> None:
        if not model.startswith(("/", "./", "../")) and os.path.lexists(model):
            raise ModelUnavailable(f"'cross:{model}' is also a folder here: name it by its path, cross:./{model}")
        try:
            from sentence_transformers import CrossEncoder as Encoder
        except ImportError:
            raise ModelUnavailable(
                f"'cross:{model}' needs a package that is not installed:"
                " pip install 'mindstream[sentence-transformers]'"
            ) from None
        try:
            self._model = Encoder(model)
        except (OSError, ValueError) as error:
            raise ModelUnavailable(f"the cross-encoder {model!r} cannot be loaded: {error}") from None
        self._one_at_a_time = threading.Lock()

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return how well each text answers; more is better."""
        return await asyncio.to_thread(self._scores, query, texts)

    def _scores(self, query: str, texts: Sequence[str]) -> list[float]:
        with self._one_at_a_time:
            return [float(each) for each in self._model.predict([(query, text) for text in texts])]
