"""Ask the next model when one fails."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from mindstream.errors import ModelError
from mindstream.models.model import Model, Part, Request


class Fallback:
    """Asks its models in their order until one answers; one that breaks off in the middle is not replaced.

    `on_answer` is told the name of the model that answers and the failures of those before it.
    """

    def __init__(
        self, models: Sequence[Model], on_answer: Callable[[str, Sequence[ModelError]], None] | None = None
    ) -> None:
        if not models:
            raise ValueError("Fallback needs a model")
        self.name = models[0].name
        self._models = tuple(models)
        self._on_answer = on_answer

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        failures: list[ModelError] = []
        for model in self._models:
            begun = False
            try:
                async with aclosing(model.reply(request)) as parts:
                    async for part in parts:
                        if not begun and self._on_answer is not None:
                            self._on_answer(model.name, tuple(failures))
                        begun = True
                        yield part
                return
            except ModelError as failure:
                failures.append(failure)
                if begun or len(failures) == len(self._models):
                    raise
