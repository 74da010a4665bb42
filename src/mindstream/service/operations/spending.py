"""What minds spend is charged to whoever spoke to them last: their token's budget, beside the operator's."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from mindstream.models.model import Model, Part, Request, Usage
from mindstream.models.wrappers.budget import Budget
from mindstream.models.wrappers.meter import Metered, WithListener

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
    """A model whose every call, those that repair or retry an answer too, is charged."""

    def __init__(self, model: Model, spent: SpentOf) -> None:
        self.name = model.name
        self._model, self._spent = model, spent

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        opened = self._spent.of
        budget = opened.budget if opened is not None else None
        async with aclosing(charged(self._model, budget).reply(request)) as parts:
            async for part in parts:
                if isinstance(part, Usage) and opened is not None and opened.on_usage is not None:
                    opened.on_usage(request.role, part)
                yield part


def charged(model: Model, budget: Budget | None) -> Model:
    """Return a model that answers while a budget lasts; one answer may exceed it, its repairs included."""
    return model if budget is None else _Limited(WithListener(model, budget_taker(budget)), budget)


def budget_taker(budget: Budget) -> Callable[[Metered], None]:
    """Return what counts each call of a model in a budget."""

    def take(call: Metered) -> None:
        budget.spent_calls += 1
        if call.usage is not None:
            budget.spend(call.usage)

    return take


class _Limited:
    def __init__(self, model: Model, budget: Budget) -> None:
        self.name = model.name
        self._model, self._budget = model, budget

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        if self._budget.bring_up is not None:
            await self._budget.bring_up()
        self._budget.check()
        async with aclosing(self._model.reply(request)) as parts:
            async for part in parts:
                yield part
