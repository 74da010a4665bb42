"""Plans for tests in the planner's form, and a watcher that records its events."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.models.model import ToolSpec
from mindstream.planning.executor import RunWatcher
from mindstream.planning.formats.read import read
from mindstream.planning.plan import Evidence, Plan, PlannedStep


def plan_of(text: str, tools: Sequence[str]) -> Plan:
    """Parse a plan whose tools take one text each."""
    specs = [ToolSpec(name, name, {"type": "object", "properties": {"text": {"type": "string"}}}) for name in tools]
    argument = {"meet": "name", "page": "name"}
    steps = []
    for step in read(text, specs).plan.steps:
        given = {argument.get(step.tool, "text"): value for value in step.arguments.values()}
        steps.append(step.model_copy(update={"arguments": given}))
    return Plan(steps=tuple(steps))


class RecordingWatcher(RunWatcher):
    """Record its events."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.plans: list[Plan] = []

    async def planned(self, plan: Plan, because: str) -> None:
        self.plans.append(plan)

    async def began(self, step: PlannedStep, arguments: str) -> None:
        self.lines.append(f"began {step.id}")

    async def found(self, evidence: Evidence) -> None:
        self.lines.append(f"found {evidence.step} {evidence.text}")
