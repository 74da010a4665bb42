"""What a step found: text, or why there is none, and whose words it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from mindstream.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class Evidence:
    """What came of a planned step.

    Attributes:
        step: the step's id.
        text: what the tool gave; where it `failed`, why.
        foreign: strangers wrote it, or it was drawn from what they wrote: it is data that no planner reads.
        tool, arguments: what was called, with what other steps had found filled in.
        tries: how often the tool was called; 0: not at all.
        seconds: from the first call to the last result.
        own: the tool failed, and this is what the model knows itself.
    """

    step: str
    text: str
    failed: bool = False
    foreign: bool = False
    tool: str = ""
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    tries: int = 0
    seconds: float = 0.0
    own: bool = False


def still_valid(old: Plan, new: Plan, evidence: Mapping[str, Evidence]) -> dict[str, Evidence]:
    """Return what holds of the evidence when a plan is changed: of steps that are as they were, as is all they need.

    What failed is tried again. A step for which only another reason is given is the same step.
    """
    before = {step.id: step for step in old.steps}
    changed = {step.id for step in new.steps if not step.is_same_call(before.get(step.id))}
    changed |= {id for id, each in evidence.items() if each.failed}
    while more := {step.id for step in new.steps if changed & set(step.needs)} - changed:
        changed |= more
    ids = {step.id for step in new.steps}
    return {id: each for id, each in evidence.items() if id in ids and id not in changed}
