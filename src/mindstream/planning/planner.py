"""`Planner` solves tasks by ReWOO (Xu 2023), ReAct (Yao 2023), Plan-and-Execute (Wang 2023), or without tools."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar, get_args, overload

from mindstream import chance, redaction, tracing
from mindstream.errors import BudgetSpent, InputError, ReplyInvalid, ToolError
from mindstream.guidance import Explained, awaited
from mindstream.identifiers import checked_name
from mindstream.log import erasures
from mindstream.memory.memory import Memory
from mindstream.memory.recall.exemplars import Exemplars
from mindstream.models.ask_in_words import ask, question_for
from mindstream.models.model import Model, calls_for, current_cause
from mindstream.models.roles import AnyModels, build_models
from mindstream.models.wrappers.meter import Budget, Budgeted
from mindstream.moved import renamed_arguments
from mindstream.planning.executor import LIMITS, Limits, RunWatcher
from mindstream.planning.exemplars import LessonText, find_exemplars
from mindstream.planning.journal import GIVEN, REMEMBERED, RunCheckpoint, open_journal, outlast, read_run
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.planning.prompts import QUOTED
from mindstream.planning.react import react
from mindstream.planning.remembered import RememberedPlans
from mindstream.planning.run import (
    PLANNER,
    Allowance,
    PlanningRun,
    Solution,
    answer_alone,
    plan_and_execute,
    plan_task,
    rewoo,
)
from mindstream.tools.call import Approve, approver, time_limit
from mindstream.tools.tool import AnyTools, FunctionTool, Tool, Traits, checked_tools, tool, traits_of
from mindstream.tracing import span

Strategy: TypeAlias = Literal["rewoo", "react", "plan-execute", "direct", "cot"]
STRATEGIES: dict[str, Callable[[PlanningRun], Awaitable[None]]] = {
    "rewoo": rewoo,
    "react": react,
    "plan-execute": plan_and_execute,
    "direct": partial(answer_alone, reasons=False),
    "cot": partial(answer_alone, reasons=True),
}
UNPLANNED = ("react", "direct", "cot")
"""Strategies in which no plan is written first: one role, the worker, answers."""
WITHOUT_TOOLS = ("direct", "cot")


T = TypeVar("T")
IN_FORM = "What is the answer to this task, in the form of the schema? Take all of it from the answer below."


@renamed_arguments(leave="approve", models="model")
@dataclass(frozen=True, kw_only=True)
class Planner(Explained):
    """Solve tasks with tools, by ReWOO (Xu 2023), ReAct (Yao 2023) or Plan-and-Execute (Wang 2023), or without tools.

        def population(city: str) -> int:
            \"\"\"Return the number of inhabitants of a city.\"\"\"
            return {"Lyon": 520_774, "Graz": 302_749}[city]

        planner = Planner(model="openai:gpt-5-mini", tools=[population])
        solution = await planner.solve("Which is larger, Lyon or Graz?")
        print(solution.answer, solution.evidence, solution.spent.cost_usd)

    To read or change the plan before it runs: `plan = await planner.plan(task)`, then `await planner.run(plan)`.

    Attributes:
        model: a model or its name for all roles, or a table by role. The roles are planner, solver and replanner
            (default: planner), or worker for `react`, `direct` and `cot`. An empty table means rules instead of a
            model.
        how: the strategy: `rewoo`, `react`, `plan-execute`; or without tools `direct`, `cot` (chain of thought).
        memory: the memory whose log stores the runs; from this log, `solve` resumes an interrupted run by its name.
            None: runs are not stored.
        exemplars: solved tasks for the planner's prompt, in the form of the strategy. Or a source of solved tasks, such
            as a `Member` of a pool, which is asked once per task.
        budget: limit of model calls, tokens and money for all runs of this planner; None: no limit. When it is reached,
            the run ends early, and `Solution.stopped` says so.
        tool_calls: maximum number of tool calls in a run; None: no limit. Further calls fail, and the run answers from
            the results that it has. For a resumed run, this limit and `budget` include what the run had spent before.
        seconds: timeout of a run, without the time that a person takes to approve calls. The timeout starts again when
            a run is resumed. None: no timeout.
        replans: maximum number of revisions of a run's plan. A plan is revised if steps failed or the answer is
            missing.
        own_knowledge: whether the model is asked for its own knowledge if a step of a plan fails. Such evidence is
            marked (`Solution.own`).
        approve: which calls of tools that change the world are made (see tools/call.py): the names of the permitted
            tools, or a function that decides about each call. By default all such calls are refused.
        watchers: objects that are notified of a run's progress.
        remembered: plans of earlier tasks. If a task differs from an earlier one only in names and numbers, the earlier
            plan is adapted and run without calling the planner. A new plan that solves its task is stored. Strategies
            without a plan do not use this.
    """

    model: AnyModels = "rules"
    tools: AnyTools = ()
    how: Strategy = "rewoo"
    memory: Memory | None = None
    exemplars: Sequence[str] | Exemplars = ()
    budget: Budget | None = None
    tool_calls: int | None = None
    seconds: float | None = None
    replans: int = 1
    own_knowledge: bool = False
    limits: Limits = LIMITS
    approve: Approve = ()
    watchers: Sequence[RunWatcher] = ()
    remembered: RememberedPlans | None = None

    @awaited
    async def plan(self, task: str, on_step: Callable[[PlannedStep], None] = lambda _: None) -> Plan:
        """Write a plan without running it. `on_step` is called with each step as soon as the step is written.

        Raises:
            InputError: the planner's reply has no step; the message quotes the reply.
            ModelError: the planner failed, or the budget is spent.
        """
        async with _choose_models(self.model, ("planner",), self.budget or Budget()) as named:
            shown = await find_exemplars(self.exemplars, task)
            with span(tracing.PLAN, PLANNER, {tracing.AGENT: PLANNER}):
                return await plan_task(task, checked_tools(self.tools), named["planner"], shown, on_step)

    @awaited
    async def run(self, plan: Plan, *, run: str = "") -> Solution:
        """Run a plan and answer its task. Raise the errors of `solve`, and InputError if `plan` is not a `Plan`."""
        if not isinstance(plan, Plan):
            hint = "`solve(task)` plans a task and runs the plan"
            if isinstance(plan, Coroutine):
                plan.close()
                hint = "await it first: `plan = await planner.plan(task)`"
            raise InputError(f"run() takes a Plan, not {type(plan).__name__}; {hint}")
        return await self.solve(plan.task, plan, run=run)

    @overload
    async def solve(self, task: str, plan: Plan | None = None, *, run: str = "", output: type[T]) -> Solution[T]: ...
    @overload
    async def solve(self, task: str, plan: Plan | None = None, *, run: str = "") -> Solution: ...
    @awaited
    async def solve(self, task: str, plan: Plan | None = None, *, run: str = "", output: Any = None) -> Solution[Any]:
        """Solve a task with a given plan, or one that the planner writes.

        Args:
            plan: the plan to run; None: the planner writes one.
            output: the type of `solution.output`, such as a Pydantic model. If the answer does not have this form, the
                model is asked once more to convert it.
            run: the name of the run in the memory's log. An interrupted run of this name is resumed. If the run has
                ended with a model's answer, the solution is returned again. "": a new name is chosen.

        Raises:
            InputError: the task is not a text, the strategy is unknown, two tools have one name, or the run was about
                another task or used another strategy.
            SettingsError: a role has no model.
            HeldElsewhere: another live process holds the run. If a dead process holds it, the call waits until the
                lease expires.
            LeaseLost: another process has taken over the run, because this process did not renew its lease in time.
            ModelError: the planner, the solver, the worker (in a strategy without a plan) or the conversion to `output`
                failed. If the budget is spent before there is an answer, nothing is raised: see `Solution.stopped`.
            StorageError: the log cannot be written.
        """
        if not isinstance(task, str):
            raise InputError(f"solve() takes a task, not {type(task).__name__}; `run(plan)` runs a plan")
        solution = await self._solve(task, plan, run)
        if output is None or not solution.answer or solution.is_quotation:
            return solution
        with contextlib.suppress(ReplyInvalid):
            return replace(solution, output=question_for(output)(question="").parse(solution.answer))
        role = "worker" if self.how in UNPLANNED else "solver"
        asked = f"{IN_FORM}\n\nTask: {solution.task}\n\nAnswer: {solution.answer}"
        async with _choose_models(self.model, (role,), self.budget or Budget()) as named:
            answered: Any = await ask(named[role], asked, role, output=output)
        return replace(solution, output=answered)

    async def _solve(self, task: str, plan: Plan | None, run: str) -> Solution:
        task = (await redaction.cleaned(task)).text
        how, memory = self.how, self.memory
        if how not in STRATEGIES:
            raise InputError(f"unknown strategy {how!r}; the strategies are: {', '.join(get_args(Strategy))}")
        resumable = memory if run else None  # a run whose name is chosen here has no rows yet
        run = checked_name(run or chance.token(), "run")
        allowance = Allowance(self.budget or Budget(), self.tool_calls)
        roles = ("worker",) if how in UNPLANNED else ("planner", "solver")
        if resumable:
            await outlast(resumable, run)
            before = await read_run(resumable, run)
            if before and (ended := _ended(before, task, how)):
                return ended
        held = open_journal(memory, run, task, how, allowance.spent, self.limits.lease_s) if memory else nullcontext()
        fenced = erasures.reading(memory.store) if memory else nullcontext()
        async with fenced, _choose_models(self.model, roles, allowance.budget) as named, held as journal:
            begun = (await read_run(resumable, run) if resumable else None) or RunCheckpoint(run)
            if resumable:
                allowance.take_up(f"{resumable.name}/{run}", begun.spent)
            if plan:
                begun = begun.with_plan(plan)
            tools = checked_tools(self.tools)
            specs = [tool.spec for tool in tools]
            shown = await find_exemplars(self.exemplars, task) if self.exemplars else ()
            # with lessons, no remembered plan is used, because it was made without them
            has_lessons = any(isinstance(each, LessonText) for each in shown)
            is_planned = how in UNPLANNED or plan or begun.plan
            plans = None if is_planned or has_lessons else self.remembered
            known = await plans.find(task, specs) if plans else None
            going = PlanningRun(
                task,
                tools,
                named,
                shown,
                allowance,
                self.replans,
                self.limits,
                approver(self.approve),
                (*([journal] if journal else []), *self.watchers),
                run,
                begun,
                begun.plan or plan or known,
                self.own_knowledge,
            )
            because = GIVEN if plan and begun.plan is None else REMEMBERED if known else ""
            cause = current_cause()
            with (
                calls_for(replace(cause, rows=(*cause.rows, journal.seq)) if journal else cause),
                span(tracing.INVOKE_AGENT, PLANNER, {tracing.AGENT: PLANNER, "mindstream.run": run}),
            ):
                await self._go_through(going, because)
            solution = going.solution(how)
            if journal:
                await journal.end(solution.answer, solution.stopped, solution.unanswered, solution.lessons)
            if plans and not known:
                await plans.keep(solution, specs)
        return solution

    async def _go_through(self, going: PlanningRun, because: str) -> None:
        """Run until the end, or until a limit is reached.

        Args:
            because: the origin of the plan; "": no plan exists yet.
        """
        try:
            async with time_limit(self.seconds) as limit:
                if because:
                    await going.tell(because)
                await STRATEGIES[self.how](going)
        except BudgetSpent as error:
            going.stopped = str(error)
        except TimeoutError:
            if not limit.expired():  # not this limit, but the timeout of a watcher or an approver
                raise
            going.stopped = f"the time limit of {self.seconds:g} seconds was reached"
        finally:
            await going.close()


def _ended(begun: RunCheckpoint, task: str, how: Strategy) -> Solution | None:
    """Return the solution of a run that has ended with a model's answer; None if the run still has to be continued.

    Raises:
        InputError: the run is about another task, or uses another strategy.
    """
    run = begun.run
    if begun.task not in ("", task):
        raise InputError(
            f"the run {run!r} is about another task: {begun.task[:80]!r}; choose another name for this run"
        )
    if begun.how not in ("", how):
        raise InputError(
            f"the run {run!r} was begun with the strategy {begun.how}, not {how}; continue with {begun.how}, or choose"
            " another name for this run"
        )
    if begun.answer is None or begun.stopped or begun.answer.startswith(QUOTED):
        return None
    plan = begun.plan or Plan(task=task)
    return Solution(
        task,
        begun.how,
        begun.answer,
        plan,
        begun.evidence,
        spent=begun.spent,
        run=run,
        unanswered=begun.unanswered,
        lessons=begun.lessons,
    )


@asynccontextmanager
async def _choose_models(models: AnyModels, roles: Sequence[str], budget: Budget) -> AsyncIterator[dict[str, Model]]:
    """Yield the model of each role and of the replanner, with calls limited by the budget.

    If no model is set for the replanner, it uses the model of the first role.

    Raises:
        SettingsError: a role has no model.
    """
    opened = build_models(models)
    try:
        named = {role: opened.of(role) for role in roles} | {"replanner": opened.of("replanner", roles[0])}
        yield {role: Budgeted(model, budget) for role, model in named.items()}
    finally:
        if opened is not models:
            await opened.aclose()


TOOL_SECONDS = 25.0
"""Timeout of a run by the tool `solve_task`, in seconds. The default timeout of a tool is longer (30 s)."""
TOOL_CALLS, MAX_TASK, SHOWN_EVIDENCE = 32, 4_000, 500
"""Limits of the tool `solve_task`.

TOOL_CALLS: maximum number of tool calls in a run. MAX_TASK: maximum characters of a task. SHOWN_EVIDENCE: maximum
characters of each step's evidence in the result.
"""


def planner_tool(tools: Sequence[Tool], models: AnyModels) -> FunctionTool:
    """Return the tool `solve_task`, which plans and solves a task with these tools.

    The tool does not change the world: calls that would are refused. Its results count as third-party content if the
    results of one of these tools do.
    """
    able = ", ".join(each.spec.name for each in tools)
    planner = Planner(model=models, tools=tools, seconds=TOOL_SECONDS, tool_calls=TOOL_CALLS)

    async def solve_task(task: str) -> str:
        """Solve a task that takes several steps; return the answer and the evidence found."""
        task = task.strip()
        if not 0 < len(task) <= MAX_TASK:
            raise ToolError(f"a task needs 1 to {MAX_TASK:,} characters; this one has {len(task):,}")
        solution = await planner.solve(task)
        if not solution.answer.strip():
            raise ToolError(f"the task was not solved: {solution.stopped or 'there is no answer'}")
        found = [
            f"{each.step} {each.tool}: {'failed: ' * each.failed}{' '.join(each.text[:SHOWN_EVIDENCE].split())}"
            for each in solution.evidence.values()
        ]
        lacks = [f"not found: {solution.unanswered}"] if solution.unanswered else []
        return "\n".join([solution.answer.strip(), *lacks, *(["", "found on the way:", *found] if found else [])])

    foreign = any(traits_of(each).untrusted for each in tools)
    made = tool(solve_task, Traits(untrusted=foreign, timeout_s=TOOL_SECONDS + 5))
    spec = replace(made.spec, description=f"{made.spec.description}\nIt can use: {able or 'no tools'}.")
    return replace(made, spec=spec)
