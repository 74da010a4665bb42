"""ReWOO: the whole plan first, then the evidence, then the answer (Xu 2023, 3). Two calls of a model, tools aside."""

from __future__ import annotations

from mindstream.planning.run import Run


async def rewoo(run: Run) -> None:
    """Answer the task; steps run while the planner still writes, and side by side."""
    executor = None
    if run.given is None:
        executor = run.executor()
        await run.make_plan(executor)
        if run.stopped:
            return
    while True:
        await run.carry_out(run.plan.steps, executor)
        executor = None
        answer = await run.answer()
        if not answer.missing or run.replans <= 0:
            return
        run.replans -= 1
        if not await run.mend(answer.steps):
            return
