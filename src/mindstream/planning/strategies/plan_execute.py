"""Strategies that plan first: ReWOO and Plan-and-Execute; and answers without tools."""

from __future__ import annotations

from mindstream.models.ask import ask
from mindstream.planning.prompts import AnswerAlone, SolverAnswer
from mindstream.planning.run import PlanningRun


async def direct(run: PlanningRun) -> None:
    """Answer without thinking first."""
    await _answer(run, reasons=False)


async def chain_of_thought(run: PlanningRun) -> None:
    """Think first; the thoughts precede the answer, which is the last line."""
    await _answer(run, reasons=True)


async def _answer(run: PlanningRun, reasons: bool) -> None:
    prompt = AnswerAlone(task=run.task, exemplars=tuple(run.exemplars), reasons=reasons)
    run.answered = SolverAnswer((await ask(run.models["worker"], prompt, "worker")).strip())


async def plan_and_execute(run: PlanningRun) -> None:
    """Run the plan in rounds until the task is answered; revise the plan when a round found too little."""
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
            missing = answer.steps
            is_due = run.may_mend and (len(ready) == len(left) or any(run.evidence[step.id].failed for step in ready))
        if is_due and await run.mend(missing):
            continue
        if all(step.id in run.evidence for step in run.plan.steps):
            return await run.ensure_answer()


async def rewoo(run: PlanningRun) -> None:
    """Run all steps in parallel, beginning while the planner still writes, and then answer."""
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
            if not answer.missing or not run.may_mend:
                return None
            missing = answer.steps
        if not await run.mend(missing):
            return await run.ensure_answer()
