"""Stop before more is spent than was allowed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from mindstream.errors import BudgetSpent
from mindstream.models.model import Call, Model, Part, Piece, Request, Usage


@dataclass
class Budget:
    """What may be spent, shared by any number of models, and what has been.

    An endpoint that tells no usage is counted by an estimate, four characters a token. A call whose price is not known
    (a local model) adds nothing to `spent_usd`. Calls that run side by side can overshoot by what they take themselves.
    """

    calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    spent_calls: int = 0
    spent_tokens: int = 0
    spent_usd: float = 0.0

    def take_call(self) -> None:
        """Count one call.

        Raises:
            BudgetSpent: nothing is left for it.
        """
        for what, allowed, spent in (
            ("calls", self.calls, self.spent_calls),
            ("tokens", self.tokens, self.spent_tokens),
            ("US dollars", self.cost_usd, self.spent_usd),
        ):
            if allowed is not None and spent >= allowed:
                raise BudgetSpent(
                    f"{spent:g} of the {allowed:g} {what} that were allowed are spent: allow more, or stop"
                )
        self.spent_calls += 1

    def spend(self, used: Usage) -> None:
        """Count what a call took."""
        self.spent_tokens += used.input_tokens + used.output_tokens
        self.spent_usd += used.cost_usd or 0.0


class Budgeted:
    """A model that answers while its budget lasts."""

    def __init__(self, model: Model, budget: Budget) -> None:
        self.name = model.name
        self._model = model
        self._budget = budget

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self._budget.take_call()
        told: Usage | None = None
        characters = 0
        try:
            async with aclosing(self._model.reply(request)) as parts:
                async for part in parts:
                    if isinstance(part, Usage):
                        told = part
                    elif isinstance(part, Piece | Call):
                        characters += len(part.text if isinstance(part, Piece) else part.arguments)
                    yield part
        finally:
            if told is None and characters:
                told = Usage(sum(len(message.text) for message in request.messages) // 4, characters // 4)
            if told is not None:
                self._budget.spend(told)
