"""What minds spend is charged to whoever spoke to them last: their token's budget, beside the operator's."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from mindstream.models.model import Model, Part, Request, Usage
from mindstream.models.wrappers.budget import Budgeted

if TYPE_CHECKING:
    from mindstream.service.operations.open_minds import OpenMind


class SpentOf:
    """Whose budget a mind's calls are charged to: it is asked at each call."""

    def __init__(self) -> None:
        self.of: OpenMind | None = None

    def charge(self, model: Model) -> Model:
        """Return a model whose calls are charged so."""
        return _Charged(model, self)


class _Charged:
    def __init__(self, model: Model, spent: SpentOf) -> None:
        self.name = model.name
        self._model, self._spent = model, spent

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        opened = self._spent.of
        budget = opened.budget if opened is not None else None
        model = self._model if budget is None else Budgeted(self._model, budget)
        async with aclosing(model.reply(request)) as parts:
            async for part in parts:
                if isinstance(part, Usage) and opened is not None and opened.on_usage is not None:
                    opened.on_usage(request.role, part)
                yield part
