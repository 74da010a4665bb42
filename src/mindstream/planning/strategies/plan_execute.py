"""Plan and execute: after each round of steps it is asked whether the answer is there (Wang 2023; Kim 2024, 3.3)."""

from __future__ import annotations

from mindstream.planning.run import PlanningRun


async def plan_and_execute(run: PlanningRun) -> None:
    """Answer the task, and stop as soon as it is answered; the plan is mended when a round gave too little."""
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
