"""How likely a model finds a given text after a prompt: log-probabilities, where whoever answers tells them."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

from mindstream.errors import ModelRefused
from mindstream.models.model import Model, Request, TextLogprobs
from mindstream.models.prompt import Prompt


async def text_logprobs(model: Model, prompt: Prompt[Any], text: str, role: str = "") -> tuple[float, ...]:
    """Return the log-probability of each of a text's first tokens, where they follow the prompt's words.

    Raises:
        ModelRefused: the model does not tell.
        ModelError: it cannot be had.
    """
    request = Request(prompt, role or prompt.role, continuation=text)
    async with aclosing(model.reply(request)) as parts:
        async for part in parts:
            if isinstance(part, TextLogprobs):
                return part.tokens
    raise ModelRefused(f"{model.name} does not tell how likely a given text is")
