"""How likely a model finds a given text, token by token.

There are three ways, and most endpoints know one of them: `/completions` that echoes the prompt with its log
probabilities (vLLM, SGLang, OpenAI's base models); vLLM's own `prompt_logprobs`; and for llama.cpp, in this process or
behind a server, a grammar that allows only the text's tokens, so that the model "writes" them and reports how likely
each was before the grammar applied. A grammar allows whole characters only: a text with characters that the model
spells by several tokens, as small ones do Chinese, is refused. Endpoints for chat alone know none of these ways.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal, cast

from mindstream.errors import ModelError, ModelRefused, ModelUnavailable
from mindstream.models.providers.address import Address
from mindstream.models.providers.failures import failures
from mindstream.models.providers.llama import Engine, engine
from mindstream.models.providers.wire import TOLD, Client

WHOLE_BYTES = 1_000_000
MAX_TOKENS = 64
"""Maximum number of a text's tokens that are weighed."""
Way = Literal["echo", "prompt_logprobs", "grammar"]
ASKED: dict[Way, dict[str, Any]] = {"echo": {"echo": True, "logprobs": 1}, "prompt_logprobs": {"prompt_logprobs": 0}}


async def _post(client: Client, at: Address, path: str, body: dict[str, Any]) -> dict[str, Any]:
    with failures(at, TOLD):
        return cast("dict[str, Any]", await client.ask("POST", path, body))


@dataclass(frozen=True)
class GivenText:
    """Weighs given texts by llama.cpp; made by `open_given_text`.

    Raises (from every method): ModelUnavailable; ModelRefused if it cannot read a text.
    """

    at: Address
    client: Client

    async def tokens(self, text: str, most: int) -> list[int]:
        """Return the first tokens of a text."""
        answer = await self._post("/tokenize", {"content": text, "with_pieces": True})
        with failures(self.at, {}):
            found = [(each["id"], each["piece"]) for each in answer["tokens"][:most]]
        if not all(isinstance(piece, str) for _, piece in found):
            raise ModelRefused(f"{self.at.name} spells characters of this text by several tokens")
        return [id_ for id_, _ in found]

    async def logprobs(self, prompt: str, tokens: Sequence[int]) -> list[float]:
        """Return the log-probability of each token after a prompt."""
        body = {
            "prompt": prompt,
            "grammar": "root ::= " + " ".join(f"<[{token}]>" for token in tokens),
            "n_probs": 1,
            "n_predict": len(tokens),
            "temperature": 0,
            "cache_prompt": True,
        }
        found = (await self._post("/completion", body)).get("completion_probabilities") or []
        if not found:
            raise ModelUnavailable(f"{self.at.name} told no probabilities")
        return [float(token["logprob"]) for token in found]

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return await _post(self.client, self.at, (self.at.url or "").partition("?")[0].removesuffix("/v1") + path, body)


class TextWeigher:
    """Weighs given texts by an endpoint, in the first way that it turns out to know."""

    def __init__(self, at: Address, client: Client, ways: Sequence[Way] = ("echo", "prompt_logprobs", "grammar")):
        self._at, self._client, self._ways = at, client, list(ways)

    async def weigh(self, prompt: str, text: str) -> list[float]:
        """Return the log-probabilities of a text's first tokens after a prompt.

        Raises:
            ModelRefused: the endpoint reports none; ModelUnavailable: it is down.
        """
        for way in list(self._ways):
            is_guess = way == "grammar" and len(self._ways) > 1  # an endpoint that is not llama.cpp may answer anything
            with contextlib.suppress(ModelError if is_guess else ModelRefused):
                if found := await self._ask(way, prompt, text):
                    self._ways = [way]
                    return found[:MAX_TOKENS]
        raise ModelRefused(f"{self._at.name} does not tell how likely a given text is")

    async def _ask(self, way: Way, prompt: str, text: str) -> list[float]:
        if way == "grammar":
            given = GivenText(self._at, self._client)
            return await given.logprobs(prompt, await given.tokens(text, MAX_TOKENS))
        body = {"model": self._at.model, "prompt": prompt + text, "max_tokens": 1, "temperature": 0, **ASKED[way]}
        answer = await _post(self._client, self._at, "/completions", body)
        with failures(self._at, {}):
            tokens = _tokens_of(answer["choices"][0], way)
            begin = "".join(token for token, _ in tokens).rfind(text)
            starts = accumulate((len(token) for token, _ in tokens), initial=0)
            placed = zip(starts, tokens, strict=False)
            return [logprob for start, (_, logprob) in placed if 0 <= begin <= start < begin + len(text)]


def _tokens_of(choice: dict[str, Any], way: Way) -> list[tuple[str, float]]:
    """Return the tokens of a prompt, and of what was written after it, with their log-probabilities."""
    if way == "echo":
        found = choice.get("logprobs") or {}
        pairs = zip(found.get("tokens") or (), found.get("token_logprobs") or (), strict=True)
        return [(str(token), 0.0 if logprob is None else float(logprob)) for token, logprob in pairs]
    entries = [next(iter(each.values())) if each else None for each in choice.get("prompt_logprobs") or ()]
    return [(str(each["decoded_token"]), float(each["logprob"])) if each else ("", 0.0) for each in entries]


def checked_gguf(at: Address) -> Address:
    """Return the address of a GGUF file.

    Raises:
        ModelRefused: it is another address.
    """
    if at.vendor != "gguf":
        raise ModelRefused(
            f"{at.name} does not tell how likely a given text is; a model in the process does (gguf:FILE)"
        )
    return at


@contextlib.asynccontextmanager
async def open_given_text(at: Address, held: Engine | None = None) -> AsyncIterator[GivenText]:
    """Weigh texts by a GGUF file's model, which is loaded unless it is `held`."""
    weighed_by = held if held is not None else await asyncio.to_thread(engine, at)
    here = replace(at, url=weighed_by.url, key=weighed_by.key)
    async with Client(here, WHOLE_BYTES) as client:
        yield GivenText(here, client)
