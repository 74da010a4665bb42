"""Log-probabilities of a given text, token by token.

There are three methods, and endpoints that offer only chat support none of them:

- echo: `/completions` returns the prompt with its log-probabilities (vLLM, SGLang, OpenAI's base models).
- prompt_logprobs: a field of vLLM's own.
- grammar: for llama.cpp, in this process or behind a server. A grammar allows only the text's tokens, so that the model
  "writes" them and reports the probability that each had before the grammar was applied. A grammar can only name whole
  characters, so a text is refused if the model splits one of its characters into several tokens, as small models do
  with Chinese.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

from mindstream.errors import ModelError, ModelRefused, ModelUnavailable
from mindstream.models.providers.address import Address
from mindstream.models.providers.failures import failures
from mindstream.models.providers.wire import ERROR_READERS, Client

if TYPE_CHECKING:
    from mindstream.models.providers.gguf import Engine

MAX_BYTES = 1_000_000
"""Maximum size of a response."""
MAX_TOKENS = 64
"""Maximum number of tokens of a text whose log-probabilities are read."""
Method = Literal["echo", "prompt_logprobs", "grammar"]
METHODS: tuple[Method, ...] = ("echo", "prompt_logprobs", "grammar")
FIELDS: dict[Method, dict[str, Any]] = {
    "echo": {"echo": True, "logprobs": 1},
    "prompt_logprobs": {"prompt_logprobs": 0},
}


@dataclass(frozen=True)
class GivenText:
    """Reads log-probabilities from llama.cpp; created by `open_given_text`.

    Every method raises ModelUnavailable if llama.cpp fails, and ModelRefused if it cannot represent the text.
    """

    at: Address
    client: Client

    async def tokens(self, text: str, most: int) -> list[int]:
        """Return the first tokens of a text."""
        answer = await self._post("/tokenize", {"content": text, "with_pieces": True})
        with failures(self.at, {}):
            found = [(each["id"], each["piece"]) for each in answer["tokens"][:most]]
        if not all(isinstance(piece, str) for _, piece in found):
            raise ModelRefused(
                f"{self.at.name} cannot report log-probabilities of this text: it splits some of its characters into"
                " several tokens"
            )
        return [id_ for id_, _ in found]

    async def logprobs(self, prompt: str, tokens: Sequence[int]) -> list[float]:
        """Return the log-probability of each token after a prompt."""
        grammar = "root ::= " + " ".join(f"<[{token}]>" for token in tokens)
        body = {"prompt": prompt, "grammar": grammar, "n_probs": 1, "n_predict": len(tokens), "temperature": 0}
        answer = await self._post("/completion", {**body, "cache_prompt": True})
        if not (found := answer.get("completion_probabilities")):
            raise ModelUnavailable(f"the response of {self.at.name} has no field completion_probabilities")
        return [float(token["logprob"]) for token in found]

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        with failures(self.at, ERROR_READERS):
            base = (self.at.url or "").partition("?")[0].removesuffix("/v1")
            return await self.client.ask("POST", base + path, body)


class TextLogprobsReader:
    """Reads log-probabilities from an endpoint, by the first method that the endpoint supports."""

    def __init__(self, at: Address, client: Client, methods: Sequence[Method] = METHODS) -> None:
        self._at, self._client, self._methods = at, client, list(methods)

    async def read(self, prompt: str, text: str) -> list[float]:
        """Return the log-probabilities of a text's first tokens after a prompt.

        Raises:
            ModelRefused: the endpoint reports no log-probabilities of a given text.
            ModelUnavailable: the endpoint is down.
        """
        for method in list(self._methods):
            # an endpoint other than llama.cpp may answer a grammar with any error
            is_guess = method == "grammar" and len(self._methods) > 1
            with contextlib.suppress(ModelError if is_guess else ModelRefused):
                if found := await self._ask(method, prompt, text):
                    self._methods = [method]
                    return found[:MAX_TOKENS]
        raise ModelRefused(f"{self._at.name} reports no log-probabilities of a given text")

    async def _ask(self, method: Method, prompt: str, text: str) -> list[float]:
        if method == "grammar":
            given = GivenText(self._at, self._client)
            return await given.logprobs(prompt, await given.tokens(text, MAX_TOKENS))
        body = {"model": self._at.model, "prompt": prompt + text, "max_tokens": 1, "temperature": 0, **FIELDS[method]}
        with failures(self._at, ERROR_READERS):
            answer = await self._client.ask("POST", "/completions", body)
            tokens = _tokens_of(answer["choices"][0], method)
            begin = "".join(token for token, _ in tokens).rfind(text)
            starts = accumulate((len(token) for token, _ in tokens), initial=0)
            placed = zip(starts, tokens, strict=False)
            return [logprob for start, (_, logprob) in placed if 0 <= begin <= start < begin + len(text)]


def _tokens_of(choice: dict[str, Any], method: Method) -> list[tuple[str, float]]:
    """Return the tokens of a prompt and of its continuation, with their log-probabilities."""
    if method == "echo":
        found = choice.get("logprobs") or {}
        pairs = zip(found.get("tokens") or (), found.get("token_logprobs") or (), strict=True)
        return [(str(token), float(logprob or 0.0)) for token, logprob in pairs]
    entries = [next(iter(each.values())) if each else None for each in choice.get("prompt_logprobs") or ()]
    return [(str(each["decoded_token"]), float(each["logprob"])) if each else ("", 0.0) for each in entries]


def checked_gguf(at: Address) -> Address:
    """Return the address if it is that of a GGUF file.

    Raises:
        ModelRefused: the address is not that of a GGUF file.
    """
    if at.vendor != "gguf":
        raise ModelRefused(f"{at.name} reports no log-probabilities; use a model in this process (gguf:FILE)")
    return at


@contextlib.asynccontextmanager
async def open_given_text(at: Address, held: Engine | None = None) -> AsyncIterator[GivenText]:
    """Open a GGUF file's model for log-probabilities; `held` is the model if it is loaded already."""
    from mindstream.models.providers.gguf import engine

    loaded = held if held is not None else await asyncio.to_thread(engine, at)
    here = replace(at, url=loaded.url, key=loaded.key)
    async with Client(here, MAX_BYTES) as client:
        yield GivenText(here, client)
