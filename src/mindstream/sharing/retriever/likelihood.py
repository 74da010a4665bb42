"""p(not Y | …) from log-probabilities of a model in the process: how likely the answer's own tokens are.

No endpoint of OpenAI's protocol tells how likely a given text is: only what it wrote itself. llama.cpp's does, by a way
round: a grammar that allows the answer's tokens one after the other and nothing else makes it "write" them, and it
reports how likely each was before the grammar had its say.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from openai import AsyncOpenAI

from mindstream.errors import ModelRefused, ModelUnavailable
from mindstream.models.address import Address
from mindstream.models.failures import failures
from mindstream.models.gguf import engine
from mindstream.models.openai_chat import TOLD, openai_client
from mindstream.sharing.retriever.corpus import Pair
from mindstream.sharing.retriever.unlikely import Basis

LONGEST_TOKENS = 64
"""So many tokens of an answer are weighed."""
LONGEST_TEXT = 1_500
"""So many characters of an example's, and of the pair's, texts are shown."""
EACH_S = 5.0
"""So long one candidate may take."""
WHOLE_BYTES = 1_000_000


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
        if at.vendor != "gguf":
            raise ModelRefused(
                f"{at.name} does not tell how likely a given text is; a model in the process does (gguf:FILE)"
            )
        self._at = at

    async def p_not(self, pair: Pair, candidates: Sequence[Pair]) -> NDArray[np.float64]:
        held = await asyncio.to_thread(engine, self._at)
        at = replace(self._at, url=held.url.removesuffix("/v1"), key=held.key)
        async with openai_client(at, WHOLE_BYTES) as client, asyncio.timeout(EACH_S * (1 + len(candidates))):
            asked = {"content": " " + pair.answer}
            answer = (await self._post(client, "/tokenize", asked))["tokens"][:LONGEST_TOKENS]
            return np.array([await self._one(client, answer, pair, each) for each in candidates])

    async def _one(self, client: AsyncOpenAI, answer: Sequence[int], pair: Pair, candidate: Pair) -> float:
        body = {
            "prompt": f"{_short(candidate.query)} -> {_short(candidate.answer)} | {_short(pair.query)} ->",
            "grammar": "root ::= " + " ".join(f"<[{token}]>" for token in answer),
            "n_probs": 1, "n_predict": len(answer), "temperature": 0, "cache_prompt": True,
        }  # fmt: skip
        told = (await self._post(client, "/completion", body)).get("completion_probabilities") or []
        if not told:
            raise ModelUnavailable(f"{self._at.name} told no probabilities")
        return 1 - math.exp(sum(float(token["logprob"]) for token in told) / len(told))

    async def _post(self, client: AsyncOpenAI, path: str, body: dict[str, Any]) -> dict[str, Any]:
        with failures(self._at, TOLD):
            data: dict[str, Any] = await client.post(path, body=body, cast_to=object)  # type: ignore[arg-type]
        return data


def _short(text: str) -> str:
    return " ".join(text[:LONGEST_TEXT].split())
