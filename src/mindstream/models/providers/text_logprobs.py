"""Log-probabilities of a given text, token by token.

Most endpoints support one of three methods: `/completions` that echoes the prompt with its log-probabilities (vLLM,
SGLang, OpenAI's base models); vLLM's own `prompt_logprobs`; and for llama.cpp, in this process or behind a server, a
grammar that allows only the text's tokens, so that the model "writes" them and reports the probability of each before
the grammar applied. A grammar allows whole characters only: a text with characters that the model spells by several
tokens, as small ones do Chinese, is refused. Chat-only endpoints support none of these methods.
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
"""Maximum number of a text's tokens whose log-probabilities are read."""
Method = Literal["echo", "prompt_logprobs", "grammar"]
METHODS: tuple[Method, ...] = ("echo", "prompt_logprobs", "grammar")
FIELDS: dict[Method, dict[str, Any]] = {
    "echo": {"echo": True, "logprobs": 1},
    "prompt_logprobs": {"prompt_logprobs": 0},
}


@dataclass(frozen=True)
class GivenText:
    """Reads log-probabilities from llama.cpp; made by `open_given_text`.

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
        grammar = "root ::= " + " ".join(f"<[{token}]>" for token in tokens)
        body = {"prompt": prompt, "grammar": grammar, "n_probs": 1, "n_predict": len(tokens), "temperature": 0}
        answer = await self._post("/completion", {**body, "cache_prompt": True})
        if not (found := answer.get("completion_probabilities")):
            raise ModelUnavailable(f"{self.at.name} reported no probabilities")
        return [float(token["logprob"]) for token in found]

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        with failures(self.at, ERROR_READERS):
            base = (self.at.url or "").partition("?")[0].removesuffix("/v1")
            return await self.client.ask("POST", base + path, body)


class TextLogprobsReader:
    """Reads log-probabilities from an endpoint, by the first method that it turns out to support."""

    def __init__(self, at: Address, client: Client, methods: Sequence[Method] = METHODS) -> None:
        self._at, self._client, self._methods = at, client, list(methods)

    async def read(self, prompt: str, text: str) -> list[float]:
        """Return the log-probabilities of a text's first tokens after a prompt.

        Raises:
            ModelRefused: the endpoint reports none; ModelUnavailable: it is down.
        """
        for method in list(self._methods):
            # an endpoint other than llama.cpp may answer a grammar with anything
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
    """Return the address of a GGUF file.

    Raises:
        ModelRefused: it is another address.
    """
    if at.vendor != "gguf":
        raise ModelRefused(f"{at.name} reports no log-probabilities; use a model in this process (gguf:FILE)")
    return at


@contextlib.asynccontextmanager
async def open_given_text(at: Address, held: Engine | None = None) -> AsyncIterator[GivenText]:
    """Open a GGUF file's model for log-probabilities; it is loaded unless `held` is given."""
    from mindstream.models.providers.gguf import engine

    loaded = held if held is not None else await asyncio.to_thread(engine, at)
    here = replace(at, url=loaded.url, key=loaded.key)
    async with Client(here, MAX_BYTES) as client:
        yield GivenText(here, client)
