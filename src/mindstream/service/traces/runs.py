"""Convert runs of the planner into spans: a run is a trace; its plans and calls are children of its root."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from mindstream.clock import Moment
from mindstream.log.events import Logged, ModelCalled
from mindstream.planning.journal import RunPlanned, Solved, Solving, StepBegan, StepFound
from mindstream.planning.run import PLANNER
from mindstream.service.traces.talks import Known, Span, agent_span, call_span, tool_span, trace_of
from mindstream.tracing import genai

ROOT = "run"


@dataclass(slots=True)
class _Run:
    trace: tuple[str, ...]
    began: Logged
    solving: Solving
    since: Moment
    """The start of the current phase; the planning of new steps starts when the previous phase ends."""


class Runs:
    """Builds the spans of one mind's runs from rows in the order of the log."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._by_seq: dict[int, str] = {}
        self._steps: dict[tuple[str, str], tuple[Logged, StepBegan]] = {}

    def take(self, row: Logged) -> Iterator[Span]:
        """Yield the spans that end with this row."""
        match row.event:
            case Solving(run=name) as solving:
                self._by_seq[row.seq] = name
                if name not in self._runs:  # a known run is resumed
                    self._runs[name] = _Run(trace_of(row), row, solving, row.at)
            case ModelCalled(about=about) as call:
                if run := self._runs.get(self.run_of(about) or ""):
                    yield call_span(row, call, run.trace, ROOT)
            case RunPlanned(run=name) as planned if name in self._runs:
                yield self._planned(row, planned, self._runs[name])
            case StepBegan(run=name, step=step) as began:
                self._steps[name, step] = row, began
            case StepFound(run=name) as found if name in self._runs:
                yield self._found(row, found, self._runs[name])
            case Solved(run=name, answer=answer, stopped=stopped) if name in self._runs:
                yield _root(self._runs.pop(name), row.at, answer, stopped)

    def run_of(self, about: tuple[int, ...]) -> str | None:
        """Return the name of the run that a model call was made for; None if it was made for no run."""
        return next((self._by_seq[seq] for seq in reversed(about) if seq in self._by_seq), None)

    def close(self) -> Iterator[Span]:
        """Yield the root spans of the runs that have not ended."""
        for run in self._runs.values():
            yield _root(run, run.since, "", "unfinished")

    def _planned(self, row: Logged, planned: RunPlanned, run: _Run) -> Span:
        since, run.since = run.since, row.at
        attributes: dict[str, genai.Value] = {
            genai.AGENT: PLANNER,
            "mindstream.seq": row.seq,
            genai.ANSWERED: genai.write_answer(json.dumps(planned.plan, ensure_ascii=False)),
        }
        return Span(genai.PLAN, run.trace, f"plan {row.seq}", ROOT, since, row.at, PLANNER, attributes)

    def _found(self, row: Logged, found: StepFound, run: _Run) -> Span:
        began, step = self._steps.pop((found.run, found.step), (None, None))
        run.since = row.at
        if step and not found.tool:
            found = found.model_copy(update={"tool": step.tool})
        arguments = step.arguments if step else json.dumps(found.arguments, ensure_ascii=False)
        start = began.at if began else row.at - found.seconds
        return tool_span(run.trace, f"step {row.seq}", ROOT, start, row, found, arguments, row.seq)


def _root(run: _Run, end: Moment, answer: str, stopped: str) -> Span:
    known: Known = {"mindstream.run": run.solving.run, "mindstream.way": run.solving.how}
    task, error = run.solving.task, "Stopped" if stopped else ""
    return agent_span(run.trace, ROOT, None, run.began.at, end, PLANNER, run.began.seq, task, answer, known, error)
