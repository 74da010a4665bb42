"""Runs that solve a task, as spans: a run is a trace, its plans, calls of tools and of models stand below."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from mindstream.clock import Moment
from mindstream.log.events import Logged, ModelCalled
from mindstream.planning.events import RunPlanned, Solved, Solving, StepBegan, StepFound
from mindstream.planning.run import PLANNER
from mindstream.service.traces.talks import Told, told_call, tool_attributes, trace_of
from mindstream.tracing import genai

ROOT = "run"


@dataclass(slots=True)
class _Run:
    trace: tuple[str, ...]
    began: Logged
    solving: Solving
    since: Moment
    """When what it does now began: planning follows what came before it."""


class Runs:
    """What one mind's runs come to; rows are given in their order."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._by_seq: dict[int, str] = {}
        self._steps: dict[tuple[str, str], tuple[Logged, StepBegan]] = {}

    def take(self, row: Logged) -> Iterator[Told]:
        """Yield what is over with this row."""
        match row.event:
            case Solving(run=name) as solving:
                self._by_seq[row.seq] = name
                if name not in self._runs:  # else it is gone on with
                    self._runs[name] = _Run(trace_of(row), row, solving, row.at)
            case ModelCalled(about=about) as call:
                if run := self._runs.get(self.run_of(about) or ""):
                    yield told_call(row, call, run.trace, ROOT)
            case RunPlanned(run=name) as planned if name in self._runs:
                yield self._planned(row, planned, self._runs[name])
            case StepBegan(run=name, step=step) as began:
                self._steps[name, step] = row, began
            case StepFound(run=name) as found if name in self._runs:
                yield self._found(row, found, self._runs[name])
            case Solved(run=name, answer=answer, stopped=stopped) if name in self._runs:
                yield _root(self._runs.pop(name), row.at, answer, stopped)

    def run_of(self, about: tuple[int, ...]) -> str | None:
        """Return the run that a call was made for."""
        return next((self._by_seq[seq] for seq in reversed(about) if seq in self._by_seq), None)

    def close(self) -> Iterator[Told]:
        """Yield the runs that had not ended."""
        for run in self._runs.values():
            yield _root(run, run.since, "", "unfinished")

    def _planned(self, row: Logged, planned: RunPlanned, run: _Run) -> Told:
        since, run.since = run.since, row.at
        told: dict[str, genai.Value] = {
            genai.AGENT: PLANNER,
            "mindstream.seq": row.seq,
            genai.ANSWERED: genai.write_answer(json.dumps(planned.plan, ensure_ascii=False)),
        }
        return Told(genai.PLAN, run.trace, f"plan {row.seq}", ROOT, since, row.at, PLANNER, told)

    def _found(self, row: Logged, found: StepFound, run: _Run) -> Told:
        began, step = self._steps.pop((found.run, found.step), (None, None))
        run.since = row.at
        tool = found.tool or (step.tool if step else "")
        arguments = step.arguments if step else json.dumps(found.arguments, ensure_ascii=False)
        told = tool_attributes(tool, arguments, found.step) | {genai.RESULT: found.text, "mindstream.seq": row.seq}
        start = began.at if began else row.at - found.seconds
        error = "ToolError" if found.failed else ""
        return Told(genai.EXECUTE_TOOL, run.trace, f"step {row.seq}", ROOT, start, row.at, tool, told, error)


def _root(run: _Run, end: Moment, answer: str, stopped: str) -> Told:
    told: dict[str, genai.Value] = {
        genai.AGENT: PLANNER,
        "mindstream.run": run.solving.run,
        "mindstream.way": run.solving.how,
        "mindstream.seq": run.began.seq,
        genai.ASKED: genai.write_messages([("user", run.solving.task)]),
        genai.ANSWERED: genai.write_answer(answer),
    }
    error = "Stopped" if stopped else ""
    return Told(genai.INVOKE_AGENT, run.trace, ROOT, None, run.began.at, end, PLANNER, told, error)
