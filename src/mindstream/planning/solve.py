"""Solves a task, with tools in one of three ways or without, behind one call (Xu 2023; Yao 2023; Wang 2023)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from mindstream import chance, intake
from mindstream.errors import BudgetSpent, InputError
from mindstream.log import erasures
from mindstream.log.names import checked_name
from mindstream.models.cause import Cause, calls_for, current_cause
from mindstream.models.model import Model
from mindstream.models.roles import AnyModels, open_models
from mindstream.models.wrappers.budget import Budget, Budgeted
from mindstream.planning.events import Allowance
from mindstream.planning.executor import one_at_a_time
from mindstream.planning.exemplars import find_exemplars
from mindstream.planning.journal import GIVEN, REMEMBERED, Journal, RunCheckpoint, open_journal, outlast, read_run
from mindstream.planning.plan import Plan
from mindstream.planning.prompts import QUOTED
from mindstream.planning.run import PLANNER, PlanningRun
from mindstream.planning.solution import Solution
from mindstream.planning.strategies.plan_execute import chain_of_thought, direct, plan_and_execute, rewoo
from mindstream.planning.strategies.react import react
from mindstream.tools.tool import checked_tools
from mindstream.tracing import genai, span

if TYPE_CHECKING:
    from mindstream.planning.planner import Planner

Strategy: TypeAlias = Literal["rewoo", "react", "plan-execute", "direct", "cot"]
WAYS = {
    "rewoo": rewoo,
    "react": react,
    "plan-execute": plan_and_execute,
    "direct": direct,
    "cot": chain_of_thought,
}
UNPLANNED = ("react", "direct", "cot")
"""No plan is written beforehand in these, and one role answers."""
WITHOUT_TOOLS = ("direct", "cot")


async def solve(planner: Planner, task: str, plan: Plan | None = None, *, run: str = "") -> Solution:
    """Solve a task by a plan: this one, or one that the planner writes.

    Args:
        run: the name of the run in the log of the planner's memory, as names of memories are; one of that name
            that was broken off goes on where it stopped. A new one where it is not named.

    Raises:
        InputError: there is no such way, two tools have one name, or the run was about another task, or solved in
            another way.
        SettingsError: nobody is named for a role.
        HeldElsewhere: another process is running it; one that died is waited for until its lease has run out.
        LeaseLost: another process has taken the run over: this one stood still for longer than its lease.
        ModelError: the planner or the solver failed. (A budget that is spent is no error: see `Solution.stopped`.)
        StorageError: the log cannot be written.
    """
    task = (await intake.cleaned(task)).text
    how, memory = planner.how, planner.memory
    if how not in WAYS:
        raise InputError(f"there is no way {how!r} of solving; there are: {', '.join(get_args(Strategy))}")
    told_before = memory if run else None  # nothing is written of a run that gets its name here
    run = checked_name(run or chance.token(), "run")
    allowance = Allowance(planner.budget or Budget(), planner.tool_calls)
    roles = ("worker",) if how in UNPLANNED else ("planner", "solver")
    if told_before:
        await outlast(told_before, run)
        before = await read_run(told_before, run)
        if before and (ended := _ended(before, task, how)):
            return ended
    lease_s = planner.limits.lease_s
    held = open_journal(memory, run, task, how, allowance.spent, lease_s) if memory else nullcontext()
    fenced = erasures.reading(memory.store) if memory else nullcontext()
    async with fenced, choose_models(planner.models, roles, allowance.budget) as named, held as journal:
        begun = (await read_run(told_before, run) if told_before else None) or RunCheckpoint(run)
        if told_before:
            allowance.take_up(f"{told_before.name}/{run}", begun.spent)
        if plan:
            begun = begun.with_plan(plan)
        specs = [tool.spec for tool in planner.tools]
        plans = planner.remembered if how not in UNPLANNED and not plan and not begun.plan else None
        known = await plans.find(task, specs) if plans else None
        shown = await find_exemplars(planner.exemplars, task)
        going = PlanningRun(
            task,
            checked_tools(planner.tools),
            named,
            shown,
            allowance,
            planner.replans,
            planner.limits,
            one_at_a_time(planner.leave),
            (*([journal] if journal else []), *planner.watchers),
            run,
            begun,
            begun.plan or plan or known,
            planner.own_knowledge,
        )
        because = GIVEN if plan and begun.plan is None else REMEMBERED if known else ""
        with (
            calls_for(_cause(journal)),
            span(genai.INVOKE_AGENT, PLANNER, {genai.AGENT: PLANNER, "mindstream.run": run}),
        ):
            await _go_through(going, how, because, planner.seconds)
        solution = going.solution(how)
        if journal:
            await journal.end(solution.answer, solution.stopped, solution.unanswered)
        if plans and not known:
            await plans.keep(solution, specs)
    return solution


def _cause(journal: Journal | None) -> Cause:
    """Return what the run's calls are for: for what it was begun for, and for the run."""
    cause = current_cause()
    return cause if journal is None else replace(cause, rows=(*cause.rows, journal.seq))


async def _go_through(going: PlanningRun, how: Strategy, because: str, seconds: float | None) -> None:
    """Run it to its end, or until what is allowed is spent; `because`: why there is a plan that is to be told."""
    try:
        async with asyncio.timeout(seconds) as limit:
            if because:
                await going.tell(because)
            await WAYS[how](going)
    except BudgetSpent as error:
        going.stopped = str(error)
    except TimeoutError:
        if not limit.expired():  # it is somebody else's: a watcher's, or of whoever is asked for leave
            raise
        going.stopped = f"the {seconds:g} seconds that were allowed are over"
    finally:
        await going.close()


def _ended(begun: RunCheckpoint, task: str, how: Strategy) -> Solution | None:
    """Return what a run came to that has ended with an answer; None: it is to be gone on with.

    Raises:
        InputError: it is about another task, or goes another way.
    """
    run = begun.run
    if begun.task not in ("", task):
        raise InputError(f"the run {run!r} is about another task: {begun.task[:80]!r}; give this one another name")
    if begun.how not in ("", how):
        raise InputError(f"the run {run!r} was begun by {begun.how}: go on so, or give this one another name")
    if begun.answer is None or begun.stopped or begun.answer.startswith(QUOTED):
        return None
    return Solution(
        task,
        begun.how,
        begun.answer,
        begun.plan or Plan(task=task),
        begun.evidence,
        spent=begun.spent,
        run=run,
        unanswered=begun.unanswered,
    )


@asynccontextmanager
async def choose_models(models: AnyModels, roles: Sequence[str], budget: Budget) -> AsyncIterator[dict[str, Model]]:
    """Give who answers in each of these roles, within the budget; who plans (the first) mends plans, too.

    Raises:
        SettingsError: nobody is named for a role.
    """
    async with open_models(models) as opened:
        named = {role: opened.of(role) for role in roles} | {"replanner": opened.of("replanner", roles[0])}
        yield {role: Budgeted(model, budget) for role, model in named.items()}
