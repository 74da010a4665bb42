"""A planner: who plans and solves tasks with the same models, tools and limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mindstream.memory.memory import Memory
from mindstream.memory.recall.exemplars import Exemplars
from mindstream.models.roles import AnyModels, open_models
from mindstream.models.wrappers.budget import Budget
from mindstream.planning.exemplars import find_exemplars
from mindstream.planning.leave import Approver, refuse
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.planning.plan_task import plan_task
from mindstream.planning.solution import Solution
from mindstream.planning.solve import Strategy, choose_models, solve
from mindstream.planning.watcher import RunWatcher
from mindstream.tools.tool import Tool


@dataclass(frozen=True, kw_only=True)
class Planner:
    """Plans tasks and solves them with tools: as ReWOO (Xu 2023), ReAct (Yao 2023) or Plan-and-Execute (Wang 2023).

    Attributes:
        models: one for all roles or its name, or a table by role: planner, solver, replanner, for `react` worker.
        how: `rewoo`, `react` or `plan-execute`.
        memory: runs are written into its log; one that has a name and was broken off goes on where it stopped.
        exemplars: solved tasks that are shown to the planner, or who finds them: a `Member` of a pool.
        budget: what all that it does may spend together; None: no limit.
        tool_calls: how many calls of tools a run may make; seconds: how long it may take.
        replans: how often a run may mend its plan.
        leave: asked before a tool that changes the world is called; where nobody is named it is not.
        watchers: told of what goes on.
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
    leave: Approver = refuse
    watchers: Sequence[RunWatcher] = ()

    async def plan(self, task: str, on_step: Callable[[PlannedStep], None] = lambda _: None) -> Plan:
        """Have a plan written, and do nothing of it; `on_step` is told of each step as it comes.

        Raises:
            InputError: what was written holds no step; the message says what it was.
            ModelError: the planner failed, or the budget is spent.
        """
        async with open_models(self.models) as models:
            model = choose_models(models, ("planner",), self.budget or Budget())["planner"]
            return await plan_task(task, self.tools, model, await find_exemplars(self.exemplars, task), on_step)

    async def run(self, plan: Plan, *, run: str = "") -> Solution:
        """Do what a plan says, and answer its task; raises as `solve` does."""
        return await self.solve(plan.task, plan, run=run)

    async def solve(self, task: str, plan: Plan | None = None, *, run: str = "") -> Solution:
        """Solve a task by a plan: this one, or one that the planner writes.

        Args:
            run: the name of the run in the log of `memory`; a new one where it is not named.

        Raises:
            InputError: two tools have one name, or the run was about another task, or solved in another way.
            SettingsError: nobody is named for a role.
            HeldElsewhere: another process is running it.
            ModelError: the planner or the solver failed. (A budget that is spent is no error: see `Solution.stopped`.)
            StorageError: the log cannot be written.
        """
        return await solve(
            task, self.how, tools=self.tools, models=self.models, exemplars=self.exemplars, plan=plan,
            budget=self.budget, tool_calls=self.tool_calls, seconds=self.seconds, replans=self.replans,
            leave=self.leave, watchers=self.watchers, stream=self.memory, run=run,
        )  # fmt: skip
