"""What can happen in a run that solves a task; in the log of a mind, a run is taken up from these rows."""

from __future__ import annotations

from pydantic import Field, JsonValue

from mindstream.log.events import Event, register


class Solving(Event):
    """A run began, or was taken up again."""

    kind = "solving"
    run: str
    task: str
    how: str


class RunPlanned(Event):
    """A plan was made for the run, or changed."""

    kind = "run_planned"
    run: str
    plan: dict[str, JsonValue]
    because: str


class StepBegan(Event):
    """A tool is about to be called; where no `step_found` follows, it may have had its effect."""

    kind = "step_began"
    run: str
    step: str
    tool: str
    arguments: str


class StepFound(Event):
    """A step has its evidence, or failed (see `planning.evidence.Evidence`)."""

    kind = "step_found"
    run: str
    step: str
    text: str
    failed: bool = False
    foreign: bool = False
    tool: str = ""
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    tries: int = 0
    seconds: float = 0.0


class Solved(Event):
    """A run came to its end."""

    kind = "solved"
    run: str
    answer: str
    stopped: str = ""
    """Why it came to no answer; "" where it did."""
    unanswered: str = ""


register(Solving, RunPlanned, StepBegan, StepFound, Solved)
