"""A run: what the three ways of solving a task have in common. It plans, mends the plan, answers, and counts."""

from __future__ import annotations

import contextvars
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing

from mindstream.errors import InputError
from mindstream.models.ask import ask
from mindstream.models.model import Model
from mindstream.planning.check import MOST_STEPS, StepChecker, check
from mindstream.planning.events import Allowance
from mindstream.planning.evidence import Evidence, still_valid
from mindstream.planning.executor import Approver, Executor, Limits, RunWatcher
from mindstream.planning.formats.read import read
from mindstream.planning.formats.rewoo import write_plan
from mindstream.planning.journal import RunCheckpoint
from mindstream.planning.plan import Change, Plan, PlannedStep, describe_arguments
from mindstream.planning.plan_task import is_foreign, write_steps
from mindstream.planning.prompts import (
    AnswerFromEvidence,
    KnowInstead,
    MendPlan,
    Shown,
    SolverAnswer,
    describe,
    read_answer,
    show_steps,
    states_of,
)
from mindstream.planning.solution import Solution
from mindstream.tools.tool import Tool, traits_of
from mindstream.tracing import genai, span

CALL = 2_000
PLANNER = "planner"
"""What spans call whoever plans and solves."""
NO_ANSWER, NOTHING = "the evidence does not hold the answer", "nothing"


class PlanningRun:
    """A task that is being solved.

    Attributes:
        plan: as it stands; `evidence` of its steps, as far as it is there.
        limits: how long one call of a tool may take, and so on.
        stopped: why the run ended before it had an answer.
        answered: what was answered last; the whole task, or a part of it.
        given: the plan is the caller's, or the one that a run made that was broken off.
        replans: how often the plan may still be mended.
        knows: of a step that failed the model says what it knows itself.
        missing: the steps for which it is to be mended, where the run was broken off before it was.
    """

    def __init__(
        self,
        task: str,
        tools: Sequence[Tool],
        models: Mapping[str, Model],
        exemplars: Sequence[str],
        allowance: Allowance,
        replans: int,
        limits: Limits,
        leave: Approver,
        watchers: Sequence[RunWatcher],
        name: str,
        begun: RunCheckpoint,
        plan: Plan | None,
        knows: bool = False,
    ) -> None:
        self.task, self.tools, self.name = task, tools, name
        self._specs = [tool.spec for tool in tools]
        self._checker = StepChecker(self._specs)
        self._concluding = {tool.spec.name for tool in tools if traits_of(tool).concludes}
        self._changing = {tool.spec.name for tool in tools if traits_of(tool).changes}
        self.exemplars, self.leave, self.watchers = exemplars, leave, watchers
        self.replans = replans - begun.replans
        self.missing = begun.missing if self.replans >= 0 else ()
        self._is_kept = begun.kept
        self.given, self.knows = plan, knows
        self.is_foreign = is_foreign(exemplars)
        """A stranger's exemplar is shown to whoever writes the plan, or acts."""
        self.plan = self.given or Plan(task=task, foreign=self.is_foreign)
        self.evidence: dict[str, Evidence] = begun.settled()
        self.changes: list[tuple[Change, ...]] = []
        self.stopped, self.answered = "", SolverAnswer()
        self._models, self.allowance, self.limits = models, allowance, limits
        self._executor: Executor | None = None

    def model(self, role: str) -> Model:
        """Return who answers in a role."""
        return self._models[role]

    @property
    def specs(self) -> tuple[str, ...]:
        """The tools as a planner is told of them, a line each."""
        return tuple(describe(spec) for spec in self._specs)

    @property
    def may_mend(self) -> bool:
        """Whether the plan may be mended: not when nothing was done since nothing of it was."""
        return self.replans > 0 and not self._is_kept

    # Planning.

    async def make_plan(self, executor: Executor | None = None) -> None:
        """Have the plan written; steps are handed to the executor, where there is one, as they come."""
        steps, outside = list[PlannedStep](), contextvars.copy_context()
        try:
            written = write_steps(self.task, self._specs, self.model("planner"), self.exemplars)
            with span(genai.PLAN, PLANNER, {genai.AGENT: PLANNER}):
                async with aclosing(written):
                    async for step in written:
                        if executor and self._is_ready(step, steps):
                            outside.run(executor.begin, step)  # what it does is no part of the planning
                        steps.append(step)
        except InputError as error:
            self.stopped = str(error)
            return
        self.plan = self.plan.model_copy(update={"steps": tuple(steps)})
        await self.tell("made")

    def _is_ready(self, step: PlannedStep, before: Sequence[PlannedStep]) -> bool:
        """Tell whether a step is sound so far; what changes the world waits until the plan is written."""
        waits = step.tool in self._changing or len(before) >= MOST_STEPS
        return not waits and not self._checker.check(step, before)

    async def mend(self, insufficient: Collection[str]) -> bool:
        """Have the plan mended, which uses up a replanning; return whether anything of it changed.

        What was not run yet is not insufficient.
        """
        insufficient = tuple(id for id in insufficient if id in self.evidence) or (NOTHING,)
        if not self.missing:  # else it was begun by a process that is gone
            self.replans -= 1
            for watcher in self.watchers:
                await watcher.missed(insufficient)
        self.missing = ()
        plan = write_plan(self.plan, self._specs, with_task=False)
        states = states_of(self.plan, self.evidence, insufficient, self.answered.kinds)
        prompt = MendPlan(task=self.task, tools=self.specs, plan=plan, states=states)
        with span(genai.PLAN, PLANNER, {genai.AGENT: PLANNER}):
            text = await ask(self.model("replanner"), prompt, "replanner")
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
            self.tools,
            run=self.name,
            limits=self.limits,
            leave=self.leave,
            watchers=self.watchers,
            found=self.evidence,
            foreign=self.plan.foreign,
            take_call=self.allowance.take_call,
            instead=self._know if self.knows else None,
        )
        return self._executor

    async def _know(self, step: PlannedStep, failed: Evidence) -> str:
        """Have said what is known of a step that failed."""
        call = f"{step.tool}: {describe_arguments(failed.arguments or step.arguments)[:CALL]}"
        prompt = KnowInstead(why=step.why, call=call)
        return (await ask(self.model("solver"), prompt, "solver")).text.strip()

    async def carry_out(self, steps: Sequence[PlannedStep], executor: Executor | None = None) -> None:
        """Run steps, and keep what they find; a step that cannot be called as planned fails with the reason.

        `executor`: it runs some of them already.
        """
        executor = executor or self.executor()
        is_checked = all(executor.has_begun(step) for step in steps)
        self._is_kept = self._is_kept and all(step.id in self.evidence for step in steps)
        faults = {} if is_checked else {fault.step: fault for fault in check(self.plan, self._specs)}
        for step in steps:
            fault = faults.get(step.id) or faults.get("")  # "": the plan as a whole cannot run
            if fault and step.id not in self.evidence:
                evidence = executor.fail(step, str(fault))
                for watcher in self.watchers:
                    await watcher.found(evidence)
            executor.begin(step)
        self.evidence = await executor.finish()

    # Ending.

    async def answer(self) -> SolverAnswer:
        """Have the task answered from what was found, as far as it goes.

        What a step concluded is read instead of what it read, and this only where the answer lacks something.
        """
        whole = brief = show_steps(self.plan, self.evidence)
        if any(step.tool in self._concluding for step in self.plan.steps):
            brief = show_steps(self.plan, self.evidence, self._concluding)
        answer = await self._answer(brief)
        return await self._answer(whole) if answer.missing and brief != whole else answer

    async def _answer(self, steps: tuple[Shown, ...]) -> SolverAnswer:
        prompt = AnswerFromEvidence(task=self.task, steps=steps)
        return self.read(await ask(self.model("solver"), prompt, "solver"))

    async def ensure_answer(self) -> None:
        """Have the task answered, unless it was in this process."""
        if self.answered == SolverAnswer():
            await self.answer()

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
        )
