"""The log of a run: a row before and after each call, so that the run resumes even after `kill -9`.

A step whose `step_found` row reports no failure is not run again. A call that began but has no result is made again,
with the same idempotency key if its tool takes one; so a call that was in flight can be made twice. A revised plan
stays revised, and the rows hold what the run had spent. Only one process holds a run at a time (memory/lease). Another
process gets an error, or resumes the run when the first one has died.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace

from pydantic import Field, ValidationError

from mindstream.clock import Moment
from mindstream.errors import LeaseLost
from mindstream.json_values import JsonObject
from mindstream.log.declared import Name, Names, Quotes
from mindstream.log.events import Event, Logged
from mindstream.memory import lease
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Entry, Fence, WorkDone, read_log
from mindstream.planning.executor import RunWatcher
from mindstream.planning.plan import Evidence, Plan, PlannedStep, still_valid


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run used: model calls, tool calls, tokens, US dollars (only calls whose price is known), seconds.

    Attributes:
        unpriced: number of model calls whose price is unknown; None: not counted (logs of older versions).
    """

    model_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    unpriced: int | None = None


NOTHING_SPENT = Spent()


class RunEvent(Event):
    """An event of a planner's run; `run`: the name of the run."""

    run: Name


class SpendingEvent(RunEvent):
    """An event of a run; `spent` is what the run had spent until then."""

    spent: Spent = NOTHING_SPENT


class Solving(RunEvent):
    """A run began or was resumed; `how`: its strategy."""

    kind = "solving"
    task: Quotes[str]
    how: Name


class RunPlanned(SpendingEvent):
    """A plan was made for the run, or changed."""

    kind = "run_planned"
    plan: Quotes[JsonObject]
    because: Quotes[str]


class AnswerMissing(SpendingEvent):
    """The evidence of these steps lacks the answer, so the plan is about to be revised. The event counts as one of the
    run's revisions."""

    kind = "answer_missing"
    steps: Names
    """Ids of the steps; `nothing`: none of them has evidence."""


class PlanKept(SpendingEvent):
    """A revision left the plan unchanged. It proposed no change, or a change that would make the plan faulty."""

    kind = "plan_kept"


class StepBegan(SpendingEvent):
    """A tool is about to be called. Without a later `step_found`, it is unknown whether the call had its effect."""

    kind = "step_began"
    step: Name
    tool: Name
    arguments: Quotes[str]


class StepFound(SpendingEvent):
    """A step has its evidence, or failed (see `planning.plan.Evidence`)."""

    kind = "step_found"
    step: Name
    text: Quotes[str]
    failed: bool = False
    foreign: bool = False
    tool: Name = ""
    arguments: Quotes[JsonObject] = Field(default_factory=dict)
    tries: int = 0
    seconds: float = 0.0
    own: bool = False


class Solved(SpendingEvent):
    """A run ended."""

    kind = "solved"
    answer: Quotes[str]
    stopped: Quotes[str] = ""
    """Why the run ended early, or without an answer; "" if it ended normally with an answer."""
    unanswered: Quotes[str] = ""
    lessons: Names = ()
    """Ids of the lessons of a pool that were in the prompts."""


EVENTS: tuple[type[Event], ...] = (Solving, RunPlanned, AnswerMissing, PlanKept, StepBegan, StepFound, Solved)


PLANNER = "planner"
"""Author of a run's rows."""
KINDS = tuple(each.kind for each in EVENTS)
REMEMBERED = "remembered"
"""The reason (`because`) that is logged for a plan that was remembered from another task."""
GIVEN = "it was given"
"""The reason (`because`) that is logged for a plan that the caller gave."""


@dataclass(frozen=True)
class RunCheckpoint:
    """The state of a run according to its log.

    Attributes:
        plan: the newest plan; None: no complete plan was written.
        given: the caller's plan; None: the caller gave none.
        remembered: whether the plan was remembered from another task.
        evidence: evidence of the steps of `plan` that did not fail.
        failed: evidence of failed steps. It is used if the run resumes during a revision, or after a revision that left
            the plan unchanged.
        replans: number of revisions that were begun.
        missing: the steps that an unfinished revision is about; () if no revision is unfinished.
        kept: whether the last revision left the plan unchanged, and no step was run since.
        spent: what the run had spent at its last row.
        answer: the answer; None: the run has not ended.
        lessons: ids of the pool's lessons that were in the run's prompts.
        at: time of the last row.
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
    lessons: tuple[str, ...] = ()
    at: Moment = 0.0

    def with_plan(self, plan: Plan) -> RunCheckpoint:
        """Return the checkpoint for continuing with the caller's plan; unchanged if the run had this plan already.

        With a different plan, only the evidence of unchanged steps stays.
        """
        if self.plan is not None and plan in (self.plan, self.given):
            return self
        evidence = still_valid(self.plan, plan, self.evidence) if self.plan else self.evidence
        return replace(self, plan=None, evidence=evidence, missing=(), kept=False)

    def settled(self) -> dict[str, Evidence]:
        """Return the evidence of the steps that are not run again when the run resumes.

        Failed steps are run again, with two exceptions: the run was interrupted during a revision; or the last revision
        left the plan unchanged, and no step was run since.
        """
        return {**self.failed, **self.evidence} if self.missing or self.kept else dict(self.evidence)


def slot_of(run: str) -> str:
    """Return the slot (name) of a run's work item; only the process that has claimed the item may continue the run."""
    return f"run:{run}"


async def outlast(stream: Memory, run: str) -> None:
    """Wait until the lease of a dead process on the run has expired; return at once if no process holds the run.

    Raises:
        HeldElsewhere: a live process holds it.
    """
    await lease.outlast(stream, slot_of(run), _running(run))


@asynccontextmanager
async def open_journal(
    stream: Memory, run: str, task: str, how: str, spent: Callable[[], Spent], lease_s: float
) -> AsyncIterator[Journal]:
    """Begin or resume a run in the log, and hold it until the block ends.

    Raises:
        HeldElsewhere: another process holds it.
    """
    slot, began = slot_of(run), Entry(Solving(run=run, task=task, how=how), PLANNER)
    goes_on = await lease.is_open(stream, slot)
    rows = [] if goes_on else await stream.commit(began, wake=lease.for_anybody(slot))
    async with lease.hold(stream, slot, _running(run), lease_s) as fence:
        rows = await stream.commit(began, fence=fence) if goes_on else rows
        yield Journal(stream, run, spent, fence, rows[-1].seq)


def _running(run: str) -> str:
    return f"running the run {run!r}"


class Journal(RunWatcher):
    """Writes the events of a run to the log; each row is on disk before the run continues.

    Every write raises LeaseLost if another process has taken over the run.

    Attributes:
        seq: number of the log row with which the run began or was resumed.
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

    async def end(self, answer: str, stopped: str, unanswered: str, lessons: tuple[str, ...] = ()) -> None:
        """Log the end of the run: its answer, why it stopped, and the missing part of the answer."""
        spent = self._spent()
        solved = Solved(
            run=self.run, spent=spent, answer=answer, stopped=stopped, unanswered=unanswered, lessons=lessons
        )
        await self._write(solved, WorkDone(self._fence.work, self._fence.owner))

    async def _write(self, event: SpendingEvent, finish: WorkDone | None = None) -> None:
        try:
            await self._memory.commit(Entry(event, PLANNER), fence=self._fence, finish=finish)
        except LeaseLost:
            raise LeaseLost(
                f"the run {self.run!r} was taken over or ended by another process, so this process no longer works on"
                " it"
            ) from None


async def read_run(stream: Memory, run: str) -> RunCheckpoint | None:
    """Return the state of a run; None if the log has no run of this name."""
    return (await read_runs(stream, run)).get(run)


async def read_runs(stream: Memory, only: str = "") -> dict[str, RunCheckpoint]:
    """Return the states of the runs in the log by name, the oldest first; `only`: the name of a single run."""
    found: dict[str, RunCheckpoint] = {}
    for row in await read_rows(stream, only):
        name = str(getattr(row.event, "run", ""))
        found[name] = replace(_after(found.get(name) or RunCheckpoint(name), row.event), at=row.at)
    return found


async def read_rows(stream: Memory, only: str = "") -> list[Logged]:
    """Return the log rows of runs, the oldest first; `only`: the name of a single run."""
    rows = read_log(stream.store, stream.key, kinds=KINDS)
    return [row async for row in rows if (name := getattr(row.event, "run", "")) and name == (only or name)]


def _after(begun: RunCheckpoint, event: object) -> RunCheckpoint:
    """Return a run's state after one more event of its log."""
    spent = event.spent if isinstance(event, SpendingEvent) else begun.spent
    held = {**begun.__dict__, "spent": spent}
    match event:
        case Solving():
            if begun.plan is None and begun.how != "react":  # a new plan will be written, and its steps may differ
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
            held["lessons"] = event.lessons
    return RunCheckpoint(**held)


def _read_plan(written: JsonObject) -> Plan | None:
    """Return a plan from the log. None: the plan has no step, or it is invalid because parts of it were erased."""
    try:
        plan = Plan.model_validate(written)
    except ValidationError:
        return None
    return plan if plan.steps else None
