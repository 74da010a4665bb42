"""A second look at what was found, by a model that reads question and record together. Off unless it is named.

It costs a hundred times what recall costs, and does not always help: on LoCoMo sessions a published cross-encoder lost
6.9 points (arXiv 2606.04194), so it is added to relevance, not put in its place.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mindstream.errors import SettingsError

Floats = NDArray[np.float64]


class Reranker(Protocol):
    """Says how well texts answer a question."""

    async def scores(self, question: str, texts: Sequence[str]) -> Floats:
        """Return one number a text; higher answers better; the scale does not matter."""


class CrossEncoder:
    """A cross-encoder of sentence-transformers, by its name on the hub or its folder."""

    def __init__(self, model: str) -> None:
        try:
            import sentence_transformers
        except ImportError:
            raise SettingsError(
                f"'st:{model}' needs a package that is not installed: pip install 'mindstream[sentence-transformers]'"
            ) from None
        try:
            self._model = sentence_transformers.CrossEncoder(model)
        except (OSError, ValueError) as error:
            raise SettingsError(f"the re-ranker 'st:{model}' cannot be loaded: {error}") from None
        self._one_at_a_time = threading.Lock()

    async def scores(self, question: str, texts: Sequence[str]) -> Floats:
        return await asyncio.to_thread(self._scores, question, texts)

    def _scores(self, question: str, texts: Sequence[str]) -> Floats:
        with self._one_at_a_time:
            scores = self._model.predict([(question, text) for text in texts], show_progress_bar=False)
        return np.asarray(scores, np.float64)


def reranker(name: str) -> Reranker:
    """Return the re-ranker of this name.

    Raises:
        SettingsError: no such form, or a package or model that is not there.
    """
    kind, _, model = name.partition(":")
    if kind == "st" and model:
        return CrossEncoder(model)
    raise SettingsError(f"{name!r} is not the name of a re-ranker; the form is st:NAME-OR-FOLDER")


def add_scores(relevance: Floats, scores: Floats) -> Floats:
    """Add a re-ranker's scores to relevance, brought to the same spread."""
    spread = float(scores.std())
    if spread == 0:
        return relevance
    sum_: Floats = relevance + (scores - scores.mean()) * (float(relevance.std()) / spread)
    return sum_
