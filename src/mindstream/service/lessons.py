"""Verdicts on runs of the planner: a pool learns lessons from them, and keeps accepted work as an exemplar."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mindstream.errors import InputError
from mindstream.memory.memory import Memory
from mindstream.models.model import Model
from mindstream.planning.journal import RunCheckpoint, read_run, read_runs
from mindstream.planning.plan import describe_arguments
from mindstream.planning.prompts import QUOTED
from mindstream.planning.run import Solution
from mindstream.sharing.admission import Pair, admit_work
from mindstream.sharing.lessons import Learned, Line, Verdict, learn
from mindstream.sharing.pool import Pool

MAX_CALL = 2_000
"""Maximum characters of a call's arguments in an exemplar that is made from the steps of a run."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The effect of a verdict on a run.

    Attributes:
        learned: the changes of the pool's lessons.
        exemplar: the id of the exemplar that was made from the accepted work; "": none was made.
        is_quotation: whether the run's answer only quotes evidence, because no model was configured.
    """

    run: str
    task: str
    learned: Learned
    exemplar: str = ""
    is_quotation: bool = False


async def judge_run(pool: Pool, model: Model, memory: Memory, run: str, verdict: Verdict, writer: str) -> Judged:
    """Let a pool learn from the verdict on a run.

    Accepted work becomes an exemplar if the pool admits it (see `admit_work`). Work is not offered to the pool if it is
    untrusted, if it only quotes evidence, or if an agent passed on the verdict.

    Args:
        model: the model that writes the lessons.
        run: the name of the run in the memory's log; "": the newest run that has ended.
        writer: the member of the pool that gives the verdict.

    Raises:
        InputError: the run does not exist or has not ended, or the writer is not a member of the pool.
        ModelError: the model gave no usable answer; nothing was written.
    """
    if run:
        found = await read_run(memory, run)
    else:
        ended = [each for each in (await read_runs(memory)).values() if each.answer is not None]
        found = ended[-1] if ended else None
    if found is None or found.answer is None:
        raise InputError(f"there is no run {run!r} that has ended" if run else "no run of the planner has ended yet")
    evidence = (*found.evidence.values(), *found.failed.values())
    untrusted = any(each.foreign for each in evidence) or bool(found.plan and found.plan.foreign)
    learned = await learn(
        pool, model, found.task, work_of(found), verdict, writer=writer, shown=found.lessons, untrusted=untrusted
    )
    exemplar, is_quotation = "", found.answer.startswith(QUOTED)
    if verdict.right and not is_quotation and not untrusted and not verdict.relayed:
        pair = Pair(found.task, write_procedure(calls_of(found), found.answer, learned.steps))
        exemplar = await admit_work(pool, pair, writer, verdict.by)
    return Judged(found.run, found.task, learned, exemplar, is_quotation)


def work_of(run: RunCheckpoint | Solution, after: int = 0) -> list[Line]:
    """Return the task, calls, results and answer of a run, as lines for the model that writes the lessons.

    Args:
        after: number of calls in earlier attempts at the same task. The numbers of this run's calls continue after it.
    """
    lines = [Line("user", run.task)]
    failed = run.failed if isinstance(run, RunCheckpoint) else {}
    for _, each in sorted({**failed, **run.evidence}.items(), key=lambda step: (len(step[0]), step[0])):
        call = f"{_numbered(each.step, after)} = {each.tool}[{describe_arguments(each.arguments)}]"
        lines.append(Line("call", call))
        lines.append(Line("result", f"{'failed: ' * each.failed}{each.text}"))
    return [*lines, Line("agent", run.answer or "")]


def calls_of(run: RunCheckpoint | Solution, after: int = 0) -> tuple[tuple[str, str], ...]:
    """Return the step and the text of each call that did not fail. `after`: number of calls in earlier attempts; the
    numbers of the steps continue after it."""
    return tuple(
        (_numbered(each.step, after), f"{each.tool}[{describe_arguments(each.arguments)[:MAX_CALL]}]")
        for each in run.evidence.values()
        if not each.failed
    )


def write_procedure(calls: Sequence[tuple[str, str]], answer: str, steps: Collection[str] = ()) -> str:
    """Write calls and the answer as text. Only the calls of the steps in `steps` are written. If no call is of such a
    step, all calls are written.
    """
    named = [each for each in calls if each[0] in steps] or calls
    return "\n".join([*(f"#{step} = {call}" for step, call in named), f"Answer: {answer}"])


def _numbered(step: str, after: int) -> str:
    number = step.removeprefix("E")
    return f"E{int(number) + after}" if after and number.isdecimal() else step
