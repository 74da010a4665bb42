"""Events of planning runs; an interrupted run is resumed from these rows of a mind's log."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field, JsonValue

from mindstream.log.declared import NoWords, Quotes
from mindstream.log.events import Event


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run used: model calls, tool calls, tokens, US dollars (where the price is known), seconds.

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
    """An event of a run."""

    run: NoWords[str]


class SpendingEvent(RunEvent):
    """An event of a run; `spent` is what the run had spent until then."""

    spent: Spent = NOTHING_SPENT


class Solving(RunEvent):
    """A run began or was resumed; `how`: its strategy."""

    kind = "solving"
    task: Quotes[str]
    how: NoWords[str]


class RunPlanned(SpendingEvent):
    """A plan was made for the run, or changed."""

    kind = "run_planned"
    plan: Quotes[dict[str, JsonValue]]
    because: Quotes[str]


class AnswerMissing(SpendingEvent):
    """The evidence of these steps lacks the answer, so the plan is about to be revised; this counts as a revision."""

    kind = "answer_missing"
    steps: NoWords[tuple[str, ...]]


class PlanKept(SpendingEvent):
    """The revision left the plan unchanged: it had no change, or a faulty one."""

    kind = "plan_kept"


class StepBegan(SpendingEvent):
    """A tool is about to be called. Without a later `step_found`, it is unknown whether the call had its effect."""

    kind = "step_began"
    step: NoWords[str]
    tool: NoWords[str]
    arguments: Quotes[str]


class StepFound(SpendingEvent):
    """A step has its evidence, or failed (see `planning.plan.Evidence`)."""

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
    """A run ended."""

    kind = "solved"
    answer: Quotes[str]
    stopped: Quotes[str] = ""
    """Why it has no answer; "" if it has one."""
    unanswered: Quotes[str] = ""
    lessons: NoWords[tuple[str, ...]] = ()
    """Ids of the lessons of a pool that were in the prompts."""


EVENTS: tuple[type[Event], ...] = (Solving, RunPlanned, AnswerMissing, PlanKept, StepBegan, StepFound, Solved)
