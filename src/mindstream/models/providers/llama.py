"""Models of GGUF files, run by llama.cpp in this process (the package `xllamacpp`).

llama.cpp answers in threads of its own that never hold Python's lock, at a port of this machine that requires a key
made for this process. So it is asked like any endpoint: cancelling, errors, streams and limits are the same.
"""

from __future__ import annotations

import json
import os
import threading
import urllib.request
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from mindstream.chance import token
from mindstream.errors import ModelRefused
from mindstream.models.providers.address import Address

AT_ONCE = 3
"""Replies that run at the same time, each with a window of its own: the talker's, and those of two reasoners."""
CACHE_MIB = 256
"""Memory for prompt prefixes that are no longer in a window, in MiB."""


@dataclass(frozen=True, eq=False)
class Engine:
    """A loaded model; it is freed when nothing refers to it any more.

    Attributes:
        server: the server of xllamacpp.
        knows_tools: the file's chat template says how tools are called.
    """

    server: Any
    url: str
    key: str
    knows_tools: bool


_engines: WeakValueDictionary[tuple[str, int], Engine] = WeakValueDictionary()
_loading = threading.Lock()


def engine(at: Address) -> Engine:
    """Return the engine of a file with a window; loading takes seconds, so call this in a thread.

    Raises:
        ModelRefused: it cannot be loaded.
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
    params.n_ctx, params.n_parallel = at.window * AT_ONCE, AT_ONCE
    # On all cores its threads wait for one another in loops whenever anything else runs: 20 times slower on two cores.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 2) // 2)
    params.cache_ram_mib = CACHE_MIB
    params.n_threads_http = AT_ONCE + 1
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
