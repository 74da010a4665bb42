"""A model that tools (a planner, `llm`) or orders call outside of turns, billed to the life."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from mindstream import chance
from mindstream.life.events import Asked, Replied
from mindstream.life.steps import Steps
from mindstream.models.model import Model, Part, Request, Usage
from mindstream.models.shorten import request_tokens


class BilledModel:
    """A model whose calls count against the life's budget; they are no steps of a turn.

    Attributes:
        steps: of the life that pays; None until it is open.
    """

    def __init__(self, model: Model, steps: Steps | None = None) -> None:
        self.name = model.name
        self.steps = steps
        self._model = model

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        """Raise BudgetSpent if the budget allows no call."""
        steps, usage = self.steps, Usage(0, 0)
        if steps is None:
            raise RuntimeError("a billed model was asked before its life was open")
        id_, role = f"tool-{chance.token()}", request.role
        estimated = request_tokens(request)
        steps.budget.check(steps.state.spent, steps.memory.clock.now())
        steps.note(Asked(id=id_, role=role, tokens=estimated))
        await steps.flush()
        try:
            async with aclosing(self._model.reply(request)) as parts:
                async for part in parts:
                    usage = part if isinstance(part, Usage) else usage
                    yield part
        finally:
            tokens = usage.input_tokens + usage.output_tokens or estimated
            steps.note(Replied(id=id_, role=role, model=self.name, text="", tokens=tokens, cost_usd=usage.cost_usd))
