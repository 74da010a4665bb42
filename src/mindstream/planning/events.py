"""Events of runs; in a mind's log, a run is resumed from these rows."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field, JsonValue

from mindstream.clock import SystemClock
from mindstream.errors import BudgetSpent
from mindstream.log.declared import NoWords, Quotes
from mindstream.log.events import Event
from mindstream.models.wrappers.budget import Budget

CLOCK = SystemClock()


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


class Allowance:
    """The limits of a run: a budget for model calls, tokens and money, and a maximum number of tool calls."""

    def __init__(self, budget: Budget, tool_calls: int | None = None) -> None:
        self.budget = budget
        self._most, self._tool_calls = tool_calls, 0
        self._began, self._seconds_before = CLOCK.elapsed(), 0.0

    def take_up(self, run: str, before: Spent) -> None:
        """Count what an interrupted run had spent."""
        self._tool_calls, self._seconds_before = before.tool_calls, before.seconds
        self.budget.take_up(run, before.model_calls, before.tokens, before.cost_usd, before.unpriced or 0)

    def take_call(self, cost_usd: float) -> None:
        """Count one tool call and its cost; raises BudgetSpent when no more is allowed."""
        if self._most is not None and self._tool_calls >= self._most:
            raise BudgetSpent(f"the {self._most} calls of tools that were allowed are made")
        self.budget.check()
        self._tool_calls += 1
        self.budget.spent_usd += cost_usd

    def spent(self) -> Spent:
        """Return what the run has spent so far."""
        budget, seconds = self.budget, self._seconds_before + CLOCK.elapsed() - self._began
        return Spent(
            budget.spent_calls, self._tool_calls, budget.spent_tokens, budget.spent_usd, seconds, budget.unpriced
        )


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


EVENTS: tuple[type[Event], ...] = (Solving, RunPlanned, AnswerMissing, PlanKept, StepBegan, StepFound, Solved)
