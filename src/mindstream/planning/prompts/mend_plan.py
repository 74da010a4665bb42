"""How shall the rest of the task be done, after some steps failed or the answer is missing?

Whoever plans reads nothing that strangers wrote: only which steps failed or did not hold the answer, and what kinds of
things, numbers and dates they found (see `states_of`, sort_found).
So no evidence, whatever it says, can add a call to a plan (Debenedetti 2025, CaMeL).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from mindstream.models.prompt import Prompt, rule
from mindstream.planning.evidence import Evidence
from mindstream.planning.plan import Plan
from mindstream.planning.prompts.sort_found import Found

SHOWN = 300


class MendPlan(Prompt[str]):
    """Write the steps that are new or different."""

    role: ClassVar[str] = "replanner"
    reply_tokens: ClassVar[int] = 2_000

    task: str
    tools: tuple[str, ...]
    plan: str
    states: str


def states_of(
    plan: Plan, evidence: Mapping[str, Evidence], insufficient: Collection[str], sorted_found: Mapping[str, Found]
) -> str:
    """Say a line a step what came of it, in words of our own; of foreign evidence what kind of thing it holds."""
    return "\n".join(
        f"{step.id}: {_state(evidence.get(step.id), step.id in insufficient, sorted_found.get(step.id))}"
        for step in plan.steps
    )


def _state(evidence: Evidence | None, insufficient: bool, found: Found | None) -> str:
    if evidence is None:
        return "not run yet"
    if evidence.failed:
        state = "failed" if evidence.tries else "not run"
        return state if evidence.foreign else f"{state}: {evidence.text[:SHOWN]}"
    lacks = ", does not hold the answer" if insufficient else ""
    shown = (f", {found}" if found else "") if evidence.foreign else f": {evidence.text[:SHOWN]}"
    return f"found {len(evidence.text)} characters{lacks}{shown}"


@rule(MendPlan)
def give_up(ask: MendPlan) -> str:  # noqa: ARG001
    """Stand in: mend nothing, since one look-up is all that is planned without a model."""
    return "NOTHING"
