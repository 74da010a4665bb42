"""Remembered plans: what solved a task solves another of the same form, with no call of a planner.

A plan that ended well is an exemplar in a stream, found by its task's form (see `task_form`). It is kept only where it
is certain what of it belongs to the task's entities: each of them stands in what its steps are called with, and no
other name or number does, since that might have been worked out from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue, ValidationError

from mindstream.memory.stream import Stream
from mindstream.models.model import ToolSpec
from mindstream.planning.arguments import Reference, Text, parse_part
from mindstream.planning.check import check
from mindstream.planning.plan import Plan
from mindstream.planning.solution import Solution
from mindstream.planning.task_form import OPENERS, TaskForm, count_entity, read_form, swap_entities

PLANNER = "planner"
FORM, ENTITIES, PLAN = "form", "entities", "planned"
CONSTANTS = ("1", "100")
"""Numbers that percentages are worked out with, whatever they are of."""
NUMBER = re.compile(r"(?<![\w.^])\d+(?:[.,]\d+)*(?!\w)")
FORMULA = re.compile(r"[\d)]\s*[-+*/^]\s*[\d(]")
NAME = re.compile(r"(?<![\w.])[A-Z][\w-]+")


@dataclass(frozen=True)
class RememberedPlans:
    """The plans that a stream holds, by the form of what they solved."""

    stream: Stream

    async def find(self, task: str, tools: Sequence[ToolSpec]) -> Plan | None:
        """Return a plan that solved a task of this form, with this one's entities; None where none would run."""
        form = read_form(task)
        if form is None:
            return None
        found = await self.stream.recall(
            task, 1, kinds=["exemplar"], where={FORM: form.key, "by": PLANNER}, touch=False
        )
        for each in found:
            plan = _plan_for(task, form, each.record.data)
            if plan and not check(plan, tools):
                return plan
        return None

    async def keep(self, solution: Solution, tools: Sequence[ToolSpec]) -> bool:
        """Keep a plan that ended well, where it can serve other tasks; return whether it was kept."""
        form = read_form(solution.task)
        if form is None or not _ended_well(solution) or not _is_general(solution.plan, form):
            return False
        if check(solution.plan, tools) or await self.find(solution.task, tools):
            return False
        await self.stream.remember(
            solution.task, "exemplar", by=PLANNER, keywords=[word for word in form.words if word.isalpha()],
            data={FORM: form.key, ENTITIES: list(form.entities), PLAN: solution.plan.model_dump(mode="json")},
        )  # fmt: skip
        return True


def _ended_well(solution: Solution) -> bool:
    """Tell whether a plan that was made beforehand answered it all, as it was made, and every step found something."""
    is_whole = len(solution.evidence) == len(solution.plan.steps) and not solution.missing
    is_whole = is_whole and not solution.unanswered and not solution.stopped and not solution.changes
    return bool(solution.answer) and is_whole and solution.how != "react"


def _is_general(plan: Plan, form: TaskForm) -> bool:
    """Tell whether the plan's own words hold every entity of the task, and no name or number from elsewhere."""
    literals = [text for step in plan.steps for text in _texts(dict(step.arguments))]
    numbers = {entity for entity in form.entities if NUMBER.fullmatch(entity)}
    if any(not any(count_entity(text, entity) for text in literals) for entity in form.entities):
        return False
    if numbers & {*CONSTANTS} and any(FORMULA.search(text) for text in literals):
        return False
    if numbers & {str(value) for step in plan.steps for value in _numbers(dict(step.arguments))}:
        return False
    bare = [swap_entities(text, dict.fromkeys(form.entities, "")) for text in literals]
    foreign = {number for text in bare for number in NUMBER.findall(text)} - {*CONSTANTS}
    return not foreign and all(_is_own(word, rest, form) for text in bare for word, rest in _names(text))


def _names(text: str) -> Iterator[tuple[str, str]]:
    """Yield what stands in capitals, each with what follows it."""
    for found in NAME.finditer(text):
        yield found[0], text[found.end() :]


def _is_own(word: str, rest: str, form: TaskForm) -> bool:
    """Tell whether a word in capitals is the task's own, apart from its entities, or only begins a sentence."""
    parts = {part.casefold() for entity in form.entities for part in entity.split()}
    folded = word.casefold()
    return folded not in parts and (folded in form.words or folded in OPENERS or rest.startswith((" of ", ":")))


def _plan_for(task: str, form: TaskForm, data: Mapping[str, JsonValue]) -> Plan | None:
    """Return a remembered plan with other entities; None where the record is none of ours."""
    entities = data.get(ENTITIES)
    if not isinstance(entities, list) or len(entities) != len(form.entities):
        return None
    swaps = {str(old): new for old, new in zip(entities, form.entities, strict=True)}
    try:
        plan = Plan.model_validate(data.get(PLAN))
    except ValidationError:
        return None
    steps = [
        step.model_copy(update={"arguments": _swap(dict(step.arguments), swaps), "why": swap_entities(step.why, swaps)})
        for step in plan.steps
    ]
    return Plan(task=task, steps=tuple(steps))


def _swap(value: JsonValue, swaps: Mapping[str, str]) -> JsonValue:
    part = parse_part(value)
    if isinstance(part, Reference):
        return value
    if isinstance(part, Text):
        pieces = (each if isinstance(each, Reference) else swap_entities(each, swaps) for each in part.pieces)
        return Text(tuple(pieces)).as_json()
    if isinstance(value, str):
        return swap_entities(value, swaps)
    if isinstance(value, list):
        return [_swap(each, swaps) for each in value]
    return {key: _swap(each, swaps) for key, each in value.items()} if isinstance(value, dict) else value


def _texts(value: JsonValue) -> Iterator[str]:
    """Yield the texts that stand in arguments themselves, beside what other steps find."""
    part = parse_part(value)
    if isinstance(part, Text):
        yield from (each for each in part.pieces if isinstance(each, str))
    elif isinstance(value, str):
        yield value
    elif part is None and isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _numbers(value: JsonValue) -> Iterator[int | float]:
    """Yield the numbers that stand in arguments as such."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield value
    elif isinstance(value, dict | list) and parse_part(value) is None:
        for each in value.values() if isinstance(value, dict) else value:
            yield from _numbers(each)
