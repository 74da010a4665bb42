"""Operations on plans: a task is solved with the tools that the operator offers; runs stand in the user's log."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from pydantic import Field, JsonValue

from mindstream.chance import token
from mindstream.clock import Moment
from mindstream.errors import Conflict, InputError, SettingsError
from mindstream.minds.calls import CallLog
from mindstream.planning.executor import Unwatched
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.service.operations.house import House
from mindstream.service.operations.lasting import OperationShape, Running, Wanted
from mindstream.service.operations.logs import CallShape, CallsRequest, list_calls
from mindstream.service.operations.shapes import MOST_PAGE, Ask, NoQuestion, Reply
from mindstream.service.operations.table import operation
from mindstream.service.operations.who import NotFound, Who

if TYPE_CHECKING:
    from mindstream.models.model import Model
    from mindstream.models.roles import Models
    from mindstream.planning.events import Spent
    from mindstream.planning.executor import Approver, Wish
    from mindstream.planning.journal import RunCheckpoint
    from mindstream.planning.plan import Evidence
    from mindstream.planning.planner import Planner
    from mindstream.planning.run import Solution

Strategy: TypeAlias = Literal["rewoo", "react", "plan-execute", "direct", "cot"]
"""The same as in planning/planner, which is only imported when a task is solved so that a server starts quickly."""


class SolveRequest(Ask):
    """A task; `approve`: its plan waits for a yes (not where none is written: `react`, `direct`, `cot`).

    `tools`: of those offered.
    `fresh`: a plan is made even where one that solved such a task is remembered.
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
    """One run."""

    run: str = Field(max_length=100)


class ApproveRequest(RunName):
    """A yes or no to what a run waits for; `id`: to which, else to the first; `plan`: run this one instead."""

    yes: bool = True
    id: str = Field("", max_length=100)
    plan: Plan | None = None


class RunRequest(Ask):
    """A plan, as `plan` of a run has it, that is run without asking a planner; `task`: instead of the plan's own."""

    plan: Plan
    task: str = Field("", max_length=20_000)
    tools: list[str] | None = Field(None, max_length=50)


class EvidenceShape(Reply):
    """What a step found; `foreign`: strangers wrote it."""

    step: str
    tool: str
    text: str
    failed: bool
    foreign: bool


class RunSpent(Reply):
    """What a run took: calls of models and of tools, tokens, US dollars where the price is known, seconds.

    `unpriced`: calls whose price is not known; null: it was not counted.
    """

    model_calls: int
    tool_calls: int
    tokens: int
    cost_usd: float
    seconds: float
    unpriced: int | None = None


class RunShape(Reply):
    """A run: `state` is running, waiting, answered, or stopped (`plans.resume` goes on with it).

    `spent`: what it took, as far as its rows go.
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
    """A user's runs, the newest last."""

    runs: list[RunShape]


@operation("plans.solve", "write", "POST /users/{user}/plans", long=True, mcp="solve", cli="solve")
async def solve(house: House, who: Who, ask: SolveRequest, one: Running) -> RunShape:
    """Solve a task with tools: a plan is made, perhaps approved, run step by step, and answered from what it found."""
    if ask.approve and ask.how in ("react", "direct", "cot"):
        raise InputError(f"{ask.how} makes no plan that could be approved before it acts")
    one.name_run(token(10))
    async with open_planner(house, who, ask, one) as planner:
        plan = None
        if ask.approve:
            plan = await planner.plan(ask.task, lambda step: one.tell(f"planned: {step.tool}"))
            data = {"plan": plan.model_dump(mode="json")}
            wanted = Wanted(id="plan", what="plan", text=plan.save()[:20_000], data=data)
            decision = await one.ask(wanted, lambda other: _require_sound(other, planner))
            if not decision.yes:
                raise Conflict("the plan was refused, and nothing of it was run")
            if decision.instead is not None:
                plan = decision.instead.model_copy(update={"task": ask.task})
        return show_solution(await planner.solve(ask.task, plan, run=one.run), house.clock.now())


@operation("plans.run", "write", "POST /users/{user}/plans/run", long=True, cli="plan run")
async def run(house: House, who: Who, ask: RunRequest, one: Running) -> RunShape:
    """Run a plan that is there."""
    if not (task := ask.task or ask.plan.task):
        raise InputError("the plan does not say what is to be solved: say it as `task`")
    one.name_run(token(10))
    wanted = SolveRequest(task=task, tools=ask.tools)
    async with open_planner(house, who, wanted, one) as planner:
        plan = ask.plan.model_copy(update={"task": task})
        _require_sound(plan, planner)
        return show_solution(await planner.solve(task, plan, run=one.run), house.clock.now())


@operation(
    "plans.resume", "write", "POST /users/{user}/plans/{run}/resume", long=True, mcp="resume_plan", cli="solve --resume"
)
async def resume(house: House, who: Who, ask: RunName, one: Running) -> RunShape:
    """Go on with a run that was stopped: what was found is not looked for again."""
    begun = await _find(house, who, ask.run)
    way = next((way for way in get_args(Strategy) if way == begun.how), "rewoo")
    one.name_run(begun.run)
    wanted = SolveRequest(task=begun.task, how=way)
    async with open_planner(house, who, wanted, one) as planner:
        return show_solution(await planner.solve(begun.task, run=begun.run), house.clock.now())


@operation("plans.list", "read", "GET /users/{user}/plans", mcp="list_plans", cli="solve --list")
async def list_runs(house: House, who: Who, ask: NoQuestion) -> RunList:  # noqa: ARG001
    """List a user's runs."""
    from mindstream.planning.journal import read_runs

    runs = await read_runs(await house.memory(who))
    return RunList(runs=[_show(house, who, each) for each in runs.values()])


@operation("plans.get", "read", "GET /users/{user}/plans/{run}", mcp="get_plan", cli="solve --list")
async def get(house: House, who: Who, ask: RunName) -> RunShape:
    """Return a run as its log has it."""
    return _show(house, who, await _find(house, who, ask.run))


@operation("plans.approve", "write", "POST /users/{user}/plans/{run}/approve", mcp="approve_plan")
async def approve(house: House, who: Who, ask: ApproveRequest) -> OperationShape:
    """Say yes or no to what a run waits for: its plan, or a call that changes the world. `run` may be the operation."""
    one = _going_on(house, who, ask.run)
    one.answer(ask.yes, ask.id, ask.plan)
    return (await house.running.find(who, one.id)).shape()


@operation("plans.stop", "write", "POST /users/{user}/plans/{run}/stop", mcp="stop_plan")
async def stop(house: House, who: Who, ask: RunName) -> OperationShape:
    """Stop a run; what it found is kept."""
    one = _going_on(house, who, ask.run)
    await house.running.cancel(one)
    return one.shape()


def _going_on(house: House, who: Who, run: str) -> Running:
    found = house.running.of_run(who, run)
    if found is None:
        found = next((each for each in house.running.going_on(who) if each.id == run), None)
    if found is None:
        raise NotFound(f"no run {run!r} goes on here")
    return found


async def _find(house: House, who: Who, run: str) -> RunCheckpoint:
    from mindstream.planning.journal import read_runs

    found = (await read_runs(await house.memory(who))).get(run)
    if found is None:
        raise NotFound(f"there is no run {run!r}; `plans.list` (`mindstream solve --list`) lists the runs")
    return found


@contextlib.asynccontextmanager
async def open_planner(house: House, who: Who, ask: SolveRequest, one: Running) -> AsyncIterator[Planner]:
    """Open a planner with what the operator offers, and keep the bill of its calls.

    Raises:
        NotFound: a tool that is not offered.
        UserError, ToolError: something of the operator's cannot be used.
    """
    from mindstream.models.wrappers.budget import Budget
    from mindstream.planning.planner import Planner
    from mindstream.planning.strategies.remembered import RememberedPlans
    from mindstream.service.solving import open_tools
    from mindstream.tools.named import Means

    memory, calls = await house.memory(who), CallLog()
    models, offered = house.models_of(who, calls.take), house.offered
    async with AsyncExitStack() as opened:
        await opened.enter_async_context(calls.writing(memory))
        means = Means(worker(models), memory, house.settings.data, embed=house.settings.embedder)
        tools, refused = await open_tools(
            house.settings, offered.chosen(ask.tools), offered.docs, offered.mcp, means, None, opened
        )
        for why in refused.values():
            one.tell(why)
        yield Planner(
            models=models,
            tools=tools,
            how=ask.how,
            memory=memory,
            budget=Budget(),
            tool_calls=ask.tool_calls,
            seconds=ask.seconds,
            replans=ask.replans,
            watchers=[_Teller(one)],
            leave=_asking(one),
            remembered=None if ask.fresh or means.model is None else RememberedPlans(memory),
        )


def _require_sound(plan: Plan, planner: Planner) -> None:
    """Raise InputError where a plan cannot be run with a planner's tools; nothing is called or spent before that."""
    from mindstream.planning.check import check
    from mindstream.service.solving import flags_for

    if faults := check(plan, [tool.spec for tool in planner.tools]):
        offered = {tool.spec.name for tool in planner.tools}
        missing = [step.tool for step in plan.steps if step.tool not in offered]
        advice = [f"start the server with {flags_for(missing)} to offer what is missing"] if missing else []
        raise InputError("; ".join([*map(str, faults), *advice]))


def worker(models: Models) -> Model | None:
    """Return who carries out instructions; None where that is no model."""
    from mindstream.models.rules import Rules

    try:
        found = models.of("worker")
    except SettingsError:
        return None
    return None if found.name == Rules.name else found


class _Teller(Unwatched):
    """Notes how far a run is."""

    def __init__(self, one: Running) -> None:
        self._one = one

    async def planned(self, plan: Plan, because: str) -> None:
        self._one.tell(f"a plan of {len(plan.steps)} steps" + (f": {because}" if because else ""))

    async def missed(self, steps: Collection[str]) -> None:
        self._one.tell(f"the answer is missing from {', '.join(steps)}")

    async def began(self, step: PlannedStep, arguments: str) -> None:
        self._one.tell(f"{step.id}: {step.tool} {arguments}")

    async def found(self, evidence: Evidence) -> None:
        self._one.tell(f"{evidence.step}: {'nothing' if evidence.failed else evidence.text}")


def _asking(one: Running) -> Approver:
    async def leave(wish: Wish) -> bool:
        data: dict[str, JsonValue] = {"tool": wish.step.tool, "arguments": wish.arguments, "foreign": wish.foreign}
        text = f"{wish.step.tool} changes the world"
        return (await one.ask(Wanted(id=wish.step.id, what="call", text=text, data=data))).yes

    return leave


def show_solution(solution: Solution, now: Moment) -> RunShape:
    """Return what a run came to."""
    state = "stopped" if solution.stopped or not solution.answer else "answered"
    return RunShape(
        run=solution.run,
        task=solution.task,
        how=solution.how,
        state=state,
        answer=solution.answer,
        unanswered=solution.unanswered,
        stopped=solution.stopped,
        foreign=solution.foreign,
        plan=solution.plan.model_dump(mode="json"),
        evidence=[_evidence(each) for each in solution.evidence.values()],
        at=now,
        spent=_spent(solution.spent),
    )


def _show(house: House, who: Who, begun: RunCheckpoint) -> RunShape:
    going = house.running.of_run(who, begun.run)
    ended = "answered" if begun.answer and not begun.stopped else "stopped"
    return RunShape(
        run=begun.run,
        task=begun.task,
        how=begun.how,
        state=going.state if going else ended,
        answer=begun.answer or "",
        unanswered=begun.unanswered,
        stopped=begun.stopped,
        foreign=any(each.foreign for each in begun.evidence.values()),
        plan=begun.plan.model_dump(mode="json") if begun.plan else None,
        evidence=[_evidence(each) for each in begun.evidence.values()],
        at=begun.at,
        operation=going.id if going else "",
        spent=_spent(begun.spent),
    ).made_from(begun)


def _spent(spent: Spent) -> RunSpent:
    return RunSpent(**asdict(spent))


def _evidence(each: Evidence) -> EvidenceShape:
    return EvidenceShape(step=each.step, tool=each.tool, text=each.text, failed=each.failed, foreign=each.foreign)


class RunRows(Reply):
    """A run's rows of the log, oldest first (see planning/events), and the calls of models that it took."""

    run: str
    rows: list[dict[str, JsonValue]]
    calls: list[CallShape]


@operation("plans.rows", "read", "GET /users/{user}/plans/{run}/rows", cli="log")
async def rows(house: House, who: Who, ask: RunName) -> RunRows:
    """Return what happened in a run: its plans, when each step began and what it found, what it had taken by then."""
    from mindstream.planning.events import Solving
    from mindstream.planning.journal import read_rows

    memory = await house.memory(who)
    found = await read_rows(memory, ask.run)
    if not found:
        raise NotFound(f"there is no run {ask.run!r} here")
    calls: list[CallShape] = []
    for row in found:
        if isinstance(row.event, Solving):
            about = CallsRequest(about=row.seq, limit=MOST_PAGE)
            calls += reversed((await list_calls(memory.store, memory.key, about)).calls)
    return RunRows(run=ask.run, rows=[row.row() for row in found], calls=calls)
