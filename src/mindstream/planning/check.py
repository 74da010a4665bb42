"""Find the faults of plans before they run."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from pydantic import JsonValue

from mindstream.models.model import ToolSpec
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.planning.references import REF, TEXT, Reference, fill

MOST_STEPS = 64
"""Maximum number of steps of a plan."""

LONGEST = 100_000
"""Maximum length of a saved plan, in characters."""
SHOWN = 12
"""Maximum number of tool names in a message."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in a plan.

    Attributes:
        step: the id of the faulty step; "": the fault concerns the plan as a whole.
        wanted: what was expected.
        came: what was found.
        advice: how to correct the plan.
    """

    kind: Literal["tool", "arguments", "reference", "missing", "forward", "self", "circular", "double", "size"]
    step: str
    wanted: str
    came: str
    advice: str

    @property
    def text(self) -> str:
        """What is wrong and how to correct it, without the id of the step."""
        return f"expected {self.wanted}, found {self.came}; {self.advice}"

    def __str__(self) -> str:
        return f"{self.step}: {self.text}" if self.step else self.text


def check(plan: Plan, tools: Sequence[ToolSpec], most_steps: int = MOST_STEPS) -> tuple[Fault, ...]:
    """Return all faults of a plan for these tools; () if it can run. If it has too many steps, they are not checked.

    Evidence is unknown before the run, so a reference is accepted as an argument of any type.
    """
    faults = list(_check_size(plan, most_steps))
    if len(plan.steps) > most_steps:
        return tuple(faults)
    checker = StepChecker(tools)
    circle = _find_circle(plan)
    ids = [step.id for step in plan.steps]
    for position, step in enumerate(plan.steps):
        faults += checker.check_call(step)
        faults += _check_needs(step, ids[:position], ids, circle)
    if circle:
        way = " → ".join((*circle, circle[0]))
        faults.append(
            Fault("circular", circle[0], "steps that do not wait for each other", way, "remove one of these references")
        )
    return tuple(faults)


class StepChecker:
    """Check whether steps can be called with the given tools."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._schemas = {spec.name: spec.checker for spec in tools}

    def can_begin(self, step: PlannedStep, before: Sequence[PlannedStep]) -> bool:
        """Return whether a step of an unfinished plan has no fault, so that it can begin before the plan is complete.

        `before`: the steps that were planned before it.
        """
        earlier = [each.id for each in before]
        if step.id in earlier or any(True for _ in self.check_call(step)):
            return False
        return not any(True for _ in _check_needs(step, earlier, [*earlier, step.id], ()))

    def check_call(self, step: PlannedStep) -> Iterator[Fault]:
        """Yield the faults of a step's tool and arguments."""
        if (schema := self._schemas.get(step.tool)) is None:
            near = _find_near(step.tool, self._schemas)
            names = ", ".join([*self._schemas][:SHOWN]) or "none"
            advice = f"did you mean {' or '.join(near)}?" if near else "use one of these tools"
            yield Fault("tool", step.id, f"one of the tools {names}", repr(step.tool), advice)
            return
        value: JsonValue = step.arguments
        for malformed in step.malformed:
            wanted = f'{{"{REF}": "E1", "path": […]}} or {{"{TEXT}": [texts and references]}}'
            came = json.dumps(malformed, ensure_ascii=False)[:80]
            yield Fault("reference", step.id, wanted, came, "write it in this form")
        if parts := step.parts:
            value = fill(value, lambda part: None if isinstance(part, Reference) else str(part))
        for words in schema.find_faults(value, parts):
            came = json.dumps(step.arguments, ensure_ascii=False)[:80]
            yield Fault(
                "arguments", step.id, f"arguments that fit {step.tool}", came, f"correct the arguments: {words}"
            )


def _check_size(plan: Plan, most_steps: int) -> Iterator[Fault]:
    if not 0 < len(plan.steps) <= most_steps:
        yield Fault("size", "", f"1 to {most_steps} steps", f"{len(plan.steps)}", "write a plan of that size")
    if (length := len(plan.save())) > LONGEST:
        came = f"{length} characters"
        yield Fault("size", "", f"at most {LONGEST} characters", came, "refer to evidence instead of copying it")
    for id, times in Counter(step.id for step in plan.steps).items():
        if times > 1:
            came = f"{times} steps with the id {id}"
            yield Fault("double", id, "a different id for each step", came, "rename the other steps")


def _find_near(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three known names that contain `name` or are a part of it, else those with a similar spelling."""
    folded, name = {each.casefold(): each for each in known}, name.casefold()
    within = [each for each in folded if len(name) > 2 and (name in each or each in name)]
    return [folded[each] for each in (within or difflib.get_close_matches(name, folded))[:3]]


def _check_needs(
    step: PlannedStep, earlier: Collection[str], ids: Collection[str], circle: Sequence[str]
) -> Iterator[Fault]:
    for need in step.needs:
        if need == step.id:
            yield Fault(
                "self",
                step.id,
                "a reference to another step",
                f"#{need}, a reference to itself",
                f"refer to a step before {need}",
            )
        elif need not in ids:
            there = ", ".join(id for id in ids if id != step.id) or "none"
            yield Fault("missing", step.id, f"one of the steps {there}", f"#{need}", f"add {need}, or refer to another")
        elif need not in earlier and not (need in circle and step.id in circle):
            yield Fault("forward", step.id, "a step that comes before", f"#{need}", f"put {need} before {step.id}")


def _find_circle(plan: Plan) -> tuple[str, ...]:
    """Return the ids of steps that wait for each other in a circle; () if no steps do."""
    try:
        TopologicalSorter({step.id: {*step.needs} - {step.id} for step in plan.steps}).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1][1:]))
    return ()
