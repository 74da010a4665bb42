"""Without tools: the answer at once, or after thinking step by step. What planning is compared with (Xu 2023, 4.1)."""

from __future__ import annotations

from mindstream.models.ask import ask
from mindstream.planning.prompts.answer_alone import AnswerAlone
from mindstream.planning.prompts.answer_from_evidence import SolverAnswer
from mindstream.planning.run import PlanningRun


async def direct(run: PlanningRun) -> None:
    """Answer at once."""
    await _answer(run, reasons=False)


async def chain_of_thought(run: PlanningRun) -> None:
    """Think first; what was thought stands before the answer, which is the last line."""
    await _answer(run, reasons=True)


async def _answer(run: PlanningRun, reasons: bool) -> None:
    prompt = AnswerAlone(task=run.task, exemplars=tuple(run.exemplars), reasons=reasons)
    run.answered = SolverAnswer((await ask(run.model("worker"), prompt, "worker")).strip())
