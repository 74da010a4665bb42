"""Three ways to put a prompt to a model: `ask` (a typed answer), `speak` (a stream), `act` (calls, or the answer)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TypeVar

from mindstream.errors import ReplyInvalid
from mindstream.models.model import Call, Message, Model, Piece, Request, ToolSpec, Usage
from mindstream.models.prompt import Prompt
from mindstream.models.reply import legible_parts

R = TypeVar("R")


async def ask(model: Model, prompt: Prompt[R], role: str = "") -> R:
    """Return the model's typed answer.

    Raises:
        ModelError: there is none, or it does not fit (see the wrapper `Repair`, which lets the model mend it).
    """
    text, _, _ = await gather_reply(model, Request(prompt, role or prompt.role))
    return prompt.ground(prompt.parse(text), ())[0]


async def speak(model: Model, prompt: Prompt[str], role: str = "") -> AsyncGenerator[str]:
    """Yield the model's words as they come.

    Raises:
        ModelError: the endpoint failed; pieces that came before stand.
        ReplyInvalid: it said nothing at all.
    """
    said = False
    async with aclosing(legible_parts(model.reply(Request(prompt, role or prompt.role)))) as parts:
        async for part in parts:
            if isinstance(part, Piece) and part.text:
                said = said or any(sign.isprintable() and sign != " " for sign in part.text)
                yield part.text
    if not said:
        raise ReplyInvalid(f"{model.name} answered {prompt.label()!r} with no words")


async def act(
    model: Model,
    prompt: Prompt[R],
    tools: Sequence[ToolSpec],
    turns: Sequence[Message] = (),
    role: str = "",
    on_text: Callable[[str], None] | None = None,
) -> tuple[str, tuple[Call, ...]] | R:
    """Return what to do next: (words, calls) while the model wants tools called, else its typed answer.

    Args:
        on_text: gets the model's words as they come.
    """
    request = Request(prompt, role or prompt.role, tuple(turns), tuple(tools))
    text, calls, _ = await gather_reply(model, request, on_text)
    return (text, calls) if calls else prompt.ground(prompt.parse(text), turns)[0]


# A whole answer, gathered from its parts.


async def gather_reply(
    model: Model, request: Request, on_text: Callable[[str], None] | None = None
) -> tuple[str, tuple[Call, ...], Usage | None]:
    """Hear a model out; return its text, its calls and its usage, all of it legible."""
    text: list[str] = []
    calls: list[Call] = []
    used: Usage | None = None
    async with aclosing(legible_parts(model.reply(request))) as parts:
        async for part in parts:
            match part:
                case Piece():
                    text.append(part.text)
                    if on_text is not None:
                        on_text(part.text)
                case Call():
                    calls.append(part)
                case Usage():
                    used = part
    return "".join(text), tuple(calls), used
