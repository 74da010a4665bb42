"""A planner as a tool: whoever can call tools has tasks solved by one, and knows nothing of plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mindstream.errors import ToolError
from mindstream.models.roles import AnyModels
from mindstream.planning.planner import Planner
from mindstream.planning.solution import Solution
from mindstream.planning.solve import Strategy
from mindstream.tools.tool import FunctionTool, Tool, Traits, tool, traits_of

SECONDS = 25.0
"""A caller that waits for a tool as long as usual (30 s) gets what there is by then."""
CALLS, LONGEST, SHOWN = 32, 4_000, 500


def planner_tool(
    tools: Sequence[Tool],
    models: AnyModels,
    how: Strategy = "rewoo",
) -> FunctionTool:
    """Make the tool `solve_task`, which plans how to solve a task with these tools, and does it.

    It changes nothing, and gives words of strangers where one of its tools does.
    """
    able = ", ".join(each.spec.name for each in tools)
    planner = Planner(models=models, tools=tools, how=how, seconds=SECONDS, tool_calls=CALLS)

    async def solve_task(task: str) -> str:
        """Have a task solved that takes several steps; returns the answer, and what was found on the way."""
        if not task.strip() or len(task) > LONGEST:
            raise ToolError(f"a task has 1 to {LONGEST:,} characters")
        return _describe(await planner.solve(task.strip()))

    foreign = any(traits_of(each).foreign for each in tools)
    made = tool(solve_task, Traits(foreign=foreign, timeout_s=SECONDS + 5))
    spec = replace(made.spec, description=f"{made.spec.description}\nIt can use: {able or 'no tools'}.")
    return replace(made, spec=spec)


def _describe(solution: Solution) -> str:
    """Write an answer, and what each step found; raises ToolError where there is no answer."""
    if not solution.answer.strip():
        raise ToolError(f"the task was not solved: {solution.stopped or 'there is no answer'}")
    found = [
        f"{each.step} {each.tool}: {'failed: ' * each.failed}{' '.join(each.text[:SHOWN].split())}"
        for each in solution.evidence.values()
    ]
    lacks = [f"not found: {solution.unanswered}"] if solution.unanswered else []
    return "\n".join([solution.answer.strip(), *lacks, *(["", "found on the way:", *found] if found else [])])
