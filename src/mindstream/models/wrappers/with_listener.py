"""Tell whoever asks what their calls were: for models that many minds share, each with a log of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import replace

from mindstream.models.model import Model, Part, Request
from mindstream.models.wrappers.meter import Metered


class WithListener:
    """Passes requests on with `on_call` in them; the meter below tells it of each attempt."""

    def __init__(self, model: Model, on_call: Callable[[Metered], None]) -> None:
        self._model = model
        self._on_call = on_call

    @property
    def name(self) -> str:
        return self._model.name

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        further = request.on_call

        def tell(call: Metered) -> None:
            self._on_call(call)
            if further is not None:
                further(call)

        return self._model.reply(replace(request, on_call=tell))
