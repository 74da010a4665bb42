"""Events of runs; in a mind's log, a run is resumed from these rows."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field, JsonValue

from mindstream.log.declared import NoWords, Quotes
from mindstream.log.events import Event


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run used: model calls, tool calls, tokens, US dollars (where the price is known), seconds.

    Attributes:
        unpriced: number of calls without a known price; None: not counted (logs of older versions).
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
    """A run began or was resumed."""

    kind = "solving"
    task: Quotes[str]
    how: NoWords[str]


class RunPlanned(SpendingEvent):
    """A plan was made for the run, or changed."""

    kind = "run_planned"
    plan: Quotes[dict[str, JsonValue]]
    because: Quotes[str]


class AnswerMissing(SpendingEvent):
    """These steps did not hold the answer: the plan is about to be revised, which is counted."""

    kind = "answer_missing"
    steps: NoWords[tuple[str, ...]]


class PlanKept(SpendingEvent):
    """The revision changed nothing."""

    kind = "plan_kept"


class StepBegan(SpendingEvent):
    """A tool is about to be called; without a later `step_found`, it may have had its effect."""

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
