"""p(not Y | (x, y), X): how unlikely a right answer is when a candidate is given as an example (Gao 2024, 3.2).

Three sources, from the best: log-probabilities of a model (`likelihood`), what a model states (`does_it_help`), and
here the one without a model: candidates whose answers are like Y make Y likely.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq

from mindstream.caches import remember
from mindstream.models.embedders.embedder import Embedder
from mindstream.sharing.retriever.corpus import Pair

Basis = Literal["logprobs", "stated", "stand-in"]
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
LONGEST = 4_000
"""So many characters of an answer are compared."""


LONGEST_SHOWN = 1_500
"""So many characters of a query, and of an answer, a model is shown."""


def shortened(text: str) -> str:
    """Return what a model is shown of a text."""
    return text[:LONGEST_SHOWN].strip()


class Unlikely(Protocol):
    """Who says how unlikely an answer is."""

    @property
    def basis(self) -> Basis:
        """What it goes by, for the trace."""

    async def p_not(self, pair: Pair, candidates: Sequence[Pair]) -> NDArray[np.float64]:
        """Return for each candidate how unlikely the pair's answer is, given that example and the pair's query.

        Raises:
            ModelError: the model cannot be had.
        """


class StandIn:
    """1 - (½ ROUGE-L + ½ cosine) of the candidate's answer and Y: no model is asked.

    A little above 1 where the cosine is below 0, so that what helps least can be told apart.
    """

    basis: Basis = "stand-in"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[str, NDArray[np.float32]] = {}

    async def p_not(self, pair: Pair, candidates: Sequence[Pair]) -> NDArray[np.float64]:
        await self._embed([pair, *candidates])
        near = np.array([self._vectors[each.id] for each in candidates]) @ self._vectors[pair.id]
        overlap = [rouge_l(each.answer, pair.answer) for each in candidates]
        return 1 - (0.5 * np.array(overlap) + 0.5 * near.astype(np.float64))

    def forget(self, ids: Sequence[str]) -> None:
        """Let go of what is kept of these pairs' answers."""
        for id_ in ids:
            self._vectors.pop(id_, None)

    async def _embed(self, pairs: Sequence[Pair]) -> None:
        new = list({each.id: each for each in pairs if each.id not in self._vectors}.values())
        if new:
            rows = await self._embedder.embed([each.answer for each in new])
            self._vectors |= {each.id: row for each, row in zip(new, rows, strict=True)}


def rouge_l(one: str, other: str) -> float:
    """Return ROUGE-L's F of two texts: words, or characters where a script has no spaces (Lin 2004)."""
    first, second = tokens(one), tokens(other)
    if not first or not second:
        return 0.0
    return 2 * LCSseq.similarity(first, second) / (len(first) + len(second))


@remember(1 << 12)
def tokens(text: str) -> tuple[str, ...]:
    """Return what ROUGE counts of a text."""
    return tuple(WORD.findall(text[:LONGEST].lower()))
