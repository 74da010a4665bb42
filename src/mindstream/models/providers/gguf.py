"""The adapter of models in GGUF files, run by llama.cpp in this process (the package `xllamacpp`).

llama.cpp runs in threads of its own that never hold Python's GIL. It serves a port of this machine that requires a key
generated for this process. It is used like any endpoint, so cancelling, errors, streams and limits are the same.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import urllib.request
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

from mindstream.chance import token
from mindstream.errors import ModelRefused
from mindstream.models.model import Request, Usage, all_tokens
from mindstream.models.providers.adapter import Arrival, Arrivals, Delta, Truncated, gathered, one_by_one
from mindstream.models.providers.address import Address
from mindstream.models.providers.openai_chat import OpenAIChat
from mindstream.models.providers.tool_calls import in_words, read_calls
from mindstream.models.schema import bound_schema

TOP = 100
"""Number of probabilities of the first token that are requested."""
MAX_LOCAL_TOKENS = 500
"""Maximum length in tokens of a reply of the model `local`, which never stops by itself."""
MAX_ATTEMPTS = 3
"""Maximum number of requests if the reply is empty or unfinished JSON, which small models write now and then."""
MIN_CHARACTERS_PER_TOKEN = 1.6
"""Characters per token in the least compressible replies of small models (lists, names); prose has about four."""
PARALLEL = 3
"""Number of parallel replies, each with a context window of its own: enough for the talker and two reasoners."""
CACHE_MIB = 256
"""Memory for prompt prefixes that are no longer in a context window, in MiB."""


@dataclass(frozen=True, eq=False)
class Engine:
    """A loaded model; it is freed when no object refers to it any more.

    Attributes:
        server: the server of xllamacpp.
        knows_tools: the file's chat template supports tool calls.
    """

    server: Any
    url: str
    key: str
    knows_tools: bool


_engines: WeakValueDictionary[tuple[str, int], Engine] = WeakValueDictionary()
_loading = threading.Lock()


def engine(at: Address) -> Engine:
    """Return the loaded model of a GGUF file, with a context window of `at.window` tokens. Loading takes seconds, so
    call this in a thread.

    Raises:
        ModelRefused: the model cannot be loaded.
    """
    with _loading:
        found = _engines.get((at.model, at.window))
        if found is None:
            found = _engines[at.model, at.window] = _load(at)
        return found


def _load(at: Address) -> Engine:
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path = at.model
    params.model_alias = {at.name}
    params.n_ctx, params.n_parallel, params.n_threads_http = at.window * PARALLEL, PARALLEL, PARALLEL + 1
    # Half of the cores: with all of them, llama.cpp's threads busy-wait for each other whenever another program runs,
    # which is 20 times slower on two cores.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 2) // 2)
    params.cache_ram_mib = CACHE_MIB
    params.warmup = params.ui = params.endpoint_slots = False
    params.verbosity, params.endpoint_metrics = 0, True
    params.api_keys = [key := token() + token()]
    try:
        server = Server(params)
    except (RuntimeError, ValueError, OSError) as error:
        raise ModelRefused(f"{at.name}: llama.cpp cannot load {at.model} ({at.quote(error)})") from None
    url = str(server.listening_address)
    request = urllib.request.Request(f"{url}/props", headers={"Authorization": f"Bearer {key}"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
        able = json.load(answer).get("chat_template_caps") or {}
    return Engine(server, f"{url}/v1", key, bool(able.get("supports_tools")))


class Gguf:
    """A model in this process. The first adapter that opens loads the model; the last one that closes frees it."""

    def __init__(self, at: Address) -> None:
        self._engine: Engine | None = engine(at)
        self._longest = MAX_LOCAL_TOKENS if at.name == "local" else 0
        self._chat = _Chat(replace(at, url=self._engine.url, key=self._engine.key))

    def stream(self, request: Request) -> AbstractAsyncContextManager[Arrivals]:
        if request.continuation:
            return self._chat.stream(request)
        if not request.tools or self._engine is None or self._engine.knows_tools:
            return gathered(self._ask(request))
        return gathered(read_calls(self._ask(in_words(request)), request, typed=True))

    async def _ask(self, request: Request) -> AsyncGenerator[Arrival]:
        """Yield a reply as it arrives; request an empty one again, up to MAX_ATTEMPTS requests in all.

        A reply with a schema is yielded only as a whole. If its JSON is incomplete, it is requested again; the last
        attempt is yielded in any case.
        """
        if self._longest:
            request = request.but(longest_reply=min(request.longest_reply or self._longest, self._longest))
        typed = request.schema is not None and not request.options
        for attempt in range(1, MAX_ATTEMPTS + 1):
            held, passes = list[Arrival](), False
            async with aclosing(one_by_one(self._chat.stream(request))) as arrivals:
                async for arrival in arrivals:
                    held.append(arrival)
                    passes = passes or not (typed or _is_empty(arrival))
                    while passes and held:
                        yield held.pop(0)
            if passes or attempt == MAX_ATTEMPTS or (typed and _is_usable(held)):
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
    """Return whether a reply is complete JSON, or has parts other than text, token counts and the note that it was cut
    off."""
    if any(not isinstance(each, Delta | Usage | Truncated) for each in arrivals):
        return True
    try:
        json.loads("".join(each.text for each in arrivals if isinstance(each, Delta)))
    except ValueError:
        return False
    return True


class _Chat(OpenAIChat):
    """Uses llama.cpp's own request fields for probabilities and for replies with a schema."""

    methods = ("grammar",)

    def _measured(self) -> dict[str, Any]:
        return super()._measured() | {"top_logprobs": TOP}

    def _enforced(self, request: Request) -> dict[str, Any]:
        schema = bound_schema(request.schema or {}, int(all_tokens(request) * MIN_CHARACTERS_PER_TOKEN))
        compact = json.dumps(schema | {"x-guidance": {"whitespace_flexible": False}})
        return {"grammar": f"%llguidance {{}}\nstart: %json {compact}"}
