"""A run: what the three ways of solving a task have in common. It plans, mends the plan, answers, and counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing

from mindstream.errors import BudgetSpent
from mindstream.models.ask import ask, speak
from mindstream.models.model import Model
from mindstream.models.thoughts import Thinking
from mindstream.models.wrappers.budget import Budget
from mindstream.planning.answer_from_evidence import AnswerFromEvidence, SolverAnswer, read_answer, show_steps
from mindstream.planning.check import LONGEST, MOST_STEPS, check, check_step
from mindstream.planning.difference import Change
from mindstream.planning.evidence import Evidence, still_valid
from mindstream.planning.executor import CLOCK, Executor, Limits
from mindstream.planning.formats.read import open_reader, read
from mindstream.planning.formats.rewoo_text import write_plan
from mindstream.planning.journal import Begun
from mindstream.planning.leave import Leave
from mindstream.planning.make_plan import MakePlan, describe
from mindstream.planning.mend_plan import MendPlan, states_of
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.planning.solution import Solution, Spent
from mindstream.planning.watcher import RunWatcher
from mindstream.tools.tool import Tool
from mindstream.tools.traits import traits_of

NO_ANSWER = "the evidence does not hold the answer"
SAID = 300
"""So much is told of what a planner said that wrote no plan, in characters."""


class Run:
    """A task that is being solved.

    Attributes:
        plan: as it stands; `evidence` of its steps, as far as it is there.
        limits: how long one call of a tool may take, and so on.
        stopped: why the run ended before it had an answer.
        answered: what was answered last; the whole task, or a part of it.
        given: the plan is the caller's, or the one that a run made that was broken off.
    """

    def __init__(
        self,
        task: str,
        tools: Sequence[Tool],
        models: Mapping[str, Model],
        exemplars: Sequence[str],
        budget: Budget,
        tool_calls: int | None,
        replans: int,
        limits: Limits,
        leave: Leave,
        watchers: Sequence[RunWatcher],
        name: str,
        begun: Begun,
        plan: Plan | None,
    ) -> None:
        self.task, self.tools, self.name = task, tools, name
        self._specs = [tool.spec for tool in tools]
        self.exemplars, self.replans, self.leave, self.watchers = exemplars, replans, leave, watchers
        self.given = plan or begun.plan
        self.plan = self.given or Plan(task=task)
        self.evidence: dict[str, Evidence] = dict(begun.evidence)
        self.changes: list[tuple[Change, ...]] = []
        self.stopped, self.answered = "", SolverAnswer()
        self._models, self._budget, self.limits = models, budget, limits
        self._tool_calls, self._called = tool_calls, 0
        self._executor: Executor | None = None
        self._began = CLOCK.elapsed()

    def model(self, role: str) -> Model:
        """Return who answers in a role."""
        return self._models[role]

    @property
    def specs(self) -> tuple[str, ...]:
        """The tools as a planner is told of them, a line each."""
        return tuple(describe(spec) for spec in self._specs)

    def take_call(self, cost_usd: float) -> None:
        """Count one call of a tool, and what it costs; raises BudgetSpent where no more is allowed."""
        if self._tool_calls is not None and self._called >= self._tool_calls:
            raise BudgetSpent(f"the {self._tool_calls} calls of tools that were allowed are made")
        self._budget.check()
        self._called += 1
        self._budget.spent_usd += cost_usd

    # Planning.

    async def make_plan(self, executor: Executor | None = None) -> None:
        """Have the plan written; steps are handed to the executor, where there is one, as they come.

        A planner that does not come to an end is broken off when its plan cannot run any more.
        """
        prompt = MakePlan(task=self.task, tools=self.specs, exemplars=tuple(self.exemplars))
        reader, steps = open_reader("rewoo", self._specs), list[PlannedStep]()
        thinking, words, length = Thinking(), "", 0
        async with aclosing(speak(self.model("planner"), prompt, "planner")) as pieces:
            async for piece in pieces:
                _, plain = thinking.part(piece)
                words, length = (words + plain)[:LONGEST], length + len(piece)
                steps += self._take(reader.feed(plain), steps, executor)
                if length > LONGEST or len(steps) > MOST_STEPS:
                    break
        rest = thinking.rest()
        steps += self._take([*reader.feed(rest), *reader.close()], steps, executor)
        self.plan = Plan(task=self.task, steps=tuple(steps))
        if not steps:
            self.stopped = f"there is no plan: {' '.join((words + rest).split())[:SAID]}"
        await self.tell("made")

    def _take(
        self, new: Sequence[PlannedStep], before: Sequence[PlannedStep], executor: Executor | None
    ) -> list[PlannedStep]:
        """Hand steps that are sound so far to the executor; what changes the world waits until the plan is written."""
        changing = {tool.spec.name for tool in self.tools if traits_of(tool).changes}
        for n, step in enumerate(new):
            waits = executor is None or step.tool in changing or len(before) + n >= MOST_STEPS
            if executor and not waits and not check_step(step, (*before, *new[:n]), self._specs):
                executor.begin(step)
        return list(new)

    async def mend(self, insufficient: Collection[str]) -> bool:
        """Have the plan mended; return whether anything of it changed. What was not run yet is not insufficient."""
        insufficient = [id for id in insufficient if id in self.evidence]
        plan = write_plan(self.plan, self._specs, with_task=False)
        states = states_of(self.plan, self.evidence, insufficient)
        prompt = MendPlan(task=self.task, tools=self.specs, plan=plan, states=states)
        text = await ask(self.model("replanner"), prompt, "replanner")
        steps = {step.id: step for step in self.plan.steps}
        for step in read(text, self._specs).plan.steps:
            steps[step.id] = step
        mended = Plan(task=self.task, steps=tuple(steps.values()))
        changes = tuple(change for change in self.plan.diff(mended) if change.kind != "kept")
        if not changes or check(mended, self._specs):
            return False
        self.changes.append(changes)
        self.evidence = still_valid(self.plan, mended, self.evidence)
        self.plan, self._executor = mended, None  # what it found may belong to the old plan
        await self.tell(f"{', '.join(insufficient) or 'the plan'} did not give what was needed")
        return True

    async def tell(self, because: str) -> None:
        """Tell the watchers of the plan as it stands now."""
        for watcher in self.watchers:
            await watcher.planned(self.plan, because)

    # Running.

    def executor(self) -> Executor:
        """Return what runs steps; what has been found is not looked for again."""
        self._executor = Executor(
            self.tools, run=self.name, limits=self.limits, leave=self.leave, watchers=self.watchers,
            found=self.evidence, take_call=self.take_call,
        )  # fmt: skip
        return self._executor

    async def carry_out(self, steps: Sequence[PlannedStep], executor: Executor | None = None) -> None:
        """Run steps, and keep what they find; a step that cannot be called as planned fails with the reason.

        `executor`: it runs some of them already.
        """
        executor = executor or self.executor()
        is_checked = all(executor.has_begun(step) for step in steps)
        faults = {} if is_checked else {fault.step: fault for fault in check(self.plan, self._specs)}
        for step in steps:
            fault = faults.get(step.id) or faults.get("")  # "": the plan as a whole cannot run
            if fault and step.id not in self.evidence:
                executor.fail(step, str(fault))
            executor.begin(step)
        self.evidence = await executor.finish()

    # Ending.

    async def answer(self) -> SolverAnswer:
        """Have the task answered from what was found, as far as it goes."""
        prompt = AnswerFromEvidence(task=self.task, steps=show_steps(self.plan, self.evidence))
        return self.read(await ask(self.model("solver"), prompt, "solver"))

    def read(self, words: str) -> SolverAnswer:
        """Read an answer, and keep it: it is what there is where the run ends early."""
        self.answered = read_answer(words, self.plan)
        return self.answered

    async def close(self) -> None:
        """Break off what still runs."""
        if self._executor:
            await self._executor.stop(self.stopped and f"not done: {self.stopped}")
            self.evidence = {**self._executor.evidence, **self.evidence}

    def solution(self, how: str) -> Solution:
        """Return what the run came to."""
        budget, answer = self._budget, self.answered
        stopped = self.stopped or (NO_ANSWER if answer.missing and not answer.text else "")
        spent = Spent(
            budget.spent_calls, self._called, budget.spent_tokens, budget.spent_usd, CLOCK.elapsed() - self._began
        )
        return Solution(
            self.task, how, answer.text, self.plan, self.evidence, stopped, tuple(self.changes), spent, self.name,
            answer.missing,
        )  # fmt: skip
