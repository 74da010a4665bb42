"""Ask the next model if one fails; used only if the user configured a fallback."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from contextvars import ContextVar

from mindstream.errors import ModelError
from mindstream.models.model import Model, Part, Request


class Fallback:
    """Asks its models in order until one answers; a model that fails in the middle of a reply is not replaced."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = tuple(models)
        self._answered: ContextVar[str] = ContextVar("answered", default=models[0].name)

    @property
    def name(self) -> str:
        """The model that answered this task's last request; before the first request, the first model."""
        return self._answered.get()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        for model in self._models:
            begun = False
            try:
                async with aclosing(model.reply(request)) as parts:
                    async for part in parts:
                        if not begun:
                            self._answered.set(model.name)
                        begun = True
                        yield part
                return
            except ModelError:
                if begun or model is self._models[-1]:
                    raise
