"""Charge the model calls of a mind to the token of the user who spoke last, in addition to the operator's budget."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mindstream.errors import BudgetSpent
from mindstream.models.model import Call, Model, Part, Piece, Request, Usage, estimate_tokens
from mindstream.models.providers.limits import all_tokens, has_price
from mindstream.models.recording import costs_nothing
from mindstream.models.wrappers.budget import Budget
from mindstream.models.wrappers.meter import Metered, WithListener

if TYPE_CHECKING:
    from mindstream.service.operations.open_minds import OpenMind


class Payer:
    """Charges a mind's model calls to the budget of the user who spoke last.

    Attributes:
        of: the open mind, read at each call; None: nothing is charged yet.
    """

    def __init__(self) -> None:
        self.of: OpenMind | None = None

    def charge(self, model: Model) -> Model:
        """Return a model that charges each of its calls to the budget."""
        return _Charged(model, self)


class _Charged:
    """A model whose calls are all charged, including calls that repair or retry a reply."""

    def __init__(self, model: Model, payer: Payer) -> None:
        self.name = model.name
        self._model, self._payer = model, payer

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        if (opened := self._payer.of) is None:
            return self._model.reply(request)
        parts = charged(self._model, opened.budget).reply(request)
        return _reported(parts, partial(opened.on_usage, request.role)) if opened.on_usage is not None else parts


async def _reported(parts: AsyncGenerator[Part], on_usage: Callable[[Usage], None]) -> AsyncGenerator[Part]:
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, Usage):
                on_usage(part)
            yield part


def charged(model: Model, budget: Budget | None) -> Model:
    """Return a model that reserves tokens in a budget before each call, and records the actual usage after it."""
    return model if budget is None else _Reserving(model, budget)


class _Reserving:
    def __init__(self, model: Model, budget: Budget) -> None:
        self.name = model.name
        self._model, self._budget = model, budget

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        budget, used, said = self._budget, list[Usage](), list[str]()

        def count(call: Metered) -> None:  # called for each attempt, including those that repair or retry a reply
            if call.usage is not None:
                used.append(call.usage)
                budget.spend(call.usage)
                budget.unpriced += call.usage.cost_usd is None and not costs_nothing(call.model)

        if budget.bring_up is not None:
            await budget.bring_up()
        self._check_price()
        reserved = await budget.begin(request)
        try:
            self._check_price()  # again: while this call waited, another one may have turned out to have no price
            if budget.bring_up is not None:
                await budget.bring_up()  # so that other processes count this reservation
            if reserved.answered < all_tokens(request):
                request = replace(request, longest_reply=reserved.answered)
            async with aclosing(WithListener(self._model, count).reply(request)) as parts:
                async for part in parts:
                    if isinstance(part, Piece | Call):
                        said.append(part.text if isinstance(part, Piece) else part.arguments)
                    yield part
        finally:
            is_estimated = not used and any(said) and not costs_nothing(self.name)
            estimate = Usage(request.tokens, estimate_tokens("".join(said))) if is_estimated else None
            budget.end(reserved, estimate)

    def _check_price(self) -> None:
        """Raise BudgetSpent if a limit in US dollars is set and cannot be enforced, because a price is not known."""
        limit = self._budget.cost_usd
        if limit is not None and (self._budget.unpriced or not has_price(self.name)):
            raise BudgetSpent(
                f"a limit of {limit:g} US dollars is set, but the price of {self.name} is not known: "
                "use a model with a known price, or a token with a limit in tokens (--max-tokens)"
            )
