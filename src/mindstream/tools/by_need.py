"""Tools found by need among many (placeholder until by_need lands)."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.models.embedders.embedder import Embedder
from mindstream.tools.tool import Tool


class Shelf:
    def __init__(self, tools: Sequence[Tool], embedder: Embedder) -> None:
        self.tools = tools

    async def find(self, need: str, k: int = 6) -> tuple[Tool, ...]:
        return tuple(self.tools[:k])
