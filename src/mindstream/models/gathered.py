"""A whole answer, gathered from its parts."""

from __future__ import annotations

from contextlib import aclosing

from mindstream.models.model import Call, Model, Piece, Request, Usage
from mindstream.models.reply import legible_parts


async def gather_reply(model: Model, request: Request) -> tuple[str, tuple[Call, ...], Usage | None]:
    """Hear a model out; return its text, its calls and its usage, all of it legible."""
    text: list[str] = []
    calls: list[Call] = []
    used: Usage | None = None
    async with aclosing(legible_parts(model.reply(request))) as parts:
        async for part in parts:
            match part:
                case Piece():
                    text.append(part.text)
                case Call():
                    calls.append(part)
                case Usage():
                    used = part
    return "".join(text), tuple(calls), used
