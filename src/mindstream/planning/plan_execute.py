"""Plan and execute: after each round of steps it is asked whether the answer is there (Wang 2023; Kim 2024, 3.3)."""

from __future__ import annotations

from mindstream.planning.run import Run


async def plan_and_execute(run: Run) -> None:
    """Answer the task, and stop as soon as it is answered; the plan is mended when a round gave too little."""
    if run.given is None:
        await run.make_plan()
        if run.stopped:
            return
    while True:
        left = [step for step in run.plan.steps if step.id not in run.evidence]
        ready = [step for step in left if all(need in run.evidence for need in step.needs)] or left
        last = len(ready) == len(left)
        await run.carry_out(ready)
        answer = await run.answer()
        if not answer.missing:
            return
        failed = any(run.evidence[step.id].failed for step in ready)
        if run.replans > 0 and (failed or last):
            run.replans -= 1
            if await run.mend(answer.steps):
                continue
        if last:
            return
