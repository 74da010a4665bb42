"""A plan for a task, and nothing of it done yet: for whoever wants to look at it first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing

from mindstream.errors import InputError
from mindstream.models.ask import speak
from mindstream.models.model import Model
from mindstream.planning.formats.read import open_reader
from mindstream.planning.make_plan import MakePlan, describe
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.tools.tool import Tool

SHOWN = 300


async def plan_task(
    task: str,
    tools: Sequence[Tool],
    model: Model,
    exemplars: Sequence[str] = (),
    on_step: Callable[[PlannedStep], None] = lambda _: None,
) -> Plan:
    """Have a plan written; `on_step` is told of each step as it comes.

    Raises:
        InputError: what was written holds no step; the message says what it was.
        ModelError: the planner failed.
    """
    specs = [tool.spec for tool in tools]
    prompt = MakePlan(task=task, tools=tuple(map(describe, specs)), exemplars=tuple(exemplars))
    reader, steps, words = open_reader("rewoo", specs), list[PlannedStep](), ""

    def take(new: Sequence[PlannedStep]) -> None:
        steps.extend(new)
        for step in new:
            on_step(step)

    async with aclosing(speak(model, prompt, "planner")) as pieces:
        async for piece in pieces:
            words += piece
            take(reader.feed(piece))
    take(reader.close())
    if not steps:
        raise InputError(f"the planner wrote no plan, but: {' '.join(words.split())[:SHOWN]}")
    return Plan(task=task, steps=tuple(steps))
