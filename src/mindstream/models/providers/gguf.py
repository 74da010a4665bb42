"""A model from a GGUF file, run by llama.cpp inside this process (the package `xllamacpp`).

llama.cpp answers in threads of its own, which never hold Python's lock, at a port of this machine that only a key made
for this process opens. So it is asked as any endpoint is: whoever stops listening stops it, its errors are read as
everybody's, its chat template is the file's own. Beginnings of prompts that it has read are kept.
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
from mindstream.models.bounded import bound_schema
from mindstream.models.model import Request, Usage
from mindstream.models.providers.adapter import Arrival, Arrivals, Delta, Truncated
from mindstream.models.providers.address import Address
from mindstream.models.providers.gathered import gathered, one_by_one
from mindstream.models.providers.limits import all_tokens
from mindstream.models.providers.openai_chat import OpenAIChat
from mindstream.models.providers.typed_calls import in_words, read_calls

AT_ONCE = 3
"""So many replies run side by side, each with a window of its own: the talker's, and those of two reasoners."""
KEPT_MIB = 256
"""How much memory the beginnings of prompts may take that are no longer in a window."""
TOP = 100
LOCAL_TOKENS = 500
"""How long a reply of `local` gets: it never knows when to stop, and says less with every word."""
TRIES = 3
"""So often a model is asked that says nothing at all, or no JSON to its end: small ones do so now and then."""
CHARACTERS_A_TOKEN = 1.6
"""Of the oddest text that small models write, in lists and names; prose has four."""


class Gguf:
    """Asks a model in this process; the first one who asks loads it, the last one who lets go frees it."""

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
        if self._longest:
            request = request.but(longest_reply=min(request.longest_reply or self._longest, self._longest))
        if request.schema is not None and not request.options:
            async for arrival in self._structured(request):
                yield arrival
            return
        for attempt in range(1, TRIES + 1):
            empty: list[Arrival] | None = []
            async with aclosing(one_by_one(self._chat.stream(request))) as arrivals:
                async for arrival in arrivals:
                    if empty is not None and not _says_something(arrival):
                        empty.append(arrival)
                        continue
                    for each in (*(empty or ()), arrival):
                        yield each
                    empty = None
            if empty is None:
                return
            if attempt == TRIES:
                for each in empty:
                    yield each

    async def _structured(self, request: Request) -> AsyncGenerator[Arrival]:
        """Give a reply that is held to a schema, whole; one that its limit of tokens cut in two is asked for again."""
        for attempt in range(1, TRIES + 1):
            async with aclosing(one_by_one(self._chat.stream(request))) as arrivals:
                whole = [arrival async for arrival in arrivals]
            if (
                attempt == TRIES
                or any(not isinstance(each, Delta | Usage | Truncated) for each in whole)
                or _is_finished(whole)
            ):
                for each in whole:
                    yield each
                return

    async def aclose(self) -> None:
        await self._chat.aclose()
        await asyncio.to_thread(self._let_go)

    def _let_go(self) -> None:
        self._engine = None


def _says_something(arrival: Arrival) -> bool:
    """Tell whether there is anything in an arrival to read; what a reply took is none of it."""
    return bool(arrival.text.strip()) if isinstance(arrival, Delta) else not isinstance(arrival, Usage | Truncated)


def _is_finished(arrivals: Sequence[Arrival]) -> bool:
    """Tell whether a reply is JSON to its end."""
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


@dataclass(frozen=True, eq=False)
class Engine:
    """A model that is loaded; freed when nobody holds it any more.

    Attributes:
        server: xllamacpp's; it ends when it is let go of.
        knows_tools: the file's chat template says how tools are called.
    """

    server: Any
    url: str
    key: str
    knows_tools: bool


_engines: WeakValueDictionary[tuple[str, int], Engine] = WeakValueDictionary()
_loading = threading.Lock()


def engine(at: Address) -> Engine:
    """Return the engine of a file with a window, loaded if it is not; takes a while, so it runs in a thread.

    Raises:
        ModelRefused: it cannot be loaded.
    """
    with _loading:
        key = (at.model, at.window)
        found = _engines.get(key)
        if found is None:
            found = _engines[key] = _load(at)
        return found


def _load(at: Address) -> Engine:
    from xllamacpp import CommonParams, Server

    params = CommonParams()
    params.model.path = at.model
    params.model_alias = {at.name}
    params.n_ctx, params.n_parallel = at.window * AT_ONCE, AT_ONCE
    # On all cores its threads wait for one another in loops whenever anything else runs: 20 times slower on two cores.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 2) // 2)
    params.cache_ram_mib = KEPT_MIB
    params.n_threads_http = AT_ONCE + 1
    params.warmup = params.ui = params.endpoint_slots = False
    params.verbosity, params.endpoint_metrics = 0, True
    params.api_keys = [key := token() + token()]
    try:
        server = Server(params)
    except (RuntimeError, ValueError, OSError) as error:
        raise ModelRefused(f"{at.name}: llama.cpp cannot load {at.model} ({at.quote(error)})") from None
    url = str(server.listening_address)
    return Engine(server, f"{url}/v1", key, _knows_tools(url, key))


def _knows_tools(url: str, key: str) -> bool:
    """Ask the server what the file's chat template can do."""
    request = urllib.request.Request(f"{url}/props", headers={"Authorization": f"Bearer {key}"})
    plain = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with plain.open(request, timeout=10) as answer:
        props = json.load(answer)
    return bool((props.get("chat_template_caps") or {}).get("supports_tools"))
