"""The adapter of models in this process (see llama.py)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from typing import Any

from mindstream.models.bounded import bound_schema
from mindstream.models.model import Request, Usage
from mindstream.models.providers.adapter import Arrival, Arrivals, Delta, Truncated
from mindstream.models.providers.address import Address
from mindstream.models.providers.gathered import gathered, one_by_one
from mindstream.models.providers.limits import all_tokens
from mindstream.models.providers.llama import Engine, engine
from mindstream.models.providers.openai_chat import OpenAIChat
from mindstream.models.providers.typed_calls import in_words, read_calls

TOP = 100
LOCAL_TOKENS = 500
"""Maximum length of a reply of `local`, which never knows when to stop."""
TRIES = 3
"""Attempts in all when the reply is empty, or JSON that does not end: small models do so now and then."""
CHARACTERS_A_TOKEN = 1.6
"""Of the oddest text that small models write, in lists and names; prose has four."""


class Gguf:
    """A model in this process; the first adapter loads it, closing the last one frees it."""

    def __init__(self, at: Address) -> None:
        self._engine: Engine | None = engine(at)
        self._longest = LOCAL_TOKENS if at.name == "local" else 0
        self._chat = _Chat(replace(at, url=self._engine.url, key=self._engine.key))

    def stream(self, request: Request) -> AbstractAsyncContextManager[Arrivals]:
        if request.continuation:
            return self._chat.stream(request)
        if not request.tools or self._engine is None or self._engine.knows_tools:
            return gathered(self._ask(request))
        return gathered(read_calls(self._ask(in_words(request)), request, typed=True))

    async def _ask(self, request: Request) -> AsyncGenerator[Arrival]:
        """Pass a reply on, its beginning without words held back; an unusable reply is asked for again.

        A reply with a schema is passed on as a whole, once its JSON is complete.
        """
        if self._longest:
            request = request.but(longest_reply=min(request.longest_reply or self._longest, self._longest))
        typed = request.schema is not None and not request.options
        for attempt in range(1, TRIES + 1):
            held: list[Arrival] = []
            passes = False
            async with aclosing(one_by_one(self._chat.stream(request))) as arrivals:
                async for arrival in arrivals:
                    held.append(arrival)
                    passes = passes or not (typed or _is_empty(arrival))
                    if passes:
                        for each in held:
                            yield each
                        held = []
            if passes or attempt == TRIES or (typed and _is_usable(held)):
                for each in held:
                    yield each
                return

    async def aclose(self) -> None:
        await self._chat.aclose()
        await asyncio.to_thread(self._free)

    def _free(self) -> None:
        self._engine = None


def _is_empty(arrival: Arrival) -> bool:
    return not arrival.text.strip() if isinstance(arrival, Delta) else isinstance(arrival, Usage | Truncated)


def _is_usable(arrivals: Sequence[Arrival]) -> bool:
    """Return whether a reply is complete JSON, or something else than text."""
    if any(not isinstance(each, Delta | Usage | Truncated) for each in arrivals):
        return True
    try:
        json.loads("".join(each.text for each in arrivals if isinstance(each, Delta)))
    except ValueError:
        return False
    return True


class _Chat(OpenAIChat):
    """llama.cpp's own ways to ask for probabilities and to hold a reply to a schema."""

    ways = ("grammar",)

    def _measured(self) -> dict[str, Any]:
        return super()._measured() | {"top_logprobs": TOP}

    def _enforced(self, request: Request) -> dict[str, Any]:
        schema = bound_schema(request.schema or {}, int(all_tokens(request) * CHARACTERS_A_TOKEN))
        compact = json.dumps(schema | {"x-guidance": {"whitespace_flexible": False}})
        return {"grammar": f"%llguidance {{}}\nstart: %json {compact}"}
