"""A model whose replies are fetched by the workers of an engine (see `mindstream.engines`).

Counters, limits and caches stay in this process.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import cache

from mindstream.engines.engine import Engine
from mindstream.errors import ModelError
from mindstream.models.model import Model, Part, Piece, Request, Usage, estimate_tokens
from mindstream.models.providers.provider import provider
from mindstream.models.rules import Rules


class EngineModel:
    """A model that runs each call as a task of an engine; the reply arrives as a whole, not piece by piece.

    Args:
        patience_s, window: see `Models.named`.
    """

    def __init__(self, name: str, engine: Engine, patience_s: float | None = None, window: int | None = None) -> None:
        self.name = name
        self._engine, self._opened = engine, (name, patience_s, window)

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        parts, error = await self._engine.run(answer, self._opened, request.but(on_call=None, on_thought=None))
        for part in parts:
            yield part
        if error is not None:
            raise error


async def answer(
    opened: tuple[str, float | None, int | None], request: Request
) -> tuple[list[Part], ModelError | None]:
    """Return the parts of a model's reply that arrived, and the error that ended the reply, if any."""
    parts, thoughts, failure = list[Part](), list[str](), None
    try:
        async for part in _open(*opened).reply(request.but(on_thought=thoughts.append)):
            parts.append(part)
    except ModelError as error:
        failure = error
    if thoughts and not any(isinstance(part, Usage) for part in parts):  # only this process knows the thoughts
        said = (part.text for part in parts if isinstance(part, Piece))
        parts.append(Usage(request.tokens, estimate_tokens("".join((*thoughts, *said)))))
    return parts, failure


@cache
def _open(name: str, patience_s: float | None, window: int | None) -> Model:
    return Rules() if name == Rules.name else provider(name, patience_s=patience_s, window=window)
