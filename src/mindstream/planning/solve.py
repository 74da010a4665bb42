"""Solves a task with tools, in one of three ways behind one call (Xu 2023; Yao 2023; Wang 2023)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Literal, TypeAlias, get_args

from mindstream import chance
from mindstream.errors import BudgetSpent, InputError
from mindstream.log.names import checked_name
from mindstream.memory.memory import Memory
from mindstream.memory.recall.exemplars import Exemplars
from mindstream.models.model import Model
from mindstream.models.roles import AnyModels, Models, open_models
from mindstream.models.wrappers.budget import Budget, Budgeted
from mindstream.planning.allowance import Allowance
from mindstream.planning.executor import Limits
from mindstream.planning.exemplars import find_exemplars
from mindstream.planning.journal import GIVEN, RunCheckpoint, open_journal, outlast, read_run
from mindstream.planning.leave import Approver, one_at_a_time, refuse
from mindstream.planning.plan import Plan
from mindstream.planning.prompts.answer_from_evidence import QUOTED
from mindstream.planning.run import Run
from mindstream.planning.solution import Solution
from mindstream.planning.strategies.plan_execute import plan_and_execute
from mindstream.planning.strategies.react import react
from mindstream.planning.strategies.remembered import RememberedPlans
from mindstream.planning.strategies.rewoo import rewoo
from mindstream.planning.watcher import RunWatcher
from mindstream.tools.tool import Tool, checked_tools

Strategy: TypeAlias = Literal["rewoo", "react", "plan-execute"]
WAYS = {"rewoo": rewoo, "react": react, "plan-execute": plan_and_execute}


async def solve(
    task: str,
    how: Strategy = "rewoo",
    *,
    tools: Sequence[Tool] = (),
    models: AnyModels,
    exemplars: Sequence[str] | Exemplars = (),
    plan: Plan | None = None,
    budget: Budget | None = None,
    tool_calls: int | None = None,
    seconds: float | None = None,
    replans: int = 1,
    limits: Limits | None = None,
    leave: Approver = refuse,
    watchers: Sequence[RunWatcher] = (),
    stream: Memory | None = None,
    run: str = "",
    remembered: RememberedPlans | None = None,
) -> Solution:
    """Solve a task.

    Args:
        models: one for all roles or its name, or a table by role: planner, solver, replanner (else who plans), for
            `react` worker. Of an empty table stand-ins answer, as where nothing is configured.
        exemplars: solved tasks that are shown to the planner, in the form of the way that is taken; or who finds them
            (a member of a pool, `sharing.member`), asked once a call.
        plan: run this one; no planner is asked.
        budget, tool_calls: what the whole run may take, before it was broken off, too. When one of them is spent the
            run ends with what it has, and says so; at most one call more is made.
        seconds: how long this may take; whoever goes on with a run waits anew.
        replans: how often the plan may be mended in the whole run, after steps failed or the answer was missing.
        leave: asked before a tool that changes the world is called.
        stream: the run is written into its log; a run of that name that was broken off goes on where it stopped.
        run: its name, as names of streams are; a new one where it is not named.
        remembered: a plan that solved a task of the same form is run without asking the planner, and one that is made
            and ends well is kept (not for `react`, which plans nothing beforehand).

    Raises:
        InputError: there is no such way, two tools have one name, or the run was about another task, or solved in
            another way.
        SettingsError: nobody is named for a role.
        HeldElsewhere: another process is running it; one that died is waited for until its lease has run out.
        LeaseLost: another process has taken the run over: this one stood still for longer than its lease.
        ModelError: the planner or the solver failed. (A budget that is spent is no error: see `Solution.stopped`.)
        StorageError: the log cannot be written.
    """
    if how not in WAYS:
        raise InputError(f"there is no way {how!r} of solving; there are: {', '.join(get_args(Strategy))}")
    told_before = stream if run else None  # nothing is written of a run that gets its name here
    limits = limits or Limits()
    run = checked_name(run or chance.token(), "run")
    allowance = Allowance(budget or Budget(), tool_calls)
    roles = ("worker",) if how == "react" else ("planner", "solver")
    async with open_models(models) as shared:
        named = choose_models(shared, roles, allowance.budget)
        if told_before:
            await outlast(told_before, run)
            before = await read_run(told_before, run)
            if before and (ended := _ended(before, task, how)):
                return ended
        held = open_journal(stream, run, task, how, allowance.spent, limits.lease_s) if stream else nullcontext()
        async with held as journal:
            begun = (await read_run(told_before, run) if told_before else None) or RunCheckpoint(run)
            if told_before:
                allowance.take_up(f"{told_before.name}/{run}", begun.spent)
            if plan:
                begun = begun.with_plan(plan)
            specs = [tool.spec for tool in tools]
            plans = remembered if how != "react" and not plan and not begun.plan else None
            known = await plans.find(task, specs) if plans else None
            shown = await find_exemplars(exemplars, task)
            going = Run(
                task, checked_tools(tools), named, shown, allowance, replans, limits, one_at_a_time(leave),
                (*([journal] if journal else []), *watchers), run, begun, begun.plan or plan or known,
            )  # fmt: skip
            because = GIVEN if plan and begun.plan is None else "remembered" if known else ""
            await _go_through(going, how, because, seconds)
            solution = going.solution(how)
            if journal:
                await journal.end(solution.answer, solution.stopped, solution.unanswered)
            if plans and not known:
                await plans.keep(solution, specs)
        return solution


async def _go_through(going: Run, how: Strategy, because: str, seconds: float | None) -> None:
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
        task, begun.how, begun.answer, begun.plan or Plan(task=task), begun.evidence, spent=begun.spent, run=run,
        unanswered=begun.unanswered,
    )  # fmt: skip


def choose_models(models: Models, roles: Sequence[str], budget: Budget) -> dict[str, Model]:
    """Return who answers in each of these roles, within the budget; who plans (the first) mends plans, too.

    Raises:
        SettingsError: nobody is named for a role.
    """
    named = {role: models.of(role) for role in roles} | {"replanner": models.of("replanner", roles[0])}
    return {role: Budgeted(model, budget) for role, model in named.items()}
