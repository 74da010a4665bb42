"""Write the recorded words with a local small model: it reads each request, and a grammar fixes its output."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping

from tokens_play import Line, Player

from mindstream.models.providers.address import Address
from mindstream.models.providers.gguf import Engine
from mindstream.models.providers.wire import Client

WHOLE_BYTES = 8_000_000


class HeldPlayer(Player):
    """Play back like `Player`, but with a model that reads each request and writes each reply, so that it takes real
    time.
    """

    def __init__(self, lines: Mapping[str, deque[Line]], engine: Engine, cached: bool) -> None:
        super().__init__(lines)
        self._engine, self._cached = engine, cached

    async def write(self, asked: str, words: str) -> None:
        body = {
            "prompt": asked, "n_predict": 4 * len(words) + 8, "cache_prompt": self._cached, "temperature": 0,
            "grammar": f"root ::= {json.dumps(words, ensure_ascii=False)}",
        }  # fmt: skip
        url = self._engine.url.removesuffix("/v1") + "/completion"
        async with Client(Address("local", "gguf", "", self._engine.url, self._engine.key), WHOLE_BYTES) as client:
            answer = await client.ask("POST", url, body)
        if (written := answer["content"]) != words:
            raise RuntimeError(f"the grammar held {words[:80]!r}, and {written[:80]!r} came")


async def load(name: str) -> Engine:
    """Load a model's file in a thread; raises as `mindstream.models.providers.gguf.engine` does."""
    from mindstream.models.providers.address import address
    from mindstream.models.providers.gguf import engine

    return await asyncio.to_thread(engine, address(name))
