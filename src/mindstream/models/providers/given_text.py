"""How likely a model finds a text that is given to it, token by token.

Three ways, and an endpoint mostly knows one of them. `/completions` that echoes the prompt with its log-probabilities
(vLLM, SGLang, OpenAI's base models); vLLM's own `prompt_logprobs`; and llama.cpp, in this process or behind a server,
by a way round: a grammar that allows the text's tokens one after the other and nothing else makes it "write" them, and
it reports how likely each was before the grammar had its say. A grammar allows whole characters only: where the model
spells one by several tokens, as small ones do Chinese, nothing is weighed. Endpoints for chat alone know none.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, cast

from mindstream.errors import ModelError, ModelRefused, ModelUnavailable
from mindstream.models.model import Message
from mindstream.models.providers.address import Address
from mindstream.models.providers.failures import failures
from mindstream.models.providers.wire import TOLD, Client

if TYPE_CHECKING:
    from mindstream.models.providers.gguf import Engine

WHOLE_BYTES = 1_000_000
MOST = 64
"""So many tokens of a text are weighed."""
Way = Literal["echo", "prompt_logprobs", "grammar"]
ASKED: dict[Way, dict[str, Any]] = {"echo": {"echo": True, "logprobs": 1}, "prompt_logprobs": {"prompt_logprobs": 0}}


@dataclass(frozen=True)
class GivenText:
    """Weighs given texts by llama.cpp; made by `open_given_text`.

    Raises (from every method): ModelUnavailable; ModelRefused, where it cannot read a text.
    """

    at: Address
    client: Client

    async def tokens(self, text: str, most: int) -> list[int]:
        """Return the first tokens of a text."""
        told = await self._post("/tokenize", {"content": text, "with_pieces": True})
        with failures(self.at, {}):
            found = [(each["id"], each["piece"]) for each in told["tokens"][:most]]
        if not all(isinstance(piece, str) for _, piece in found):
            raise ModelRefused(f"{self.at.name} spells characters of this text by several tokens")
        return [id_ for id_, _ in found]

    async def logprobs(self, prompt: str, tokens: Sequence[int]) -> list[float]:
        """Return the log-probability of each token, where they follow a prompt."""
        body = {
            "prompt": prompt,
            "grammar": "root ::= " + " ".join(f"<[{token}]>" for token in tokens),
            "n_probs": 1,
            "n_predict": len(tokens),
            "temperature": 0,
            "cache_prompt": True,
        }
        told = (await self._post("/completion", body)).get("completion_probabilities") or []
        if not told:
            raise ModelUnavailable(f"{self.at.name} told no probabilities")
        return [float(token["logprob"]) for token in told]

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return await _post(self.client, self.at, (self.at.url or "").partition("?")[0].removesuffix("/v1") + path, body)


class TextWeigher:
    """Weighs given texts by an endpoint, in the first way that it turns out to know."""

    def __init__(self, at: Address, client: Client, ways: Sequence[Way] = ("echo", "prompt_logprobs", "grammar")):
        self._at, self._client, self._ways = at, client, list(ways)

    async def weigh(self, prompt: str, text: str) -> list[float]:
        """Return the log-probabilities of a text's first tokens after a prompt.

        Raises:
            ModelRefused: the endpoint tells none; ModelUnavailable: it is down.
        """
        for way in list(self._ways):
            is_guess = way == "grammar" and len(self._ways) > 1  # who is not llama.cpp answers anything
            with contextlib.suppress(ModelError if is_guess else ModelRefused):
                if found := await self._asked(way, prompt, text):
                    self._ways = [way]
                    return found[:MOST]
        raise ModelRefused(f"{self._at.name} does not tell how likely a given text is")

    async def _asked(self, way: Way, prompt: str, text: str) -> list[float]:
        if way == "grammar":
            given = GivenText(self._at, self._client)
            return await given.logprobs(prompt, await given.tokens(text, MOST))
        body = {"model": self._at.model, "prompt": prompt + text, "max_tokens": 1, "temperature": 0, **ASKED[way]}
        told = await _post(self._client, self._at, "/completions", body)
        with failures(self._at, {}):
            choice = told["choices"][0]
            return _at_the_end(_tokens_of(choice, way), text)


async def _post(client: Client, at: Address, path: str, body: dict[str, Any]) -> dict[str, Any]:
    with failures(at, TOLD):
        return cast("dict[str, Any]", await client.ask("POST", path, body))


def _tokens_of(choice: dict[str, Any], way: Way) -> list[tuple[str, float]]:
    """Return the tokens of a prompt, and of what was written after it, with what is told of each."""
    if way == "echo":
        told = choice.get("logprobs") or {}
        found = zip(told.get("tokens") or (), told.get("token_logprobs") or (), strict=True)
        return [(str(token), 0.0 if logprob is None else float(logprob)) for token, logprob in found]
    entries = [next(iter(each.values())) if each else None for each in choice.get("prompt_logprobs") or ()]
    return [(str(each["decoded_token"]), float(each["logprob"])) if each else ("", 0.0) for each in entries]


def _at_the_end(tokens: Sequence[tuple[str, float]], text: str) -> list[float]:
    """Return what is told of the tokens of a text, the last that reads so; none where it is not there."""
    spelled = "".join(token for token, _ in tokens)
    begin = spelled.rfind(text)
    starts = accumulate((len(token) for token, _ in tokens), initial=0)
    placed = zip(starts, tokens, strict=False)
    return [logprob for start, (_, logprob) in placed if 0 <= begin <= start < begin + len(text)]


def prompt_text(messages: Sequence[Message]) -> str:
    """Return the words of a prompt as one text that goes on."""
    return "\n\n".join(each.text for each in messages)


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
    from mindstream.models.providers.gguf import engine

    return engine(at)


@contextlib.asynccontextmanager
async def open_given_text(at: Address, held: Engine | None = None) -> AsyncIterator[GivenText]:
    """Open a GGUF file's model; it is loaded if nobody holds it."""
    if held is None:
        held = await asyncio.to_thread(load, at)
    here = replace(at, url=held.url, key=held.key)
    async with Client(here, WHOLE_BYTES) as client:
        yield GivenText(here, client)
