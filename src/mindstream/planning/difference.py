"""What differs between two plans, step by step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from mindstream.planning.plan import PlannedStep

MARKS = {"added": "+", "removed": "-", "changed": "~", "kept": " "}


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a step; `before` is None where it is added, `after` where it is removed."""

    kind: Literal["added", "removed", "changed", "kept"]
    before: PlannedStep | None
    after: PlannedStep | None

    @property
    def step(self) -> str:
        """The step's id."""
        return (self.after or self.before).id  # type: ignore[union-attr]  # one of the two is there

    def __str__(self) -> str:
        """Write the change in a line; of a step that is changed, what it was and is."""
        if self.kind != "changed" or not self.before or not self.after:
            return f"{MARKS[self.kind]} {_describe(self.after or self.before)}"
        before, after = dict(self.before), dict(self.after)
        names = (name for name in after if after[name] != before[name])
        changes = "; ".join(f"{name} {_show(before[name])} → {_show(after[name])}" for name in names)
        return f"{MARKS[self.kind]} {self.step}: {changes}"


def compare(old: Sequence[PlannedStep], new: Sequence[PlannedStep]) -> tuple[Change, ...]:
    """Return what becomes of each step: first what is removed, then the new plan's steps as they stand."""
    before, after = {step.id: step for step in old}, {step.id for step in new}
    gone = (Change("removed", step, None) for step in old if step.id not in after)
    return (*gone, *(_change(before.get(step.id), step) for step in new))


def _change(old: PlannedStep | None, new: PlannedStep) -> Change:
    return Change("added" if old is None else "kept" if old == new else "changed", old, new)


def _describe(step: PlannedStep | None) -> str:
    return f"{step.id} = {step.tool}[{_show(step.arguments)}]" if step else ""


def _show(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
