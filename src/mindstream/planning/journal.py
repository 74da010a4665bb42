"""A run in the log of a mind: each step before and after its call, so that it goes on after `kill -9` where it stopped.

What stands in `step_found` is not done again. A call that was begun and gave nothing is made again, with the same
idempotency key where its tool takes one: at most the calls in flight are made twice. A plan that was mended stays so,
and each row says what the run had taken. One process is at a run at a time (memory/lease): another is told so, or goes
on with it when the first has died.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace

from pydantic import JsonValue, ValidationError

from mindstream.clock import Moment
from mindstream.errors import LeaseLost
from mindstream.log.events import Logged
from mindstream.memory import lease
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Entry, Fence, WorkDone
from mindstream.planning.events import (
    NOTHING_SPENT,
    AnswerMissing,
    PlanKept,
    RunPlanned,
    Solved,
    Solving,
    SpendingEvent,
    Spent,
    StepBegan,
    StepFound,
)
from mindstream.planning.evidence import Evidence, still_valid
from mindstream.planning.plan import Plan, PlannedStep

PLANNER = "planner"
"""Signs what a run writes."""
KINDS = ("solving", "run_planned", "answer_missing", "plan_kept", "step_began", "step_found", "solved")
REMEMBERED = "remembered"
"""Why a plan is there that solved such a task before."""
GIVEN = "it was given"
"""Why a plan is there that its caller brought."""
A_PAGE = 1_000


@dataclass(frozen=True)
class RunCheckpoint:
    """A run as its log holds it.

    Attributes:
        plan: the newest; None where it was not finished. `given`: the one that its caller brought.
        remembered: its plan had solved such a task before.
        evidence: of the plan's steps; of what `failed`, too, where the run goes on in the middle of mending.
        replans: how often the plan was to be mended.
        missing: the steps for which it is still to be mended; () where it was, or was not to be.
        kept: it was not mended, and nothing was done since.
        spent: what the run took until the last row.
        answer: None where the run has not ended.
        at: when its last row was written.
    """

    run: str
    task: str = ""
    how: str = ""
    plan: Plan | None = None
    given: Plan | None = None
    remembered: bool = False
    evidence: dict[str, Evidence] = field(default_factory=dict)
    failed: dict[str, Evidence] = field(default_factory=dict)
    replans: int = 0
    missing: tuple[str, ...] = ()
    kept: bool = False
    spent: Spent = NOTHING_SPENT
    answer: str | None = None
    stopped: str = ""
    unanswered: str = ""
    at: Moment = 0.0

    def with_plan(self, plan: Plan) -> RunCheckpoint:
        """Return the run as it goes on where its caller brings a plan: mended, where it was this one that was mended.

        Of another plan only the evidence holds that has not changed.
        """
        if self.plan is not None and plan in (self.plan, self.given):
            return self
        evidence = still_valid(self.plan, plan, self.evidence) if self.plan else self.evidence
        return replace(self, plan=None, evidence=evidence, missing=(), kept=False)

    def settled(self) -> dict[str, Evidence]:
        """Return what is not looked for again; what failed is, but where the plan is being mended, or was not."""
        return {**self.failed, **self.evidence} if self.missing or self.kept else dict(self.evidence)


def slot_of(run: str) -> str:
    """Return the slot of the work that whoever is at a run holds."""
    return f"run:{run}"


async def outlast(stream: Memory, run: str) -> None:
    """Return when nobody is at a run.

    Raises:
        HeldElsewhere: a process is, and lives.
    """
    await lease.outlast(stream, slot_of(run), _running(run))


@asynccontextmanager
async def open_journal(
    stream: Memory, run: str, task: str, how: str, spent: Callable[[], Spent], lease_s: float
) -> AsyncIterator[Journal]:
    """Begin a run in the log, or go on with it, and hold it until the block ends.

    Raises:
        HeldElsewhere: another process is at it.
    """
    slot, began = slot_of(run), Entry(Solving(run=run, task=task, how=how), PLANNER)
    goes_on = await lease.is_open(stream, slot)
    rows = [] if goes_on else await stream.commit(began, wake=lease.for_anybody(slot))
    async with lease.hold(stream, slot, _running(run), lease_s) as fence:
        rows = await stream.commit(began, fence=fence) if goes_on else rows
        yield Journal(stream, run, spent, fence, rows[-1].seq)


def _running(run: str) -> str:
    return f"running the run {run!r}"


class Journal:
    """A run's watcher that writes to the log; each row is on disk before the run goes on.

    All that it writes raises LeaseLost where another process has taken the run over.

    Attributes:
        seq: the row in which the run began, or was taken up.
    """

    def __init__(self, memory: Memory, run: str, spent: Callable[[], Spent], fence: Fence, seq: int) -> None:
        self.run, self.seq = run, seq
        self._memory, self._spent, self._fence = memory, spent, fence

    async def planned(self, plan: Plan, because: str) -> None:
        written = plan.model_dump(mode="json", exclude_defaults=True)
        await self._write(RunPlanned(run=self.run, spent=self._spent(), plan=written, because=because))

    async def missed(self, steps: Collection[str]) -> None:
        await self._write(AnswerMissing(run=self.run, spent=self._spent(), steps=tuple(steps)))

    async def kept(self) -> None:
        await self._write(PlanKept(run=self.run, spent=self._spent()))

    async def began(self, step: PlannedStep, arguments: str) -> None:
        await self._write(
            StepBegan(run=self.run, spent=self._spent(), step=step.id, tool=step.tool, arguments=arguments)
        )

    async def found(self, evidence: Evidence) -> None:
        await self._write(StepFound(run=self.run, spent=self._spent(), **asdict(evidence)))

    async def end(self, answer: str, stopped: str, unanswered: str) -> None:
        """Note how the run ended."""
        solved = Solved(run=self.run, spent=self._spent(), answer=answer, stopped=stopped, unanswered=unanswered)
        await self._write(solved, WorkDone(self._fence.work, self._fence.owner))

    async def _write(self, event: SpendingEvent, finish: WorkDone | None = None) -> None:
        try:
            await self._memory.commit(Entry(event, PLANNER), fence=self._fence, finish=finish)
        except LeaseLost:
            raise LeaseLost(f"the run {self.run!r} was taken over by another process, and goes on there") from None


async def read_run(stream: Memory, run: str) -> RunCheckpoint | None:
    """Return what the log holds of a run, None where it holds nothing; what failed is to be tried again."""
    return (await read_runs(stream, run)).get(run)


async def read_runs(stream: Memory, only: str = "") -> dict[str, RunCheckpoint]:
    """Return the runs that the log holds, by name, the oldest first; `only` one of them where it is named."""
    found: dict[str, RunCheckpoint] = {}
    for row in await read_rows(stream, only):
        name = str(getattr(row.event, "run", ""))
        found[name] = replace(_after(found.get(name) or RunCheckpoint(name), row.event), at=row.at)
    return found


async def read_rows(stream: Memory, only: str = "") -> list[Logged]:
    """Return the rows of runs, oldest first; `only` one of them where it is named."""
    found: list[Logged] = []
    after = 0
    while rows := await stream.store.events(stream.key, after, KINDS, A_PAGE):
        after = rows[-1].seq
        found += [row for row in rows if (name := getattr(row.event, "run", "")) and name == (only or name)]
    return found


def _after(begun: RunCheckpoint, event: object) -> RunCheckpoint:
    """Return a run as it is after one more row."""
    spent = event.spent if isinstance(event, SpendingEvent) else begun.spent
    held = {**begun.__dict__, "spent": spent}
    match event:
        case Solving():
            if begun.plan is None and begun.how != "react":  # it is planned anew, and its steps may be others
                held["evidence"] = {}
            held |= {"task": event.task, "how": event.how, "answer": None, "stopped": "", "unanswered": ""}
        case RunPlanned():
            held["plan"] = plan = _read_plan(event.plan)
            held["evidence"] = still_valid(begun.plan, plan, begun.evidence) if begun.plan and plan else begun.evidence
            held |= {"failed": {}, "missing": (), "kept": False}
            if event.because == GIVEN:
                held["given"] = plan
            held["remembered"] = event.because == REMEMBERED
        case AnswerMissing():
            held |= {"replans": begun.replans + 1, "missing": event.steps, "kept": False}
        case PlanKept():
            held |= {"missing": (), "kept": True}
        case StepFound():
            fields = event.model_dump(exclude={"run", "spent"})
            which = "failed" if event.failed else "evidence"
            held |= {which: {**getattr(begun, which), event.step: Evidence(**fields)}, "kept": False}
        case Solved():
            held |= {"answer": event.answer, "stopped": event.stopped, "unanswered": event.unanswered, "kept": False}
    return RunCheckpoint(**held)


def _read_plan(written: dict[str, JsonValue]) -> Plan | None:
    """Return a plan as the log holds it; None where it has no step, or words of it were erased that it cannot lack."""
    try:
        plan = Plan.model_validate(written)
    except ValidationError:
        return None
    return plan if plan.steps else None
