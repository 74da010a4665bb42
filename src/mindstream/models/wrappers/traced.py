"""A span for every call of a model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from mindstream.errors import ModelError
from mindstream.models.model import Model, Part, Request, Usage
from mindstream.tracing import start_span


class Traced:
    """Begins a `chat` span with the request and ends it with the answer; tokens where they are known."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self._model = model

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        provider, _, model = self.name.partition(":")
        call = start_span("chat", model or self.name, provider_name=provider, request_model=model or self.name)
        call.set_attribute("mindstream.prompt", request.prompt.label())
        call.set_attribute("mindstream.role", request.role)
        try:
            async with aclosing(self._model.reply(request)) as parts:
                async for part in parts:
                    if isinstance(part, Usage):
                        call.set_attribute("gen_ai.usage.input_tokens", part.input_tokens)
                        call.set_attribute("gen_ai.usage.output_tokens", part.output_tokens)
                        if part.cached_tokens:
                            call.set_attribute("gen_ai.usage.cache_read.input_tokens", part.cached_tokens)
                    yield part
        except ModelError as error:
            call.set_attribute("error.type", type(error).__name__)
            raise
        finally:
            call.end()
