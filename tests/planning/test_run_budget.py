"""No run exceeds its budget by more than one call: five hundred random runs, all strategies, concurrent calls."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import get_args

import pytest

from mindstream.errors import ModelError
from mindstream.models.model import Call, Part, Piece, Request, Usage
from mindstream.models.wrappers.meter import Budget, Budgeted
from mindstream.planning.planner import Planner, Strategy
from mindstream.tools.named import model_tool
from mindstream.tools.tool import Traits, tool


@dataclass
class Spender:
    """A model that plans, acts, answers or reports missing steps at random, and reports the cost of each call."""

    draw: random.Random
    name: str = "spender"
    used: list[Usage] = field(default_factory=list)

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        written = self.draw.randint(1, 1_000) ** 2 // 1_000  # most replies are short, some of the maximum length
        used = Usage(request.tokens, written, (request.tokens + written) * 1e-5)
        for _ in range(self.draw.randint(0, 3)):
            await asyncio.sleep(0)
        match request.prompt.label():
            case "make_plan" | "mend_plan":
                names = [self.draw.choice(("LLM", "look")) for _ in range(self.draw.randint(1, 8))]
                lines = [f"#E{n} = {name}[{self._words(n)}]\n" for n, name in enumerate(names, 1)]
                yield Piece("".join(lines))
            case "act_on_task" if request.tools and self.draw.random() < 0.8:
                for n in range(self.draw.randint(1, 8)):
                    name, argument = self.draw.choice((("LLM", "instruction"), ("look", "query")))
                    yield Call(name, json.dumps({argument: self._words(n)}))
            case "answer_from_evidence" if self.draw.random() < 0.5:
                yield Piece("MISSING")
            case _:
                yield Piece("an answer")
        self.used.append(used)
        yield used

    def _words(self, n: int) -> str:
        return f"#E{self.draw.randint(1, n - 1)}" if n > 1 and self.draw.random() < 0.4 else str(self.draw.random())


@dataclass
class Library:
    """A tool that counts its calls, and sometimes fails."""

    draw: random.Random
    looks: int = 0

    async def look(self, query: str) -> str:
        """Look it up."""
        self.looks += 1
        await asyncio.sleep(0)
        return "found" if self.draw.random() < 0.8 else ""


@pytest.mark.parametrize("seeds", [range(100), pytest.param(range(100, 500), marks=pytest.mark.slow)], ids=str)
async def test_a_budget_is_never_exceeded_by_more_than_one_call(seeds: range) -> None:
    stopped = 0
    for seed in seeds:
        draw = random.Random(seed)
        model = Spender(draw)
        library = Library(draw)
        allowed = {name: value for name, value in (
            ("calls", draw.randint(1, 12)), ("tokens", draw.randint(1, 20_000)), ("cost_usd", draw.random() / 5),
        ) if draw.random() < 0.4}  # fmt: skip
        budget, most = Budget(**allowed), draw.choice((None, 1, 3, 7))  # type: ignore[arg-type]
        how: Strategy = draw.choice(get_args(Strategy)[:3])
        tools = [
            tool(library.look, Traits(retries=1, cost_usd=0.001, untrusted=True)),
            model_tool(Budgeted(model, budget)),
        ]
        try:
            planner = Planner(model=model, tools=tools, how=how, budget=budget, tool_calls=most, replans=2)
            solution = await planner.solve("a task")
            stopped += bool(solution.stopped)
            assert most is None or solution.spent.tool_calls <= most
        except ModelError:  # it continued until the last step
            assert how == "react"
        assert most is None or library.looks <= most
        tokens = [each.input_tokens + each.output_tokens for each in model.used]
        dollars = [each.cost_usd or 0.0 for each in model.used]
        assert budget.calls is None or len(tokens) <= budget.calls
        assert budget.tokens is None or sum(tokens) < budget.tokens + max(tokens, default=0), (seed, how)
        spent = sum(dollars) + 0.001 * library.looks
        assert abs(spent - budget.spent_usd) < 1e-9
        assert budget.cost_usd is None or spent < budget.cost_usd + max([*dollars, 0.001]), (seed, how)
    assert stopped > len(seeds) // 5
