"""Solve a task with a user's settings: models, tools by name, folders of documents, MCP servers, memory."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from mindstream.errors import InputError, SettingsError
from mindstream.memory.memory import Memory
from mindstream.minds.calls import CallLog
from mindstream.models.model import Model, ToolSpec
from mindstream.models.roles import Models
from mindstream.models.rules import FakeModel, Rules
from mindstream.models.wrappers.meter import Budget, Budgeted
from mindstream.planning.estimate import Estimate, estimate
from mindstream.planning.executor import RunWatcher
from mindstream.planning.exemplars import NONE, SHIPPED, choose_exemplars, find_exemplars
from mindstream.planning.formats.read import read_plan
from mindstream.planning.formats.rewoo import write_plan
from mindstream.planning.plan import Fault, Plan, PlannedStep, check
from mindstream.planning.planner import UNPLANNED, Planner, Strategy, planner_tool
from mindstream.planning.remembered import RememberedPlans
from mindstream.planning.run import Solution
from mindstream.service.calling import open_user_memory
from mindstream.service.opening import answering, budget_of
from mindstream.service.pools import open_member
from mindstream.settings import Settings
from mindstream.sharing.member import Offering, offered_pool, plan_shot
from mindstream.tools.call import Approver, refuse
from mindstream.tools.mcp.mcp import mcp_tools
from mindstream.tools.mcp.pins import Approve, Pins
from mindstream.tools.named import Means, named_tools
from mindstream.tools.tool import Tool, checked_tools, traits_of

PINS = "mcp.json"
"""The file that stores which tools of MCP servers the user has accepted; it is in the folder `Location.beside`."""


PLANNER = "planner"
"""The name of the tool that plans and solves a task of several steps with the other tools."""


@dataclass(frozen=True)
class SolveSettings:
    """A task and the options of its run.

    Attributes:
        text: the task.
        how: the strategy.
        tools: names of tools (see `tools/named.py`). None: `calculator` and, with a model, `llm`; without a model,
            `recall` if there are no documents.
        docs: folders of documents to search.
        trust_docs: whether the user vouches for the documents. True: a plan is revised with the content of the
            documents.
        mcp: MCP servers, as command lines or URLs. Requests to the hosts of these URLs are allowed.
        exemplars: `shipped`, the name of a file, or `none`. The shipped exemplars are plans, which are used only for
            strategies with a plan.
        pool: the pool from which the best plans are shown to the planner, after the exemplars of `exemplars`; "": none.
        plan: the plan to run, without calling a planner; None: the planner makes a plan.
        file: the file with the plan, and with the task if `text` is empty.
        replans, tool_calls, seconds: limits of the run.
        run: the name of the run.
        fresh: whether to make a new plan even if a plan that solved a similar task is remembered.
        own_knowledge: whether the model may answer a failed step from its own knowledge.
        offer: the pool to which the plan is offered if it solved the task; "": none.
    """

    text: str = ""
    how: Strategy = "rewoo"
    tools: tuple[str, ...] | None = None
    docs: tuple[Path, ...] = ()
    mcp: tuple[str, ...] = ()
    exemplars: str = NONE
    pool: str = ""
    plan: Plan | None = None
    file: Path | None = None
    replans: int = 1
    tool_calls: int | None = None
    seconds: float | None = None
    run: str = "run"
    fresh: bool = False
    own_knowledge: bool = False
    offer: str = ""
    trust_docs: bool = False


@dataclass
class Solver:
    """The open models, tools and planner of a task."""

    task: SolveSettings
    models: Models
    planner: Planner
    exemplars: tuple[str, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)
    """Tools of MCP servers that must not be called, each with the reason."""
    offering: Offering | None = None

    @property
    def specs(self) -> list[ToolSpec]:
        return [tool.spec for tool in checked_tools(self.planner.tools)]

    async def offer(self, task: str, plan: str) -> str:
        """Offer a plan to the pool that the task's settings name; return a description of the result."""
        return await self.offering.offer(task, plan) if self.offering else "no pool was named"

    def estimate(self, plan: Plan | None = None) -> Estimate:
        """Return the estimated cost of a run."""
        names = self.models.names
        names |= {role: names.get(role, names.get("default", Rules.name)) for role in ("planner", "worker", "solver")}
        return estimate(self.task.text, self.task.how, self.specs, names, self.exemplars, plan or self.task.plan)

    async def plan(self, on_step: Callable[[PlannedStep], None]) -> Plan:
        """Make a plan within the budget of the run.

        Raises:
            InputError: the planner's reply has no step; the message quotes the reply.
            ModelError: the planner failed, or the budget is spent.
        """
        return await self.planner.plan(self.task.text, on_step)

    async def solve(
        self, plan: Plan | None = None, watchers: Sequence[RunWatcher] = (), approve: Approver = refuse
    ) -> Solution:
        """Solve the task. Raises the same errors as `Planner.solve`."""
        planner = replace(self.planner, watchers=watchers, approve=approve)
        return await planner.solve(self.task.text, plan or self.task.plan, run=self.task.run)


@asynccontextmanager
async def open_solver(settings: Settings, task: SolveSettings, approve: Approve | None = None) -> AsyncIterator[Solver]:
    """Open the models and tools of a task, and the user's log. Model calls are written to the log.

    Args:
        approve: asks the user to approve the tools of an MCP server; None: refuse tools that are not accepted yet.

    Raises:
        UserError: a model, a tool, a folder, a server or a file is not valid.
        StorageError: the data cannot be read or written.
        ToolError: no tool of the MCP servers may be called.
    """
    budget = budget_of(settings)
    wanted = NONE if task.exemplars == SHIPPED and task.how in UNPLANNED else task.exemplars
    choose_exemplars(wanted, ())  # refuse an unusable file before anything is opened
    calls = CallLog()
    async with AsyncExitStack() as opened:
        # without limits here: the budget of the run already counts these calls, including those of tools
        models = await opened.enter_async_context(answering(settings, on_call=calls.take, budget=Budget()))
        memory = await opened.enter_async_context(open_user_memory(settings, new=True))
        opened.push_async_callback(calls.flush, memory)
        if task.how in UNPLANNED and _worker(models, budget) is None:
            raise SettingsError(
                f"{task.how} needs a model: name one with --model or --role worker=NAME, or use --how rewoo"
            )
        solver = await opened.enter_async_context(open_planner(settings, task, models, memory, budget, approve))
        exemplars, task = choose_exemplars(wanted, solver.specs), solver.task
        member = await opened.enter_async_context(
            open_member(
                settings,
                offered_pool(task.pool, task.offer),
                render=plan_shot,
                offers=bool(task.offer),
                model=models.of("planner").name,
            )
        )
        offering = Offering(member, models.of("scorer")) if member and task.offer else None
        if task.pool:
            exemplars += await find_exemplars(offering or member or (), task.text)
        planner = replace(solver.planner, exemplars=exemplars)
        yield replace(solver, planner=planner, exemplars=exemplars, offering=offering)


@asynccontextmanager
async def open_planner(
    settings: Settings,
    task: SolveSettings,
    models: Models,
    memory: Memory,
    budget: Budget,
    approve: Approve | None = None,
) -> AsyncIterator[Solver]:
    """Open the tools and the planner of a task.

    Args:
        budget: the budget of the run, including model calls by tools.

    Raises:
        UserError: a model, a tool, a folder, a server or a file is not valid.
        StorageError: the data cannot be read or written.
        ToolError: no tool of the MCP servers may be called.
    """
    async with AsyncExitStack() as opened:
        model = _worker(models, budget)
        trusts = task.trust_docs
        means = Means(model, memory, settings.data, embed=settings.embedder, trusts_documents=trusts)
        tools, refused = await open_tools(settings, _names(task, model), task.docs, task.mcp, means, approve, opened)
        task = _with_plan(task, [tool.spec for tool in tools])
        planner = Planner(
            model=models,
            tools=tools,
            how=task.how,
            memory=memory,
            budget=budget,
            tool_calls=task.tool_calls,
            seconds=task.seconds,
            replans=task.replans,
            own_knowledge=task.own_knowledge,
            remembered=None if task.fresh or model is None else RememberedPlans(memory),
        )
        yield Solver(task, models, planner, refused=refused)


def why_not_offered(solution: Solution) -> str:
    """Return why the plan of a run must not be offered to a pool; "" if it can be offered."""
    if not solution.plan.steps:
        return "there was no plan"
    if solution.stopped or not solution.answer or solution.is_quotation or solution.unanswered or solution.missing:
        return "it did not solve the whole task"
    return "it was changed during the run" if any(solution.changes) else ""


def plan_text(solution: Solution, tools: Sequence[ToolSpec]) -> str:
    """Return the plan of a solution as text, in the format that the planner is shown."""
    return write_plan(solution.plan, tools, with_task=False).strip()


def _names(task: SolveSettings, model: Model | None) -> tuple[str, ...]:
    """Return the names of a task's tools.

    If the task names no tools, the tools depend on whether there is a model and whether the task has documents.

    Args:
        model: the model for the tool `llm`; None: no model is configured.
    """
    usual = ("calculator", "llm") if model else ("calculator",) if task.docs else ("calculator", "recall")
    return usual if task.tools is None else task.tools


def _worker(models: Models, budget: Budget) -> Model | None:
    """Return the model of the role `worker`, with the budget.

    Return None if no model is configured for the role, or only the rule-based default.
    """
    try:
        worker = models.of("worker")
    except SettingsError:
        return None
    return None if worker.name == Rules.name else Budgeted(worker, budget)


def _with_plan(task: SolveSettings, specs: Sequence[ToolSpec]) -> SolveSettings:
    if task.file is None:
        return task
    plan = read_plan(task.file, specs).plan
    if not (text := task.text or plan.task):
        raise InputError(f"the plan in {task.file} names no task: name one with --task")
    return replace(task, text=text, plan=plan.model_copy(update={"task": text}))


async def find_specs(settings: Settings, task: SolveSettings) -> list[ToolSpec]:
    """Return the specifications of a task's tools, to check a plan without running it; no model is needed.

    Raises:
        UserError: a model, a tool, a folder, a server or a file is not valid.
        StorageError: the data cannot be read or written.
        ToolError: no tool of the MCP servers may be called.
    """
    async with AsyncExitStack() as opened:
        nothing = opened.enter_context(tempfile.TemporaryDirectory(prefix="mindstream-"))
        memory = await opened.enter_async_context(Memory.open(nothing, "none", embed=settings.embedder))
        means = Means(FakeModel({}), memory, embed=settings.embedder)
        tools, _ = await open_tools(settings, task.tools or (), task.docs, task.mcp, means, None, opened)
        return [tool.spec for tool in tools]


async def find_faults(settings: Settings, task: SolveSettings) -> tuple[Plan, tuple[Fault, ...]]:
    """Return the plan in a task's file, and the plan's faults with these settings. No model is called.

    Raises:
        UserError: a model, a tool, a folder, a server or a file is not valid.
        ToolError: no tool of the MCP servers may be called.
    """
    async with answering(settings) as models:
        names = _names(task, _worker(models, Budget()))
    specs = await find_specs(settings, replace(task, tools=names))
    plan = _with_plan(task, specs).plan or Plan()
    return plan, check(plan, specs)


@asynccontextmanager
async def talk_tools(
    settings: Settings, names: Sequence[str], docs: Sequence[Path], mcp: Sequence[str], approve: Approve | None
) -> AsyncIterator[tuple[Tool, ...]]:
    """Open the additional tools of a conversation's reasoners; tools with side effects are left out.

    Raises:
        UserError: a model, a tool, a folder, a server or a file is not valid.
        StorageError: the data cannot be read or written.
        ToolError: no tool of the MCP servers may be called.
    """
    async with AsyncExitStack() as opened:
        if not (names or docs or mcp):
            yield ()
            return
        models = await opened.enter_async_context(answering(settings))
        memory = await opened.enter_async_context(open_user_memory(settings, new=True))
        means = Means(_worker(models, budget_of(settings)), memory, settings.data, embed=settings.embedder)
        plain = [name for name in names if name != PLANNER]
        tools, _ = await open_tools(settings, plain, docs, mcp, means, approve, opened)
        safe = tuple(tool for tool in tools if not traits_of(tool).changes)
        yield (*safe, *((planner_tool(safe, models),) if PLANNER in names else ()))


async def open_tools(
    settings: Settings,
    names: Sequence[str],
    docs: Sequence[Path],
    mcp: Sequence[str],
    means: Means,
    approve: Approve | None,
    opened: AsyncExitStack,
) -> tuple[tuple[Tool, ...], dict[str, str]]:
    """Open tools by name, folders of documents and MCP servers.

    Raises:
        UserError: a model, a tool, a folder, a server or a file is not valid.
        StorageError: the data cannot be read or written.
        ToolError: no tool of the MCP servers may be called.

    Returns:
        The tools, and the names of MCP tools that must not be called, each with the reason.
    """
    folders = (f"documents:{folder}" for folder in docs)
    found = await opened.enter_async_context(named_tools((*names, *folders), means))
    if not mcp:
        return found, {}
    hosts = {urlsplit(each).hostname or "" for each in mcp if each.lower().startswith(("http://", "https://"))}
    taken = [tool.spec.name for tool in found]
    servers = mcp_tools(*mcp, pins=Pins(settings.data.beside / PINS), allow=hosts, approve=approve, taken=taken)
    more = await opened.enter_async_context(servers)
    return (*found, *more), more.refused


def flags_for(tools: Iterable[str]) -> str:
    """Return the command-line flags that offer these tools."""
    folder = {"search_documents", "list_documents", "read_document"}
    called = {"web_search": "web", "LLM": "llm"} | {
        name: name for name in ("calculator", "wikipedia", "wolfram", "read_page", "recall")
    }
    wanted = dict.fromkeys(tools)
    named = [called[tool] for tool in wanted if tool in called]
    others = [tool for tool in wanted if tool not in called and tool not in folder]
    parts = ("--docs DIR" * bool(folder & wanted.keys()), f"--tools {','.join(named)}" * bool(named))
    return " ".join(filter(None, (*parts, f"--mcp SERVER ({', '.join(others)})" * bool(others))))
