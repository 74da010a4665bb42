"""Clean what a model writes, before anything measures, records or keeps it."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from mindstream.models.model import Model, Part, Request
from mindstream.models.reply import legible_parts


class OutputSanitizer:
    """Passes on what can be written to a file: no half characters, no NUL."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self._model = model

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        return legible_parts(self._model.reply(request))
