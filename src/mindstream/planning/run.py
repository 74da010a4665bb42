"""The common parts of all strategies: writing and revising the plan, running its steps, answering, counting costs.

`PlanningRun` is one task that is being solved. The strategies at the end of this module, and those in `react`,
call it.
"""

from __future__ import annotations

import contextvars
import typing
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic

from mindstream import tracing
from mindstream.errors import BudgetSpent, InputError
from mindstream.guidance import Explained
from mindstream.models.model import Model, ToolSpec
from mindstream.models.prompt import ask, speak
from mindstream.models.reply import Thinking
from mindstream.models.wrappers.meter import Budget
from mindstream.planning.executor import CLOCK, Executor, Limits, RunWatcher
from mindstream.planning.exemplars import LessonText
from mindstream.planning.formats.read import read, read_other
from mindstream.planning.formats.rewoo import Rewoo, StepReader, write_plan
from mindstream.planning.journal import NOTHING_SPENT, RunCheckpoint, Spent
from mindstream.planning.plan import (
    LONGEST,
    MOST_STEPS,
    Change,
    Evidence,
    Plan,
    PlannedStep,
    StepChecker,
    check,
    describe_arguments,
    still_valid,
    table_rows,
)
from mindstream.planning.prompts import (
    QUOTED,
    AnswerAlone,
    AnswerFromEvidence,
    KnowInstead,
    MakePlan,
    MendPlan,
    Shown,
    SolverAnswer,
    describe,
    describe_missing,
    read_answer,
    show_steps,
    states_of,
)
from mindstream.text.words import count_of
from mindstream.tools.call import Approver, UntrustedText
from mindstream.tools.tool import Tool, traits_of
from mindstream.tracing import span

SHOWN_REPLY = 300
"""Maximum number of characters that the error message quotes of a planner's reply without a plan."""


async def plan_task(
    task: str,
    tools: Sequence[Tool],
    model: Model,
    exemplars: Sequence[str] = (),
    on_step: Callable[[PlannedStep], None] = lambda _: None,
) -> Plan:
    """Let the planner write a plan; `on_step` is called with each step as soon as it is written.

    Raises:
        InputError: the reply has no step; the message quotes it.
        ModelError: the planner failed.
    """
    steps = list[PlannedStep]()
    async with aclosing(write_steps(task, [tool.spec for tool in tools], model, exemplars)) as written:
        async for step in written:
            steps.append(step)
            on_step(step)
    return Plan(task=task, steps=tuple(steps), foreign=is_untrusted(exemplars))


def is_untrusted(exemplars: Sequence[str]) -> bool:
    """Return whether an exemplar in a planner's prompt is third-party content."""
    return any(isinstance(each, UntrustedText) or (isinstance(each, LessonText) and each.foreign) for each in exemplars)


async def write_steps(
    task: str, specs: Sequence[ToolSpec], model: Model, exemplars: Sequence[str] = ()
) -> AsyncGenerator[PlannedStep]:
    """Ask the planner for a plan, and yield each step as soon as it is written.

    The model's thoughts are skipped. If the plan becomes too long to run, the rest of the reply is not read.

    Raises:
        InputError: the reply has no step.
        ModelError: the planner failed.
    """
    prompt = MakePlan(task=task, tools=tuple(map(describe, specs)), exemplars=tuple(exemplars))
    reader, thinking = StepReader(Rewoo(specs)), Thinking()
    words, length, count = "", 0, 0
    async with aclosing(speak(model, prompt, "planner")) as pieces:
        async for piece in pieces:
            _, plain = thinking.part(piece)
            words, length = (words + plain)[:LONGEST], length + len(piece)
            for step in reader.feed(plain):
                count += 1
                yield step
            if length > LONGEST or count > MOST_STEPS:
                break
    rest = thinking.rest()
    for step in (*reader.feed(rest), *reader.close()):
        count += 1
        yield step
    if not count and (found := read_other(words + rest, specs)):
        for step in found.steps:
            yield step
    elif not count:
        raise InputError(
            f"the reply of the planner has no step of a plan: {' '.join((words + rest).split())[:SHOWN_REPLY]}"
        )


class Allowance:
    """The limits of a run: a budget for model calls, tokens and money, and a maximum number of tool calls."""

    def __init__(self, budget: Budget, tool_calls: int | None = None) -> None:
        self.budget = budget
        self._most, self._tool_calls = tool_calls, 0
        self._began, self._seconds_before = CLOCK.elapsed(), 0.0

    def take_up(self, run: str, before: Spent) -> None:
        """Count what an interrupted run had spent before (`before`), when the run is resumed."""
        self._tool_calls, self._seconds_before = before.tool_calls, before.seconds
        self.budget.take_up(run, before.model_calls, before.tokens, before.cost_usd, before.unpriced or 0)

    def tool_calls_left(self, unlimited: int) -> int:
        """Return the number of tool calls that the limit still allows; `unlimited` if there is no limit."""
        return unlimited if self._most is None else max(0, self._most - self._tool_calls)

    def take_call(self, cost_usd: float) -> None:
        """Count one tool call and its cost; raise BudgetSpent if the limits allow no further call."""
        if self._most is not None and self._tool_calls >= self._most:
            raise BudgetSpent(f"the limit of {count_of(self._most, 'tool call')} was reached")
        self.budget.check()
        self._tool_calls += 1
        self.budget.spent_usd += cost_usd

    def spent(self) -> Spent:
        """Return what the run has spent so far."""
        budget, seconds = self.budget, self._seconds_before + CLOCK.elapsed() - self._began
        return Spent(
            budget.spent_calls, self._tool_calls, budget.spent_tokens, budget.spent_usd, seconds, budget.unpriced
        )


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Output = TypeVar("Output", default=None)
else:
    Output = typing.TypeVar("Output")


@dataclass(frozen=True, slots=True)
class Solution(Explained, Generic[Output]):
    """The result of a run.

    Attributes:
        how: the strategy.
        answer: the answer to the task or to a part of it; "": there is none.
        plan: the final plan.
        evidence: by id of a step of the plan, the result of the step.
        stopped: why the run ended early, or without an answer; "" if it ended normally with an answer.
        unanswered: the missing part of the answer, in the solver's words; "": nothing is missing.
        missing: the ids of the steps that failed.
        changes: for each revision of the plan, the changes of its steps.
        spent: what the run used: calls, tokens, money, time.
        run: the name of the run.
        lessons: the ids of the pool's lessons that were in the prompts.
        output: the answer as the type of `solve(output=…)`; None: no type was given, there is no answer, or the answer
            is only a quotation (`is_quotation`).
    """

    task: str
    how: str
    answer: str
    plan: Plan
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    stopped: str = ""
    changes: tuple[tuple[Change, ...], ...] = ()
    spent: Spent = NOTHING_SPENT
    run: str = ""
    unanswered: str = ""
    lessons: tuple[str, ...] = ()
    output: Output | None = None

    def __str__(self) -> str:
        said = self.answer or f"no answer: {self.stopped or self.unanswered or 'the plan has none'}"
        failed = "; ".join(f"{id}: {self.evidence[id].text}" for id in self.missing)
        return f"{said}\nfailed steps: {failed}" if failed else said

    @property
    def is_quotation(self) -> bool:
        """Whether the answer only quotes evidence, because no model was configured."""
        return self.answer.startswith(QUOTED)

    @property
    def foreign(self) -> bool:
        """Whether the answer is based on third-party content, so that a record of it must be marked as tainted."""
        return any(each.foreign for each in self.evidence.values())

    @property
    def own(self) -> tuple[str, ...]:
        """The ids of the steps whose tool failed and whose evidence is the model's own knowledge."""
        return tuple(id for id, each in self.evidence.items() if each.own)

    def _repr_html_(self) -> str:
        from mindstream.html_tables import Failure, table

        rows = []
        for step, tool, called, needs, _ in table_rows(self.plan):
            found = self.evidence.get(step)
            text = found.text if found else "not run"
            rows.append((step, tool, called, needs, Failure(text) if found and found.failed else text))
        said = self.answer or f"no answer: {self.stopped}"
        return table(self.task, ("", "tool", "with", "after", "found"), rows, self.how, said)

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(id for id, each in self.evidence.items() if each.failed)


CALL = 2_000
"""Maximum characters of a failed call's arguments in the prompt that asks for the model's own knowledge."""

PLANNER = "planner"
"""The planner's name as an agent in trace spans."""
NO_ANSWER, NOTHING = "the evidence does not hold the answer", "nothing"


@dataclass(eq=False)
class PlanningRun:
    """The state and the operations of a task that is being solved. Strategies call the operations.

    Args:
        begun: the checkpoint of the interrupted run that is resumed; an empty checkpoint for a new run.
        given: the plan of the interrupted run, the caller's plan, or a remembered plan; None: the planner writes one.
        knows: whether the model is asked for its own knowledge if a step fails.

    Attributes:
        replans: number of revisions of the plan that are still allowed.
        plan: the current plan.
        evidence: by id of a step of the plan, the result of the step.
        stopped: why the run ended before it had an answer; "": it was not stopped.
        answered: the last answer, to the whole task or to a part of it.
        missing: ids of the steps for which an interrupted run was about to revise the plan.
        is_untrusted: whether the planner's prompt has an exemplar that is third-party content.
        lessons: lessons of a pool among the exemplars; the solver's prompt has them too.
    """

    task: str
    tools: Sequence[Tool]
    models: Mapping[str, Model]
    exemplars: Sequence[str]
    allowance: Allowance
    replans: int
    limits: Limits
    approve: Approver
    watchers: Sequence[RunWatcher]
    name: str
    begun: RunCheckpoint
    given: Plan | None
    knows: bool = False
    changes: list[tuple[Change, ...]] = field(default_factory=list)
    stopped: str = ""
    answered: SolverAnswer = field(default_factory=SolverAnswer)
    _executor: Executor | None = None

    def __post_init__(self) -> None:
        self._specs = [tool.spec for tool in self.tools]
        self._checker = StepChecker(self._specs)
        self._concluding = {tool.spec.name for tool in self.tools if traits_of(tool).concludes}
        self._changing = {tool.spec.name for tool in self.tools if traits_of(tool).changes}
        self.replans -= self.begun.replans
        self.missing = self.begun.missing if self.replans >= 0 else ()
        self._is_kept = self.begun.kept
        self.is_untrusted = is_untrusted(self.exemplars)
        self.lessons = next((each for each in self.exemplars if isinstance(each, LessonText)), None)
        self.plan = self.given or Plan(task=self.task, foreign=self.is_untrusted)
        self.evidence: dict[str, Evidence] = self.begun.settled()

    @property
    def may_mend(self) -> bool:
        """Whether the plan may be revised. A revision must be left; and if the last revision left the plan unchanged, a
        step must have run since."""
        return self.replans > 0 and not self._is_kept

    # Planning.

    async def make_plan(self, executor: Executor | None = None) -> None:
        """Let the planner write the plan. If the planner writes no step, `stopped` says so.

        Args:
            executor: begins each step that can already begin, as soon as the step is written; None: no step begins yet.
        """
        steps, outside = list[PlannedStep](), contextvars.copy_context()
        try:
            written = write_steps(self.task, self._specs, self.models["planner"], self.exemplars)
            with span(tracing.PLAN, PLANNER, {tracing.AGENT: PLANNER}):
                async with aclosing(written):
                    async for step in written:
                        if executor and self._is_ready(step, steps):
                            outside.run(executor.begin, step)  # keeps its trace spans out of the planning span
                        steps.append(step)
        except InputError as error:
            self.stopped = str(error)
            return
        self.plan = Plan(task=self.plan.task, steps=tuple(steps), foreign=self.plan.foreign)
        await self.tell("made")

    def _is_ready(self, step: PlannedStep, before: Sequence[PlannedStep]) -> bool:
        """Return whether a step may begin before the plan is complete; a step that changes the world may not."""
        waits = step.tool in self._changing or len(before) >= MOST_STEPS
        return not waits and self._checker.can_begin(step, before)

    async def mend(self, insufficient: Collection[str]) -> bool:
        """Let the replanner revise the plan, and return whether the plan changed. This counts as one of the allowed
        revisions.

        Args:
            insufficient: ids of the steps whose evidence lacks the answer; ids of steps without evidence are ignored.
        """
        insufficient = tuple(id for id in insufficient if id in self.evidence) or (NOTHING,)
        if not self.missing:  # otherwise the interrupted run has already counted this revision
            self.replans -= 1
            for watcher in self.watchers:
                await watcher.missed(insufficient)
        self.missing = ()
        plan = write_plan(self.plan, self._specs, with_task=False)
        states = states_of(self.plan, self.evidence, insufficient, self.answered.kinds)
        lacks = describe_missing(self.answered.missing, f"{self.task}\n{plan}", self.evidence)
        tools = tuple(map(describe, self._specs))
        prompt = MendPlan(task=self.task, tools=tools, plan=plan, states=states, lacks=lacks)
        with span(tracing.PLAN, PLANNER, {tracing.AGENT: PLANNER}):
            text = await ask(self.models["replanner"], prompt, "replanner")
        steps = {step.id: step for step in self.plan.steps}
        for step in read(text, self._specs).plan.steps:
            steps[step.id] = step
        mended = Plan(task=self.task, steps=tuple(steps.values()), foreign=self.plan.foreign)
        changes = tuple(change for change in self.plan.diff(mended) if change.kind != "kept")
        if not changes or check(mended, self._specs):
            for watcher in self.watchers:
                await watcher.kept()
            return False
        self.changes.append(changes)
        self.evidence = still_valid(self.plan, mended, self.evidence)
        self.plan, self._executor = mended, None  # the executor has evidence of the old plan
        lacking = "the plan" if insufficient == (NOTHING,) else ", ".join(insufficient)
        await self.tell(f"{lacking} did not give what was needed")
        return True

    async def tell(self, because: str) -> None:
        """Notify the watchers of the current plan; `because`: why the plan was made or changed."""
        for watcher in self.watchers:
            await watcher.planned(self.plan, because)

    # Running.

    def executor(self) -> Executor:
        """Set and return a new executor for the current plan, which does not run steps that have evidence already."""
        self._executor = Executor(
            self.tools,
            run=self.name,
            limits=self.limits,
            approve=self.approve,
            watchers=self.watchers,
            found=self.evidence,
            foreign=self.plan.foreign,
            take_call=self.allowance.take_call,
            instead=self._know if self.knows else None,
        )
        return self._executor

    async def _know(self, step: PlannedStep, failed: Evidence) -> str:
        """Return an answer from the model's own knowledge, in place of the result of a step that failed."""
        call = f"{step.tool}: {describe_arguments(failed.arguments or step.arguments)[:CALL]}"
        return (await ask(self.models["solver"], KnowInstead(why=step.why, call=call), "solver")).text.strip()

    async def carry_out(self, steps: Sequence[PlannedStep], executor: Executor | None = None) -> None:
        """Run steps and store their evidence. A step with a fault is not called: it fails, and the fault is the reason.

        `executor`: an executor that already runs some of these steps; None: a new one.
        """
        executor = executor or self.executor()
        is_checked = all(executor.has_begun(step) for step in steps)
        self._is_kept = self._is_kept and all(step.id in self.evidence for step in steps)
        faults = {} if is_checked else {fault.step: fault for fault in check(self.plan, self._specs)}
        for step in steps:
            fault = faults.get(step.id) or faults.get("")  # "": the plan as a whole cannot run
            if fault and step.id not in self.evidence:
                evidence = executor.fail(step, fault.text)
                for watcher in self.watchers:
                    await watcher.found(evidence)
            executor.begin(step)
        self.evidence = await executor.finish()

    # Ending.

    async def answer(self) -> SolverAnswer:
        """Answer the task from the evidence, as far as possible.

        Some tools only draw conclusions from evidence that they are given (the trait `concludes`). The solver is first
        shown their results in place of that evidence. If a part of the answer is missing then, the solver is asked
        again and shown all evidence.
        """
        whole = brief = show_steps(self.plan, self.evidence)
        if any(step.tool in self._concluding for step in self.plan.steps):
            brief = show_steps(self.plan, self.evidence, self._concluding)
        answer = await self._answer(brief)
        return await self._answer(whole) if answer.missing and brief != whole else answer

    async def _answer(self, steps: tuple[Shown, ...]) -> SolverAnswer:
        prompt = AnswerFromEvidence(task=self.task, steps=steps, lessons=str(self.lessons or ""))
        return self.read(await ask(self.models["solver"], prompt, "solver"))

    async def ensure_answer(self) -> None:
        """Answer the task, unless this process has an answer already."""
        if self.answered == SolverAnswer():
            await self.answer()

    def read(self, words: str) -> SolverAnswer:
        """Parse an answer and store it in `answered`. If the run ends early, its result has the last stored answer."""
        self.answered = read_answer(words, self.plan)
        return self.answered

    async def close(self) -> None:
        """Cancel running steps, and keep the evidence of those that have ended."""
        if self._executor:
            await self._executor.stop(self.stopped and f"not done: {self.stopped}")
            self.evidence = {**self._executor.evidence, **self.evidence}

    def solution(self, how: str) -> Solution:
        """Return the result of the run."""
        answer = self.answered
        stopped = self.stopped or (NO_ANSWER if answer.missing and not answer.text else "")
        return Solution(
            self.task,
            how,
            answer.text,
            self.plan,
            self.evidence,
            stopped,
            tuple(self.changes),
            self.allowance.spent(),
            self.name,
            answer.missing,
            self.lessons.ids if self.lessons else (),
        )


async def answer_alone(run: PlanningRun, reasons: bool) -> None:
    """Let the worker answer without tools.

    Args:
        reasons: let the worker write its thoughts first; the answer is the last line.
    """
    prompt = AnswerAlone(task=run.task, exemplars=tuple(run.exemplars), reasons=reasons)
    run.answered = SolverAnswer((await ask(run.models["worker"], prompt, "worker")).strip())


async def plan_and_execute(run: PlanningRun) -> None:
    """Run the plan in rounds, and try to answer after each round.

    A round runs all steps whose required steps have evidence. If the answer is not complete after the last round, or
    after a round in which a step failed, the plan is revised, as long as revisions are left. The plan is not revised if
    all steps have run and the solver says that the missing parts do not exist.
    """
    if run.given is None:
        await run.make_plan()
        if run.stopped:
            return None
    while True:
        is_due, missing = bool(run.missing), run.missing
        if not is_due:
            left = [step for step in run.plan.steps if step.id not in run.evidence]
            ready = [step for step in left if all(need in run.evidence for need in step.needs)] or left
            await run.carry_out(ready)
            answer = await run.answer()
            if not answer.missing:
                return None
            missing, is_last = answer.steps, len(ready) == len(left)
            if answer.absent and is_last:
                return None
            is_due = run.may_mend and (is_last or any(run.evidence[step.id].failed for step in ready))
        if is_due and await run.mend(missing):
            continue
        if all(step.id in run.evidence for step in run.plan.steps):
            return await run.ensure_answer()


async def rewoo(run: PlanningRun) -> None:
    """Run each step as soon as the evidence that it needs is there, also while the planner still writes; then answer.

    If parts of the answer are missing, the plan is revised and the new steps run, as long as revisions are left.
    """
    executor = None
    if run.given is None:
        executor = run.executor()
        await run.make_plan(executor)
        if run.stopped:
            return None
    while True:
        if not (missing := run.missing):
            await run.carry_out(run.plan.steps, executor)
            executor = None
            answer = await run.answer()
            if not answer.missing or answer.absent or not run.may_mend:
                return None
            missing = answer.steps
        if not await run.mend(missing):
            return await run.ensure_answer()
