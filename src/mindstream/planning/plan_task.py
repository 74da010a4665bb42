"""A plan for a task, and nothing of it done yet: for whoever wants to look at it first."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from mindstream.errors import InputError
from mindstream.models.ask import speak
from mindstream.models.model import Model, ToolSpec
from mindstream.models.providers.thoughts import Thinking
from mindstream.planning.check import LONGEST, MOST_STEPS
from mindstream.planning.formats.read import open_reader, read_other
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.planning.prompts import MakePlan, describe
from mindstream.tools.call import ForeignText
from mindstream.tools.tool import Tool

SHOWN = 300
"""So much is told of what a planner said that wrote no plan, in characters."""


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
    steps = list[PlannedStep]()
    async with aclosing(write_steps(task, [tool.spec for tool in tools], model, exemplars)) as written:
        async for step in written:
            steps.append(step)
            on_step(step)
    return Plan(task=task, steps=tuple(steps), foreign=is_foreign(exemplars))


def is_foreign(exemplars: Sequence[str]) -> bool:
    """Tell whether a stranger's exemplar is among those that a planner is shown."""
    return any(isinstance(each, ForeignText) for each in exemplars)


async def write_steps(
    task: str, specs: Sequence[ToolSpec], model: Model, exemplars: Sequence[str] = ()
) -> AsyncGenerator[PlannedStep]:
    """Have a plan written, and yield its steps as they come; what is thought aloud before it is none of it.

    A planner that does not come to an end is broken off when its plan cannot run any more. Raises as `plan_task` does.
    """
    prompt = MakePlan(task=task, tools=tuple(map(describe, specs)), exemplars=tuple(exemplars))
    reader, thinking = open_reader("rewoo", specs), Thinking()
    words, length, count = "", 0, 0
    async with aclosing(speak(model, prompt, "planner")) as pieces:
        async for piece in pieces:
            _, plain = thinking.part(piece)
            words, length = (words + plain)[:LONGEST], length + len(piece)
            for step in reader.feed(plain):
                count += 1
                yield step
            if length > LONGEST or count > MOST_STEPS:
                break
    rest = thinking.rest()
    for step in (*reader.feed(rest), *reader.close()):
        count += 1
        yield step
    if not count and (found := read_other(words + rest, specs)):
        for step in found.steps:
            yield step
    elif not count:
        raise InputError(f"there is no plan: {' '.join((words + rest).split())[:SHOWN]}")
