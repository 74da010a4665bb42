"""ReWOO: the whole plan first, then the evidence, then the answer (Xu 2023, 3). Two calls of a model, tools aside."""

from __future__ import annotations

from mindstream.planning.run import PlanningRun


async def rewoo(run: PlanningRun) -> None:
    """Answer the task; steps run while the planner still writes, and side by side."""
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
