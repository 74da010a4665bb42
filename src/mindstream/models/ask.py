"""Put a prompt to a model: `ask` (a typed answer), `speak` (a stream), `act` (tool calls, or the answer)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from mindstream.errors import ModelRefused, ReplyInvalid
from mindstream.models.model import Call, Message, Model, Piece, Request, TextLogprobs, ToolSpec, Usage
from mindstream.models.prompt import Prompt
from mindstream.models.reply import LegiblePieces, legible_call

R = TypeVar("R")


async def ask(model: Model, prompt: Prompt[R], role: str = "") -> R:
    """Return the model's typed answer.

    Raises:
        ModelError: the model gave no answer, or one of the wrong type (the wrapper `Repair` lets the model correct it).
    """
    text, _, _ = await gather_reply(model, Request(prompt, role or prompt.role))
    return prompt.ground(prompt.parse(text), ())[0]


async def speak(model: Model, prompt: Prompt[str], role: str = "") -> AsyncGenerator[str]:
    """Yield the model's text piece by piece.

        async for piece in speak(model, Greet()):
            print(piece, end="", flush=True)

    Raises:
        ModelError: the endpoint failed; pieces that were yielded before remain valid.
        ReplyInvalid: the reply has no text.
    """
    has_text, pieces = False, LegiblePieces()
    async with aclosing(model.reply(Request(prompt, role or prompt.role))) as parts:
        async for part in parts:
            if isinstance(part, Piece) and (text := pieces.add(part.text)):
                has_text = has_text or any(sign.isprintable() and sign != " " for sign in text)
                yield text
    if not has_text:
        raise ReplyInvalid(f"{model.name} answered the prompt {prompt.label()!r} without any visible text")


async def act(
    model: Model,
    prompt: Prompt[R],
    tools: Sequence[ToolSpec],
    turns: Sequence[Message] = (),
    role: str = "",
    on_text: Callable[[str], None] | None = None,
) -> tuple[str, tuple[Call, ...]] | R:
    """Return (text, calls) if the model calls tools, else its typed answer. `run_tool_loop` also makes the calls.

    Args:
        on_text: called with each piece of text as it arrives.
    """
    request = Request(prompt, role or prompt.role, tuple(turns), tuple(tools))
    text, calls, _ = await gather_reply(model, request, on_text)
    return (text, calls) if calls else prompt.ground(prompt.parse(text), turns)[0]


async def gather_reply(
    model: Model, request: Request, on_text: Callable[[str], None] | None = None
) -> tuple[str, tuple[Call, ...], Usage | None]:
    """Return the text, the calls and the usage of a complete reply; unprintable characters are removed."""
    text, calls, used = list[str](), list[Call](), None
    pieces = LegiblePieces()
    async with aclosing(model.reply(request)) as parts:
        async for part in parts:
            match part:
                case Piece():
                    if legible := pieces.add(part.text):
                        text.append(legible)
                        if on_text is not None:
                            on_text(legible)
                case Call():
                    calls.append(legible_call(part))
                case Usage():
                    used = part
    return "".join(text), tuple(calls), used


async def text_logprobs(model: Model, prompt: Prompt[Any], text: str) -> tuple[float, ...]:
    """Return the log-probabilities of the tokens of `text` as the continuation of a prompt.

    The model may report only those of the first tokens.

    Raises:
        ModelRefused: the model reports no log-probabilities.
        ModelError: the model is unavailable.
    """
    request = Request(prompt, prompt.role, continuation=text)
    async with aclosing(model.reply(request)) as parts:
        async for part in parts:
            if isinstance(part, TextLogprobs):
                return part.tokens
    raise ModelRefused(f"{model.name} reports no log-probabilities of a given text")
