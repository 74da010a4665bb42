"""`mindstream solve`, and `mindstream plan run`, which solves with a given plan."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.text import Text

from mindstream.chance import token
from mindstream.cli.permission import Asker, server_approval
from mindstream.cli.screens.run import PlainScreen
from mindstream.cli.shell.files import write_text
from mindstream.cli.shell.flags import (
    PLAIN,
    Allow,
    AsJson,
    Docs,
    Mcp,
    OfferTo,
    PoolName,
    Trust,
    command,
    flag,
    flags_again,
    split_names,
    switch,
    word,
    write_flags,
)
from mindstream.cli.shell.output import clean, complain, is_answerable, print_json, print_table, short
from mindstream.cli.shell.stopping import run_until_stopped
from mindstream.clock import format_iso
from mindstream.errors import InputError, ModelError
from mindstream.planning.estimate import Estimate
from mindstream.planning.executor import RunWatcher
from mindstream.planning.exemplars import NONE, SHIPPED
from mindstream.planning.journal import RunCheckpoint
from mindstream.planning.plan import Fault, Plan, check
from mindstream.planning.planner import UNPLANNED, Strategy
from mindstream.planning.prompts import QUOTED
from mindstream.planning.run import Solution
from mindstream.service.calling import calling
from mindstream.service.opening import unpriced
from mindstream.service.solving import Solver, SolveSettings, flags_for, open_solver, plan_text, why_not_offered
from mindstream.settings import Chosen, Settings
from mindstream.text.words import count_of
from mindstream.tools.call import Approver, allow, refuse

NO_ANSWER = 1
EXEMPLARS = (
    "Solved tasks that the planner sees as examples: shipped, none, or a FILE (texts separated by lines of ---, or"
    " written by `plan export`)."
)
TOOLS = (
    "Tools: calculator, web, wikipedia, wolfram, read_page, llm, recall [calculator; also llm with a model, or recall"
    " with neither a model nor --docs]."
)
Tools = Annotated[list[str] | None, flag("A,B", TOOLS, "--tools")]
Replans = Annotated[int, flag("N", "Maximum number of times the plan is revised.", min=0, max=100)]
MODEL = "The model that plans, works and answers; `mindstream model` lists the forms of names [none]."
ROLE = "The model of one role: planner, worker, solver, replanner; repeatable."
ASKED_FROM_USD = 0.10
"""Estimated cost, in US dollars, from which the user is asked before a run (conditions: see `_is_worth`)."""


@dataclass(frozen=True)
class SolveOptions:
    """The flags that `solve` and `plan run` share."""

    how: Annotated[Strategy, flag("WAY", "The strategy: rewoo, react, plan-execute; without tools: direct, cot.")] = (
        "rewoo"
    )
    tools: Tools = None
    docs: Docs = None
    trust_docs: Annotated[
        bool, switch("--trust-docs", "Trust the documents of --docs: their text may change the plan.")
    ] = False
    mcp: Mcp = None
    trust: Trust = False
    approve: Annotated[bool, switch("--approve", "Show the plan, and ask before any step runs.")] = False
    yes: Annotated[bool, switch("--yes", "Do not ask for confirmation if the estimated cost is high.")] = False
    allow: Allow = None
    replans: Replans = 1
    own_knowledge: Annotated[
        bool,
        switch("--own-knowledge", "If a tool fails, the model may answer from its own knowledge, which is reported."),
    ] = False
    fresh: Annotated[
        bool, switch("--fresh", "Make a new plan, even if memory holds a plan that solved a similar task.")
    ] = False
    tool_calls: Annotated[int | None, flag("N", "Maximum number of tool calls.", min=0)] = None
    seconds: Annotated[float | None, flag("S", "Maximum duration of the run, in seconds.", min=0)] = None
    save: Annotated[Path | None, flag("FILE", "Save the plan to this file, as JSON.")] = None
    run: Annotated[str, flag("NAME", "Name of the run; an unfinished run of this name is resumed [a new name].")] = ""
    json: AsJson = False

    def task(
        self, text: str, *, file: Path | None = None, exemplars: str = NONE, pool: str = "", offer: str = ""
    ) -> SolveSettings:
        """Return the settings of a task with these options."""
        return SolveSettings(
            text,
            self.how,
            split_names(self.tools),
            tuple(self.docs or ()),
            tuple(self.mcp or ()),
            exemplars,
            pool,
            file=file,
            replans=self.replans,
            tool_calls=self.tool_calls,
            seconds=self.seconds,
            run=self.run,
            fresh=self.fresh,
            own_knowledge=self.own_knowledge,
            offer=offer,
            trust_docs=self.trust_docs,
        )

    def way_on(self, chosen: Chosen, task: SolveSettings, *more: str) -> str:
        """Return the command line that resumes a run, with the flags that must be repeated."""
        again = {
            "tools": ",".join(task.tools or ()),
            "docs": task.docs,
            "trust_docs": task.trust_docs,
            "mcp": task.mcp,
            "allow": self.allow,
            "pool": task.pool,
            "offer": task.offer,
        }
        resume = ("mindstream", "solve", "--resume", task.run)
        return shlex.join([*resume, *flags_again(chosen), *write_flags(again), *more])


NOTES = """With rewoo a plan is written before any step runs; with plan-execute the plan is
revised after its steps; react has no plan; direct and cot use no tools. Steps that
do not need each other's results run in parallel. Every step is in the log: --resume
NAME, with the same tools, continues a run that was stopped.

The answer is written to standard output, everything else to standard error. A
tool that changes something is called only if --allow names it, or after you
approved its arguments in a terminal.

Without a model a formula is calculated; for any other task the best passages of
the documents (--docs), or of the memory, are quoted, which is not an answer.

Exit code: 0; 1 if there is no answer, or nothing was run; 130 after Ctrl-C."""
app = typer.Typer(**PLAIN)


@command(
    app,
    "model roles fallback patience_s budget_calls budget_tokens budget_usd data user embedder redact",
    'mindstream solve "17.5% of 2480 + 12"',
    'mindstream solve "Who wrote the report?" --docs ./reports',
    'mindstream solve "Who wrote the report?" --docs ./reports --model openai:gpt-5-mini',
    'mindstream solve "…" --tools web,calculator --model ollama:qwen3 --approve',
    'mindstream solve "…" --mcp "uvx mcp-server-time" --model openai:gpt-5-mini',
    "mindstream solve --list",
    "mindstream solve --resume 7h2k9q",
    notes=NOTES,
    model=MODEL,
    roles=ROLE,
)
def solve(
    chosen: Chosen,
    options: SolveOptions,
    words: Annotated[list[str] | None, word("TASK", "The task.")] = None,
    exemplars: Annotated[str, flag("FILE", EXEMPLARS)] = NONE,
    pool: PoolName = "",
    offer: OfferTo = "",
    resume: Annotated[str, flag("NAME", "Resume the run with this name.")] = "",
    list_: Annotated[bool, switch("--list", "List the runs of this user.")] = False,
    as_published: Annotated[
        bool, switch("--as-published", "As in Xu 2023: the planner's prompt has exemplars (--exemplars shipped).")
    ] = False,
) -> int:
    """Solve a task with tools: plan it, run the plan, answer."""
    if list_:
        return asyncio.run(list_runs(chosen.settings, options.json))
    exemplars = SHIPPED if as_published and exemplars == NONE else exemplars
    task = options.task(" ".join(words or ()), exemplars=exemplars, pool=pool, offer=offer)
    if resume:
        if words:
            raise InputError("--resume continues the task of that run: omit TASK, or start a new run with --run NAME")
        begun = asyncio.run(_find_run(chosen.settings, resume))
        way = next(way for way in get_args(Strategy) if way == begun.how)
        plan = begun.plan if options.approve else None
        return solve_task(chosen, replace(task, text=begun.task, how=way, plan=plan, run=resume), options, begun)
    if not task.text.strip():
        raise InputError('name the task: mindstream solve "17.5% of 2480"')
    return solve_task(chosen, task, options)


async def _find_run(settings: Settings, name: str) -> RunCheckpoint:
    async with calling(settings) as call:
        begun: RunCheckpoint = (await call("plans.get", run=name)).local
    return begun


def solve_task(chosen: Chosen, task: SolveSettings, options: SolveOptions, begun: RunCheckpoint | None = None) -> int:
    """Solve a task; return the exit code. `begun`: the checkpoint of the run to resume, if any."""
    if options.approve and (options.json or not is_answerable()):
        raise InputError("--approve asks questions: run the command in a terminal, without --json")
    if options.approve and task.how in UNPLANNED:
        raise InputError(f"{task.how} makes no plan to approve: use --how rewoo or plan-execute")
    if options.save and not options.save.absolute().parent.is_dir():
        raise InputError(f"{options.save} cannot be written: create the folder {str(options.save.parent)!r} first")
    task = task if task.run else replace(task, run=token(6))
    kept = f"partial results are stored, and this resumes the run:\n  {options.way_on(chosen, task)}"
    try:
        return run_until_stopped(
            _solve(chosen, task, options, begun or RunCheckpoint(task.run)), lambda: f"stopped; {kept}"
        )
    except ModelError:
        complain(kept)
        raise


async def list_runs(settings: Settings, json: bool) -> int:
    """Print the runs of a user; return the exit code 0, also if there are none."""
    async with calling(settings) as call:
        runs = [each.local for each in (await call("plans.list")).runs]
    if json:
        for run in runs:
            row = {"run": run.run, "at": format_iso(run.at), "task": run.task, "how": run.how, "answer": run.answer}
            print_json({**row, "state": _state(run)})
    elif runs:
        rows = [(run.run, format_iso(run.at), _state(run), run.how, short(run.task, 60)) for run in runs]
        print_table(("run", "last", "state", "strategy", "task"), rows, words=5)
    else:
        complain("there are no runs yet")
    return 0


def _state(run: RunCheckpoint) -> str:
    if run.answer is None or run.stopped:
        return "stopped" if run.stopped else "broken off"
    return "quoted" if run.answer.startswith(QUOTED) else "answered"


async def _solve(chosen: Chosen, task: SolveSettings, options: SolveOptions, begun: RunCheckpoint) -> int:
    screen = PlainScreen(Console(stderr=True, highlight=False, quiet=options.json))
    asker = Asker(screen) if is_answerable() and not options.json else None
    async with open_solver(chosen.settings, task, server_approval(options.trust, asker, screen)) as solver:
        expected = solver.estimate()
        for why in solver.refused.values():
            screen.note(why, "red")
        if expected.calls:
            screen.note(str(expected))
        if chosen.settings.budget_usd is not None and (why := unpriced(chosen.settings)):
            screen.note(why, "yellow")
        plan = solver.task.plan
        if asker and options.approve:
            if plan is None:
                with screen.running():
                    plan = await solver.plan(lambda _: None)
            plan = await asker.approve(plan, solver.specs)
            is_agreed = plan is not None
        else:
            is_agreed = _can_run(solver) and await _is_worth(expected, chosen.settings, options, asker)
        if not is_agreed:
            complain("nothing was run")
            return NO_ANSWER
        watchers: list[RunWatcher] = [screen]
        if asker and options.approve:
            watchers.append(_Changed(asker, plan))
        approve: Approver = allow(options.allow or (), asker.approve_call if asker else refuse)
        if begun.plan:
            await screen.planned(begun.plan, "")
        for evidence in begun.evidence.values():
            await screen.found(evidence)
        with screen.running():
            solution = await solver.solve(plan, watchers, approve)
        if task.offer:
            await _offer(solver, solution, screen, asker)
    if options.save:
        write_text(options.save, solution.plan.save())
    if options.json:
        print_json(_as_json(solution))
    else:
        way_on = options.way_on(chosen, task)
        by_model = way_on if "--model " in way_on else options.way_on(chosen, task, "--model", "NAME")
        _show(solution, screen, expected, by_model)
    has_failed = bool(solution.evidence) and len(solution.missing) == len(solution.evidence)
    return NO_ANSWER if solution.stopped or not solution.answer or solution.is_quotation or has_failed else 0


def complain_of_tools(plan: Plan | None, faults: Iterable[Fault]) -> None:
    """Print the flags that offer the tools of the plan, if a tool is missing and no tool with a similar name is
    offered."""
    missing = [fault for fault in faults if fault.kind == "tool" and not fault.advice.startswith("did you mean")]
    if plan and missing:
        complain(f"the plan's tools come with {flags_for(step.tool for step in plan.steps)}")


def _can_run(solver: Solver) -> bool:
    """Return whether a given plan can run with these tools; print its faults."""
    faults = check(solver.task.plan, solver.specs) if solver.task.plan else ()
    for fault in faults:
        complain(str(fault))
    complain_of_tools(solver.task.plan, faults)
    return not faults


async def _is_worth(expected: Estimate, settings: Settings, options: SolveOptions, asker: Asker | None) -> bool:
    """Return whether to run at the estimated cost.

    The user is asked if the cost is at least ASKED_FROM_USD, neither --yes nor a budget in US dollars is given, and the
    user can answer.
    """
    if asker is None or options.yes or settings.budget_usd is not None or (expected.cost_usd or 0.0) < ASKED_FROM_USD:
        return True
    return await asker.ask("Continue? [Y/n]", "ny") == "y"


class _Changed(RunWatcher):
    """Asks the user before a plan runs that was changed after its approval."""

    def __init__(self, asker: Asker, approved: Plan | None) -> None:
        self._asker, self._approved = asker, approved

    async def planned(self, plan: Plan, because: str) -> None:  # noqa: ARG002 (the screen shows it)
        if plan == self._approved:
            return
        if await self._asker.ask("Continue with the changed plan? [y/N]", "yn") != "y":
            raise InputError("the changed plan was refused; partial results are stored (--resume continues)")
        self._approved = plan


async def _offer(solver: Solver, solution: Solution, screen: PlainScreen, asker: Asker | None) -> None:
    """Show the plan of a solved task and offer it to a pool; in a terminal, ask the user first."""
    if why := why_not_offered(solution):
        screen.note(f"no plan is offered: {why}", "yellow")
        return
    written = plan_text(solution, solver.specs)
    screen.note(f"for the pool {solver.task.offer}: {solution.task}\n{written}")
    if asker is None or await asker.ask(f"Offer this plan to {solver.task.offer}? [y/N]", "yn") == "y":
        complain(await solver.offer(solution.task, written))


def _show(solution: Solution, screen: PlainScreen, expected: Estimate, by_model: str) -> None:
    """Show the result of a run.

    `by_model`: the command line by which a model answers the task; shown if the answer is a quotation.
    """
    for id in solution.missing:
        evidence = solution.evidence[id]
        screen.note(f"{id} ({evidence.tool}) has no result: {short(evidence.text, 300)}", "red")
    if solution.answer:
        console = Console(highlight=False)
        console.print(Text(clean(solution.answer)), soft_wrap=not console.is_terminal)
        sys.stdout.flush()
    for id in solution.own:
        screen.note(
            f"{id} ({solution.evidence[id].tool}) found nothing: the model answered from its own knowledge", "yellow"
        )
    if solution.is_quotation:
        screen.note(f"this is a quotation, not an answer; with a model it is answered:\n  {by_model}", "yellow")
    elif solution.unanswered:
        screen.note(f"not found: {short(solution.unanswered, 300)}", "yellow")
    if solution.stopped:
        screen.note(f"stopped: {solution.stopped}", "bold red")
        if not expected.calls and all(solution.evidence[id].tool != "calculator" for id in solution.missing):
            screen.note("without a model, documents are quoted: name a folder with --docs, or a model with --model")
    screen.note(_spent(solution, expected))


def _spent(solution: Solution, expected: Estimate) -> str:
    spent = solution.spent
    parts = [
        count_of(spent.model_calls, "model call") if expected.calls else "no model",
        count_of(spent.tool_calls, "tool call"),
    ]
    if spent.tokens:
        is_known = spent.cost_usd or expected.cost_usd is not None
        parts += [f"{spent.tokens:,} tokens", f"${spent.cost_usd:.4f}" if is_known else "price not known"]
    return f"{', '.join(parts)}, {spent.seconds:.1f} s; run {solution.run}"


def _as_json(solution: Solution) -> dict[str, object]:
    return {
        "run": solution.run,
        "task": solution.task,
        "how": solution.how,
        "answer": solution.answer,
        "is_quotation": solution.is_quotation,
        "stopped": solution.stopped,
        "unanswered": solution.unanswered,
        "missing": list(solution.missing),
        "plan": solution.plan.model_dump(mode="json", exclude_defaults=True),
        "evidence": [asdict(each) for each in solution.evidence.values()],
        "changes": [[str(change) for change in changes] for changes in solution.changes],
        "spent": asdict(solution.spent),
    }
