"""A planner: who plans and solves tasks with the same models, tools and limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mindstream.memory.memory import Memory
from mindstream.memory.recall.exemplars import Exemplars
from mindstream.models.roles import AnyModels
from mindstream.models.wrappers.budget import Budget
from mindstream.planning.executor import LIMITS, Approver, Limits, RunWatcher, refuse
from mindstream.planning.exemplars import find_exemplars
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.planning.plan_task import plan_task
from mindstream.planning.run import PLANNER
from mindstream.planning.solution import Solution
from mindstream.planning.solve import Strategy, choose_models, solve
from mindstream.planning.strategies.remembered import RememberedPlans
from mindstream.tools.tool import Tool
from mindstream.tracing import genai, span


@dataclass(frozen=True, kw_only=True)
class Planner:
    """Plans tasks and solves them with tools: as ReWOO (Xu 2023), ReAct (Yao 2023) or Plan-and-Execute (Wang 2023).

    Attributes:
        models: one for all roles or its name, or a table by role: planner, solver, replanner (else who plans), for
            `react` worker. Of an empty table stand-ins answer, as where nothing is configured.
        how: `rewoo`, `react` or `plan-execute`; without tools `direct`, or `cot` (chain of thought).
        memory: runs are written into its log; one that has a name and was broken off goes on where it stopped.
        exemplars: solved tasks that are shown to the planner, in the form of the way that is taken; or who finds them,
            asked once a call: a `Member` of a pool.
        budget: what all that it does may spend together; None: no limit.
        tool_calls: how many calls of tools a run may make. Of these and the budget counts what was spent before a run
            was broken off, too; when one is spent the run ends with what it has, and says so; at most one call more is
            made.
        seconds: how long a run may take; whoever goes on with it waits anew.
        replans: how often a run may mend its plan, after steps failed or the answer was missing.
        own_knowledge: of a step that failed the model says what it knows itself; it is marked (`Solution.own`).
        leave: asked before a tool that changes the world is called; where nobody is named it is not.
        watchers: told of what goes on.
        remembered: a plan that solved a task of the same form is run without asking the planner, and one that is made
            and ends well is kept (not where nothing is planned beforehand).
    """

    models: AnyModels
    tools: Sequence[Tool] = ()
    how: Strategy = "rewoo"
    memory: Memory | None = None
    exemplars: Sequence[str] | Exemplars = ()
    budget: Budget | None = None
    tool_calls: int | None = None
    seconds: float | None = None
    replans: int = 1
    own_knowledge: bool = False
    limits: Limits = LIMITS
    leave: Approver = refuse
    watchers: Sequence[RunWatcher] = ()
    remembered: RememberedPlans | None = None

    async def plan(self, task: str, on_step: Callable[[PlannedStep], None] = lambda _: None) -> Plan:
        """Have a plan written, and do nothing of it; `on_step` is told of each step as it comes.

        Raises:
            InputError: what was written holds no step; the message says what it was.
            ModelError: the planner failed, or the budget is spent.
        """
        async with choose_models(self.models, ("planner",), self.budget or Budget()) as named:
            shown = await find_exemplars(self.exemplars, task)
            with span(genai.PLAN, PLANNER, {genai.AGENT: PLANNER}):
                return await plan_task(task, self.tools, named["planner"], shown, on_step)

    async def run(self, plan: Plan, *, run: str = "") -> Solution:
        """Do what a plan says, and answer its task; raises as `solve` does."""
        return await self.solve(plan.task, plan, run=run)

    # What stands in a module of its own; the planner is the first argument.
    solve = solve
