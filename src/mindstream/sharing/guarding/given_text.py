"""How likely a model in this process finds a text that is given to it, token by token.

No endpoint of OpenAI's protocol tells that: only how likely it was what it wrote itself. llama.cpp's does, by a way
round: a grammar that allows the text's tokens one after the other and nothing else makes it "write" them, and it
reports how likely each was before the grammar had its say. A grammar allows whole characters only: where the model
spells one by several tokens, as small ones do Chinese, nothing is weighed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mindstream.errors import ModelRefused, ModelUnavailable
from mindstream.models.providers.address import Address
from mindstream.models.providers.failures import failures

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from mindstream.models.providers.gguf import Engine

WHOLE_BYTES = 1_000_000


@dataclass(frozen=True)
class GivenText:
    """Weighs given texts; made by `open_given_text`.

    Raises (from every method): ModelUnavailable; ModelRefused, where it cannot read a text.
    """

    at: Address
    client: AsyncOpenAI

    async def tokens(self, text: str, most: int) -> list[int]:
        """Return the first tokens of a text."""
        found = (await self._post("/tokenize", {"content": text, "with_pieces": True}))["tokens"][:most]
        if not all(isinstance(each["piece"], str) for each in found):
            raise ModelRefused(f"{self.at.name} spells characters of this text by several tokens")
        return [each["id"] for each in found]

    async def logprobs(self, prompt: str, tokens: Sequence[int]) -> list[float]:
        """Return the log-probability of each token, where they follow a prompt."""
        body = {
            "prompt": prompt, "grammar": "root ::= " + " ".join(f"<[{token}]>" for token in tokens),
            "n_probs": 1, "n_predict": len(tokens), "temperature": 0, "cache_prompt": True,
        }  # fmt: skip
        told = (await self._post("/completion", body)).get("completion_probabilities") or []
        if not told:
            raise ModelUnavailable(f"{self.at.name} told no probabilities")
        return [float(token["logprob"]) for token in told]

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        from mindstream.models.providers.openai_chat import TOLD

        with failures(self.at, TOLD):
            data: dict[str, Any] = await self.client.post(path, body=body, cast_to=object)  # type: ignore[arg-type]
        return data


def checked_gguf(at: Address) -> Address:
    """Return an address that is a GGUF file's.

    Raises:
        ModelRefused: it is none.
    """
    if at.vendor != "gguf":
        raise ModelRefused(
            f"{at.name} does not tell how likely a given text is; a model in the process does (gguf:FILE)"
        )
    return at


def load(at: Address) -> Engine:
    """Load a GGUF file's model if nobody holds it, and what asks it; takes a while, so it runs in a thread."""
    from mindstream.models.providers import openai_chat  # noqa: F401 (its client takes half a second)
    from mindstream.models.providers.gguf import engine

    return engine(at)


@contextlib.asynccontextmanager
async def open_given_text(at: Address, held: Engine | None = None) -> AsyncIterator[GivenText]:
    """Open a GGUF file's model; it is loaded if nobody holds it."""
    if held is None:
        held = await asyncio.to_thread(load, at)
    from mindstream.models.providers.openai_chat import openai_client

    here = replace(at, url=held.url.removesuffix("/v1"), key=held.key)
    async with openai_client(here, WHOLE_BYTES) as client:
        yield GivenText(here, client)
