"""Hear another model out, or break it off properly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mindstream.models.model import Call, Model, Part, Piece, Request, Usage


@asynccontextmanager
async def listening(model: Model, request: Request) -> AsyncIterator[AsyncIterator[Part]]:
    """Give the parts of an answer; whoever leaves early closes the connection behind them."""
    parts = model.reply(request)
    try:
        yield parts
    finally:
        close = getattr(parts, "aclose", None)
        if close is not None:
            await close()


async def gathered(model: Model, request: Request) -> tuple[str, tuple[Call, ...], Usage | None]:
    """Return a whole answer: its text, its calls, its usage."""
    text: list[str] = []
    calls: list[Call] = []
    used: Usage | None = None
    async with listening(model, request) as parts:
        async for part in parts:
            match part:
                case Piece():
                    text.append(part.text)
                case Call():
                    calls.append(part)
                case Usage():
                    used = part
    return "".join(text), tuple(calls), used
