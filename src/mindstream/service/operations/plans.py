"""Operations that solve a task by a plan with the operator's tools. Each run is stored in the user's log."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from pydantic import Field, JsonValue

from mindstream.chance import token
from mindstream.clock import Moment
from mindstream.errors import Conflict, InputError
from mindstream.json_values import JsonObject
from mindstream.minds.calls import CallLog
from mindstream.planning.executor import RunWatcher
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.service.operations.logs import CallShape, CallsRequest, list_calls
from mindstream.service.operations.long_running import RunningOperation
from mindstream.service.operations.operation import (
    MAX_PAGE,
    Ask,
    EmptyRequest,
    NotFound,
    OperationShape,
    Principal,
    Reply,
    Short,
    Wanted,
    operation,
)
from mindstream.service.operations.runtime import Runtime
from mindstream.text.words import count_of

if TYPE_CHECKING:
    from mindstream.planning.journal import RunCheckpoint
    from mindstream.planning.plan import Evidence
    from mindstream.planning.planner import Planner
    from mindstream.planning.run import Solution
    from mindstream.tools.call import Approver, ToolRequest

Strategy: TypeAlias = Literal["rewoo", "react", "plan-execute", "direct", "cot"]
"""The same type as `Strategy` in planning/planner. That module is imported only when a task is solved, so that a server
starts quickly.
"""


class SolveRequest(Ask):
    """A task to solve.

    `how`: the strategy. `tools`: names of the offered tools to use; null: all; []: none. `approve`: whether the plan
    waits for an approval before it is run (not possible for `react`, `direct` and `cot`, which make no plan). `fresh`:
    whether to make a new plan, even if a plan that solved a similar task is remembered. `replans`, `tool_calls`,
    `seconds`: limits of the run.
    """

    task: str = Field(min_length=1, max_length=20_000)
    how: Strategy = "rewoo"
    tools: list[str] | None = Field(None, max_length=50)
    approve: bool = False
    fresh: bool = False
    replans: int = Field(1, ge=0, le=10)
    tool_calls: int | None = Field(None, ge=0, le=1_000)
    seconds: float | None = Field(None, gt=0, le=86_400, allow_inf_nan=False)


class RunName(Ask):
    """`run`: the name of a run."""

    run: Short


class ApproveRequest(RunName):
    """The approval (`yes`) or refusal of a plan or tool call that a run waits for.

    `id`: the id of the plan or call, "": the first that waits. `plan`: run this plan in place of the proposed one.
    """

    yes: bool = True
    id: Short = ""
    plan: Plan | None = None


class RunRequest(Ask):
    """A ready plan to run, in the format of a run's `plan`.

    `task`: replaces the task that the plan names. `tools`: use only these of the offered tools; null: all, []: none.
    """

    plan: Plan
    task: str = Field("", max_length=20_000)
    tools: list[str] | None = Field(None, max_length=50)


class EvidenceShape(Reply):
    """The result of a step of a plan; `foreign`: it contains third-party content."""

    step: str
    tool: str
    text: str
    failed: bool
    foreign: bool


class RunSpent(Reply):
    """The cost of a run; `cost_usd` counts only calls whose price is known.

    `unpriced`: the number of model calls whose price is not known; null: they were not counted.
    """

    model_calls: int
    tool_calls: int
    tokens: int
    cost_usd: float
    seconds: float
    unpriced: int | None = None


class RunShape(Reply):
    """A run.

    `state`: running, waiting (for an approval), answered, or stopped (`plans.resume` continues the run). `unanswered`:
    the part of the task that the answer lacks; "": none. `stopped`: why the run was stopped. `foreign`: whether
    third-party content was used. `operation`: the id of the operation that executes the run now; "": none. `spent`: the
    cost of the run so far, from the rows of the log.
    """

    run: str
    task: str
    how: str
    state: str
    answer: str
    unanswered: str
    stopped: str
    foreign: bool
    plan: JsonValue
    evidence: list[EvidenceShape]
    at: Moment
    operation: str = ""
    spent: RunSpent | None = None


class RunList(Reply):
    """The runs of a user, the newest last."""

    runs: list[RunShape]


@operation("plans.solve", "write", "POST /users/{user}/plans", long=True, mcp="solve", cli="solve")
async def solve(runtime: Runtime, principal: Principal, request: SolveRequest, one: RunningOperation) -> RunShape:
    """Solve a task with tools: make a plan, have it approved if requested, run it, and answer from the results."""
    if request.approve and request.how in ("react", "direct", "cot"):
        raise InputError(
            f"the strategy {request.how} makes no plan that could be approved in advance: leave out `approve`, or use"
            " rewoo or plan-execute"
        )
    one.name_run(token(10))
    async with open_planner(runtime, principal, request, one) as planner:
        plan = None
        if request.approve:
            plan = await planner.plan(request.task, lambda step: one.report(f"planned: {step.tool}"))
            data = {"plan": plan.model_dump(mode="json")}
            wanted = Wanted(id="plan", what="plan", text=plan.save()[:20_000], data=data)
            decision = await one.ask(wanted, lambda other: _require_sound(other, planner))
            if not decision.yes:
                raise Conflict("the plan was refused; none of its steps was run")
            if decision.instead is not None:
                plan = decision.instead.model_copy(update={"task": request.task})
        return show_run(await planner.solve(request.task, plan, run=one.run), runtime.clock.now())


@operation("plans.run", "write", "POST /users/{user}/plans/run", long=True, cli="plan run")
async def run(runtime: Runtime, principal: Principal, request: RunRequest, one: RunningOperation) -> RunShape:
    """Run the plan in the request instead of making a plan."""
    if not (task := request.task or request.plan.task):
        raise InputError("the plan names no task: pass one in the field `task`")
    one.name_run(token(10))
    wanted = SolveRequest(task=task, tools=request.tools)
    async with open_planner(runtime, principal, wanted, one) as planner:
        plan = request.plan.model_copy(update={"task": task})
        _require_sound(plan, planner)
        return show_run(await planner.solve(task, plan, run=one.run), runtime.clock.now())


@operation(
    "plans.resume", "write", "POST /users/{user}/plans/{run}/resume", long=True, mcp="resume_plan", cli="solve --resume"
)
async def resume(runtime: Runtime, principal: Principal, request: RunName, one: RunningOperation) -> RunShape:
    """Resume a run that was stopped: finished steps are not repeated."""
    found = await _find(runtime, principal, request.run)
    how = next((way for way in get_args(Strategy) if way == found.how), "rewoo")
    one.name_run(found.run)
    wanted = SolveRequest(task=found.task, how=how)
    async with open_planner(runtime, principal, wanted, one) as planner:
        return show_run(await planner.solve(found.task, run=found.run), runtime.clock.now())


@operation("plans.list", "read", "GET /users/{user}/plans", mcp="list_plans", cli="solve --list")
async def list_runs(runtime: Runtime, principal: Principal, request: EmptyRequest) -> RunList:  # noqa: ARG001
    """List a user's runs."""
    from mindstream.planning.journal import read_runs

    runs = await read_runs(await runtime.memory(principal))
    return RunList(runs=[_show(runtime, principal, each) for each in runs.values()])


@operation("plans.get", "read", "GET /users/{user}/plans/{run}", mcp="get_plan", cli="solve --list")
async def get(runtime: Runtime, principal: Principal, request: RunName) -> RunShape:
    """Return a run, from its log."""
    return _show(runtime, principal, await _find(runtime, principal, request.run))


@operation("plans.approve", "write", "POST /users/{user}/plans/{run}/approve", mcp="approve_plan")
async def approve(runtime: Runtime, principal: Principal, request: ApproveRequest) -> OperationShape:
    """Approve or refuse the pending plan or call of a run; `run` may also be the id of its operation."""
    one = _running(runtime, principal, request.run)
    one.answer(request.yes, request.id, request.plan)
    return (await runtime.running.find(principal, one.id)).shape()


@operation("plans.stop", "write", "POST /users/{user}/plans/{run}/stop", mcp="stop_plan")
async def stop(runtime: Runtime, principal: Principal, request: RunName) -> OperationShape:
    """Stop a run; what it found is kept."""
    one = _running(runtime, principal, request.run)
    await runtime.running.cancel(one)
    return one.shape()


def _running(runtime: Runtime, principal: Principal, run: str) -> RunningOperation:
    if (found := runtime.running.of_run(principal, run)) is None:
        raise NotFound(f"no run or operation {run!r} of this user is running on this server")
    return found


async def _find(runtime: Runtime, principal: Principal, run: str) -> RunCheckpoint:
    from mindstream.planning.journal import read_runs

    found = (await read_runs(await runtime.memory(principal))).get(run)
    if found is None:
        raise NotFound(f"this user has no run {run!r}: `plans.list` (`mindstream solve --list`) lists the runs")
    return found


@contextlib.asynccontextmanager
async def open_planner(
    runtime: Runtime, principal: Principal, request: SolveRequest, one: RunningOperation
) -> AsyncIterator[Planner]:
    """Open a planner with the tools that the operator offers; its model calls are written to the user's log.

    Raises:
        NotFound: the request names a tool that is not offered.
        UserError, ToolError: an offered tool cannot be used.
    """
    from mindstream.models.wrappers.meter import Budget
    from mindstream.service import solving

    memory, calls = await runtime.memory(principal), CallLog()
    offered = runtime.offered
    task = solving.SolveSettings(
        request.task,
        request.how,
        offered.chosen(request.tools),
        tuple(offered.docs),
        tuple(offered.mcp),
        replans=request.replans,
        tool_calls=request.tool_calls,
        seconds=request.seconds,
        fresh=request.fresh,
    )
    models = runtime.models_of(principal, calls.take)
    async with (
        calls.writing(memory),
        solving.open_planner(runtime.settings, task, models, memory, Budget()) as solver,
    ):
        for why in solver.refused.values():
            one.report(why)
        yield replace(solver.planner, watchers=[_Reporter(one)], approve=_asking(one))


def _require_sound(plan: Plan, planner: Planner) -> None:
    """Raise InputError if a plan cannot be run with a planner's tools. This check makes no calls."""
    from mindstream.planning.plan import check
    from mindstream.service.solving import flags_for
    from mindstream.tools.tool import checked_tools

    specs = [tool.spec for tool in checked_tools(planner.tools)]
    if faults := check(plan, specs):
        offered = {spec.name for spec in specs}
        missing = [step.tool for step in plan.steps if step.tool not in offered]
        advice = [f"start the server with {flags_for(missing)} to offer the missing tools"] if missing else []
        raise InputError("; ".join([*map(str, faults), *advice]))


class _Reporter(RunWatcher):
    """Reports the progress of a run to its operation."""

    def __init__(self, one: RunningOperation) -> None:
        self._one = one

    async def planned(self, plan: Plan, because: str) -> None:
        self._one.report(f"a plan of {count_of(len(plan.steps), 'step')}" + (f": {because}" if because else ""))

    async def missed(self, steps: Collection[str]) -> None:
        self._one.report(f"the answer is missing from {', '.join(steps)}")

    async def began(self, step: PlannedStep, arguments: str) -> None:
        self._one.report(f"{step.id}: {step.tool} {arguments}")

    async def found(self, evidence: Evidence) -> None:
        self._one.report(f"{evidence.step}: {'nothing' if evidence.failed else evidence.text}")


def _asking(one: RunningOperation) -> Approver:
    async def approve(wish: ToolRequest) -> bool:
        data: JsonObject = {"tool": wish.tool, "arguments": wish.arguments, "foreign": wish.foreign}
        step = getattr(wish, "step", None)
        why = "gets an address that no trusted source gave" if wish.address else "has side effects"
        wanted = Wanted(id=step.id if step else wish.tool, what="call", text=f"{wish.tool} {why}", data=data)
        return (await one.ask(wanted)).yes

    return approve


def show_run(found: Solution | RunCheckpoint, at: Moment, running: RunningOperation | None = None) -> RunShape:
    """Return a run as a reply; `running`: the operation that executes the run; None: no operation executes it."""
    ended = "answered" if found.answer and not found.stopped else "stopped"
    evidence = found.evidence.values()
    return RunShape.from_object(
        found,
        state=running.state if running else ended,
        answer=found.answer or "",
        foreign=any(each.foreign for each in evidence),
        plan=found.plan.model_dump(mode="json") if found.plan else None,
        evidence=[EvidenceShape.from_object(each) for each in evidence],
        at=at,
        operation=running.id if running else "",
        spent=RunSpent.from_object(found.spent),
    )


def _show(runtime: Runtime, principal: Principal, found: RunCheckpoint) -> RunShape:
    return show_run(found, found.at, runtime.running.of_run(principal, found.run))


class RunRows(Reply):
    """The rows of a run in the log, oldest first, and its model calls."""

    run: str
    rows: list[JsonObject]
    calls: list[CallShape]


@operation("plans.rows", "read", "GET /users/{user}/plans/{run}/rows", cli="log")
async def rows(runtime: Runtime, principal: Principal, request: RunName) -> RunRows:
    """Return the history of a run: its plans, and the start, result and cost of each step."""
    from mindstream.planning.journal import Solving, read_rows

    memory = await runtime.memory(principal)
    found = await read_rows(memory, request.run)
    if not found:
        raise NotFound(f"this user has no run {request.run!r}: `plans.list` lists the runs")
    calls: list[CallShape] = []
    for row in found:
        if isinstance(row.event, Solving):
            about = CallsRequest(about=row.seq, limit=MAX_PAGE)
            calls += reversed((await list_calls(memory.store, memory.key, about)).calls)
    return RunRows(run=request.run, rows=[row.row() for row in found], calls=calls)
