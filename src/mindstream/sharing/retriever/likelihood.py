"""p(not Y | …) from log-probabilities of a model in the process: how likely the answer's own tokens are."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mindstream.models.providers.address import Address
from mindstream.sharing.guarding.given_text import GivenText, checked_gguf, open_given_text
from mindstream.sharing.retriever.corpus import Pair
from mindstream.sharing.retriever.unlikely import Basis

LONGEST_TOKENS = 64
"""So many tokens of an answer are weighed."""
LONGEST_TEXT = 1_500
"""So many characters of an example's, and of the pair's, texts are shown."""
EACH_S = 5.0
"""So long one candidate may take."""


class Likelihood:
    """1 - the geometric mean of the probabilities of Y's tokens after "x -> y | X ->" (Rubin 2022).

    A grammar allows whole characters only: where the model spells one by several tokens, as small ones do Chinese, and
    where a text has the model's own marks in it, this fails.
    """

    basis: Basis = "logprobs"

    def __init__(self, at: Address) -> None:
        """Take a GGUF file's address; it is loaded when it is first asked.

        Raises:
            ModelRefused: it is none.
        """
        self._at = checked_gguf(at)

    async def p_not(self, pair: Pair, candidates: Sequence[Pair]) -> NDArray[np.float64]:
        async with asyncio.timeout(EACH_S * (1 + len(candidates))), open_given_text(self._at) as given:
            answer = await given.tokens(" " + pair.answer, LONGEST_TOKENS)
            return np.array([await _one(given, answer, pair, each) for each in candidates])


async def _one(given: GivenText, answer: Sequence[int], pair: Pair, candidate: Pair) -> float:
    prompt = f"{_short(candidate.query)} -> {_short(candidate.answer)} | {_short(pair.query)} ->"
    told = await given.logprobs(prompt, answer)
    return 1 - math.exp(sum(told) / len(told))


def _short(text: str) -> str:
    return " ".join(text[:LONGEST_TEXT].split())
