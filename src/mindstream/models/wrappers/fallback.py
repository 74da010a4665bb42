"""Ask the next model when one fails: only where a person has named one for that."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from contextvars import ContextVar

from mindstream.errors import ModelError
from mindstream.models.model import Model, Part, Request


class Fallback:
    """Asks its models in their order until one answers; one that breaks off in the middle is not replaced."""

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            raise ValueError("Fallback needs a model")
        self._models = tuple(models)
        self._answered: ContextVar[str] = ContextVar("answered", default=models[0].name)

    @property
    def name(self) -> str:
        """Who has answered the last request of this task; before the first one: who is asked first."""
        return self._answered.get()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        for left, model in enumerate(self._models, 1 - len(self._models)):
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
                if begun or left == 0:
                    raise
