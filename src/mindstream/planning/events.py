"""What can happen in a run that solves a task; in the log of a mind, a run is taken up from these rows."""

from __future__ import annotations

from pydantic import Field, JsonValue

from mindstream.log.declared import NoWords, Quotes
from mindstream.log.events import Event
from mindstream.planning.allowance import NOTHING_SPENT, Spent


class RunEvent(Event):
    """Something that happened to a run."""

    run: NoWords[str]


class SpendingEvent(RunEvent):
    """Something that happened to a run; `spent` is what all of the run took until then."""

    spent: Spent = NOTHING_SPENT


class Solving(RunEvent):
    """A run began, or was taken up again."""

    kind = "solving"
    task: Quotes[str]
    how: NoWords[str]


class RunPlanned(SpendingEvent):
    """A plan was made for the run, or changed."""

    kind = "run_planned"
    plan: Quotes[dict[str, JsonValue]]
    because: Quotes[str]


class AnswerMissing(SpendingEvent):
    """The answer was missing from what these steps found: the plan is about to be mended, which is counted."""

    kind = "answer_missing"
    steps: NoWords[tuple[str, ...]]


class PlanKept(SpendingEvent):
    """Whoever was to mend the plan changed nothing of it."""

    kind = "plan_kept"


class StepBegan(SpendingEvent):
    """A tool is about to be called; where no `step_found` follows, it may have had its effect."""

    kind = "step_began"
    step: NoWords[str]
    tool: NoWords[str]
    arguments: Quotes[str]


class StepFound(SpendingEvent):
    """A step has its evidence, or failed (see `planning.evidence.Evidence`)."""

    kind = "step_found"
    step: NoWords[str]
    text: Quotes[str]
    failed: bool = False
    foreign: bool = False
    tool: NoWords[str] = ""
    arguments: Quotes[dict[str, JsonValue]] = Field(default_factory=dict)
    tries: int = 0
    seconds: float = 0.0
    own: bool = False


class Solved(SpendingEvent):
    """A run came to its end."""

    kind = "solved"
    answer: Quotes[str]
    stopped: Quotes[str] = ""
    """Why it came to no answer; "" where it did."""
    unanswered: Quotes[str] = ""


EVENTS: tuple[type[Event], ...] = (Solving, RunPlanned, AnswerMissing, PlanKept, StepBegan, StepFound, Solved)
