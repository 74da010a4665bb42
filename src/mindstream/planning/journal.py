"""A run in the log of a mind: each step before and after its call, so that it goes on after `kill -9` where it stopped.

What stands in `step_found` is not done again. A call that was begun and gave nothing is made again, with the same
idempotency key where its tool takes one: at most the calls in flight are made twice. Whoever takes a run up that
somebody else is still at takes it over: the other one makes no further call.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from mindstream.errors import LeaseLost
from mindstream.log.events import Event
from mindstream.memory.store import Entry
from mindstream.memory.stream import Stream
from mindstream.planning.events import RunPlanned, Solved, Solving, StepBegan, StepFound
from mindstream.planning.evidence import Evidence, still_valid
from mindstream.planning.plan import Plan, PlannedStep

PLANNER = "planner"
"""Signs what a run writes."""
KINDS = ("solving", "run_planned", "step_began", "step_found", "solved")
A_PAGE = 1_000


@dataclass(frozen=True)
class Begun:
    """A run as its log holds it.

    Attributes:
        plan: the newest; None where it was not finished.
        answer: None where the run has not ended.
    """

    run: str
    task: str = ""
    how: str = ""
    plan: Plan | None = None
    evidence: dict[str, Evidence] = field(default_factory=dict)
    answer: str | None = None
    stopped: str = ""
    unanswered: str = ""


class Journal:
    """A run's watcher that writes to the log; each row is on disk before the run goes on."""

    def __init__(self, stream: Stream, run: str) -> None:
        self.run = run
        self._stream = stream
        self._seen = 0

    async def begin(self, task: str, how: str) -> None:
        """Note that the run began, or goes on: whoever else is at it has lost it from here on."""
        (row,) = await self._stream.commit(Entry(Solving(run=self.run, task=task, how=how), PLANNER))
        self._seen = row.seq

    async def planned(self, plan: Plan, because: str) -> None:
        event = RunPlanned(run=self.run, plan=plan.model_dump(mode="json", exclude_defaults=True), because=because)
        await self._write(event)

    async def began(self, step: PlannedStep, arguments: str) -> None:
        event = StepBegan(run=self.run, step=step.id, tool=step.tool, arguments=arguments)
        await self._stream.commit(Entry(event, PLANNER))
        await self._check_ours()  # after it is written: whoever takes the run over now knows of this call

    async def found(self, evidence: Evidence) -> None:
        if evidence.tries or evidence.failed:
            await self._write(StepFound(run=self.run, **asdict(evidence)))

    async def end(self, answer: str, stopped: str, unanswered: str) -> None:
        """Note how the run ended."""
        await self._write(Solved(run=self.run, answer=answer, stopped=stopped, unanswered=unanswered))

    async def _write(self, event: Event) -> None:
        await self._check_ours()
        await self._stream.commit(Entry(event, PLANNER))

    async def _check_ours(self) -> None:
        """Raise LeaseLost where the run was taken up by somebody else."""
        for row in await self._stream.store.events(self._stream.name, self._seen, ("solving",), A_PAGE):
            self._seen = row.seq
            if getattr(row.event, "run", "") == self.run:
                raise LeaseLost(f"the run {self.run!r} was taken up by another process, and goes on there")


async def read_run(stream: Stream, run: str) -> Begun | None:
    """Return what the log holds of a run, None where it holds nothing; what failed is to be tried again."""
    return (await read_runs(stream, run)).get(run)


async def read_runs(stream: Stream, only: str = "") -> dict[str, Begun]:
    """Return the runs that the log holds, by name, the oldest first; `only` one of them where it is named."""
    found: dict[str, Begun] = {}
    after = 0
    while rows := await stream.store.events(stream.name, after, KINDS, A_PAGE):
        after = rows[-1].seq
        for row in rows:
            name = str(getattr(row.event, "run", ""))
            if name and name == (only or name):
                found[name] = _after(found.get(name) or Begun(name), row.event)
    return found


def _after(begun: Begun, event: object) -> Begun:
    """Return a run as it is after one more row."""
    held = dict(begun.__dict__)
    match event:
        case Solving():
            if begun.plan is None and begun.how != "react":  # it is planned anew, and its steps may be others
                held["evidence"] = {}
            held |= {"task": event.task, "how": event.how, "answer": None, "stopped": "", "unanswered": ""}
        case RunPlanned():
            held["plan"] = plan = Plan.model_validate(event.plan)
            held["evidence"] = still_valid(begun.plan, plan, begun.evidence) if begun.plan else begun.evidence
        case StepFound() if not event.failed:
            fields = event.model_dump()
            fields.pop("run")
            held["evidence"] = {**begun.evidence, event.step: Evidence(**fields)}
        case Solved():
            held |= {"answer": event.answer, "stopped": event.stopped, "unanswered": event.unanswered}
    return Begun(**held)
