"""How shall the rest of the task be done, after some steps failed or the answer is missing?

Whoever plans reads nothing that strangers wrote: only which steps failed or did not hold the answer, and what kind of
thing is missing from them (see `states_of`).
So no evidence, whatever it says, can add a call to a plan (Debenedetti 2025, CaMeL).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from mindstream.models.prompt import Prompt, rule
from mindstream.planning.evidence import Evidence
from mindstream.planning.plan import Plan
from mindstream.planning.prompts.answer_from_evidence import Kind

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
    plan: Plan, evidence: Mapping[str, Evidence], insufficient: Collection[str], kinds: Mapping[str, Kind]
) -> str:
    """Say a line a step what came of it, in words of our own; of foreign evidence what kind of thing it lacks."""
    return "\n".join(
        f"{step.id}: {_state(evidence.get(step.id), step.id in insufficient, kinds.get(step.id))}"
        for step in plan.steps
    )


def _state(evidence: Evidence | None, insufficient: bool, kind: Kind | None) -> str:
    if evidence is None:
        return "not run yet"
    if evidence.failed:
        state = "failed" if evidence.tries else "not run"
        return state if evidence.foreign else f"{state}: {evidence.text[:SHOWN]}"
    lacks = f", does not hold the {kind or 'answer'}{' that is wanted' * bool(kind)}" if insufficient else ""
    shown = "" if evidence.foreign else f": {evidence.text[:SHOWN]}"
    return f"found {len(evidence.text)} characters{lacks}{shown}"


@rule(MendPlan)
def give_up(ask: MendPlan) -> str:  # noqa: ARG001
    """Stand in: mend nothing, since one look-up is all that is planned without a model."""
    return "NOTHING"
