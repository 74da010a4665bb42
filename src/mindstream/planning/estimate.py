"""Cost estimate of a run, shown in advance: model calls, tokens, and US dollars if the price is known.

The tokens of the prompts are estimated from their text; the number of steps and the length of evidence are assumed
typical values. An estimate does not limit a run; use a `Budget` for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mindstream.errors import SettingsError
from mindstream.models.model import ToolSpec, estimate_tokens
from mindstream.models.providers.adapter import price
from mindstream.models.providers.address import address
from mindstream.planning.plan import Plan
from mindstream.planning.prompts import ActOnTask, AnswerAlone, AnswerFromEvidence, MakePlan, describe
from mindstream.text.words import count_of

STEPS, EVIDENCE, STEP, ANSWER = 4, 400, 60, 100
"""STEPS: assumed number of a plan's steps. Assumed numbers of tokens: EVIDENCE of a step's evidence, STEP of a planned
step with its reason, ANSWER of an answer."""
ASKING = "LLM"
"""Name of the tool that asks a model."""


@dataclass(frozen=True, slots=True)
class RoleEstimate:
    """Estimated calls of one role: their number, and the total number of their tokens."""

    role: str
    calls: int
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """Cost estimate of a run.

    Attributes:
        asked: the calls of each role, except for roles whose model is `rules`.
        cost_usd: the price of all calls in US dollars; None: the price of a model is unknown.
        models: model name by role.
    """

    asked: tuple[RoleEstimate, ...] = ()
    cost_usd: float | None = None
    models: Mapping[str, str] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        return sum(each.calls for each in self.asked)

    @property
    def tokens(self) -> int:
        return sum(each.tokens_in + each.tokens_out for each in self.asked)

    def __str__(self) -> str:
        dollars = "price not known" if self.cost_usd is None else f"${self.cost_usd:.4f}"
        return f"about {count_of(self.calls, 'model call')}, {self.tokens:,} tokens, {dollars}"


def estimate(
    task: str,
    how: str,
    tools: Sequence[ToolSpec],
    models: Mapping[str, str],
    exemplars: Sequence[str] = (),
    plan: Plan | None = None,
) -> Estimate:
    """Estimate the cost of a run whose plan is not revised.

    Args:
        how: the strategy, such as `rewoo`.
        models: model name by role; the name `rules` costs nothing.
        exemplars: texts of the exemplars in the prompt.
        plan: a given plan; None: the planner writes one.
    """
    given = _words(MakePlan, task, [describe(spec) for spec in tools], exemplars)
    steps = len(plan.steps) if plan else STEPS
    thinking = sum(step.tool == ASKING for step in plan.steps) if plan else steps // 3
    has_llm = any(spec.name == ASKING for spec in tools)
    planned = [] if plan else [RoleEstimate("planner", 1, given, steps * STEP)]
    own = [RoleEstimate("worker", thinking, thinking * EVIDENCE, thinking * EVIDENCE)] if has_llm and thinking else []
    match how:
        case "react":
            given = _words(ActOnTask, task, [describe(spec) for spec in tools], exemplars)
            seen = sum(given + turn * (EVIDENCE + STEP) for turn in range(steps + 1))
            asked = [RoleEstimate("worker", steps + 1, seen, steps * STEP + ANSWER), *own]
        case "direct" | "cot":
            asked = [
                RoleEstimate("worker", 1, _words(AnswerAlone, task, (), exemplars), ANSWER * (1 + 2 * (how == "cot")))
            ]
        case "plan-execute":
            rounds = len(plan.layers()) if plan else max(1, steps // 2)
            read = sum(_solving(task, steps * turn // rounds) for turn in range(1, rounds + 1))
            asked = [*planned, *own, RoleEstimate("solver", rounds, read, rounds * ANSWER)]
        case _:
            asked = [*planned, *own, RoleEstimate("solver", 1, _solving(task, steps), ANSWER)]
    return priced(asked, models)


def priced(asked: Sequence[RoleEstimate], models: Mapping[str, str]) -> Estimate:
    """Return the estimate for calls, with the price if the price is known. Calls that rules answer are left out.

    `models`: model name by role.
    """
    real = tuple(each for each in asked if models[each.role] != "rules")
    prices = [cost_of(models[each.role], each.tokens_in, each.tokens_out) for each in real]
    cost = None if None in prices else sum(each or 0.0 for each in prices)
    return Estimate(real, cost, {each.role: models[each.role] for each in real})


def _solving(task: str, steps: int) -> int:
    return estimate_tokens(AnswerFromEvidence.words()) + estimate_tokens(task) + steps * (EVIDENCE + STEP)


def _words(
    prompt: type[MakePlan | ActOnTask | AnswerAlone], task: str, tools: Sequence[str], more: Sequence[str]
) -> int:
    return sum(map(estimate_tokens, (prompt.words(), task, *tools, *more)))


def cost_of(name: str, tokens_in: int, tokens_out: int) -> float | None:
    """Return the price of these tokens in US dollars; None if it is unknown."""
    try:
        at = address(name)
    except SettingsError:  # a recording, or a model object of the caller
        return None
    return price(at.model, at, tokens_in, tokens_out)
