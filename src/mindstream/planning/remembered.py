"""Remembered plans: a plan that solved a task is reused for another task that differs only in names and numbers.

A plan that solved its task is stored as an exemplar. The plan is reused for another task on these conditions:

- Exchanging the names, numbers and quoted texts in which the two tasks differ turns each task into the other.
- Each exchanged part occurs in the arguments of the plan's steps.
- The arguments contain no name or number that the plan's own task does not contain, because it might have been derived
  from an exchanged part. `_is_general` has the exceptions.

Only characters are compared; the meaning of words is not considered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from pydantic import JsonValue, ValidationError

from mindstream.json_values import JsonObject
from mindstream.memory.memory import Memory
from mindstream.models.model import ToolSpec
from mindstream.planning.plan import Plan, Reference, Text, check, fill, parse_part
from mindstream.planning.run import Solution
from mindstream.text.words import STOP

PLANNER = "planner"
PLAN = "planned"
LONGEST, LOOKED_AT = 2_000, 20
"""Maximum length of a task in characters; maximum number of remembered plans that are considered."""
CONSTANTS = {"1", "100"}
"""Numbers of percentage calculations, which a plan's arguments may contain even if the plan's task does not."""
TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d]\w*|[^\w\s]")
FORMULA = re.compile(r"[\d)]\s*[-+*/^]\s*[\d(]")
BEGINS = re.compile(r"(?:^|[.!?:] )$")
WITHIN = {*"-'’.&", "of", "the", "de", "da", "von", "van", "la", "du"}
"""Tokens that may occur within a name."""
OPENS, CLOSES = tuple('"“«《「'), tuple('"”»》」')


@dataclass(frozen=True)
class RememberedPlans:
    """The remembered plans in a memory."""

    memory: Memory

    async def find(self, task: str, tools: Sequence[ToolSpec]) -> Plan | None:
        """Return the plan of a task that differs only in names and numbers, adapted to this task.

        Return None if no plan fits, or if the plan cannot run with these tools.
        """
        if len(task) > LONGEST:
            return None
        found = await self.memory.recall(task, LOOKED_AT, kinds=["exemplar"], touch=False)
        for each in found:
            plan = _plan_for(task, each.record.text, each.record.data)
            if plan and not check(plan, tools):
                return plan
        return None

    async def keep(self, solution: Solution, tools: Sequence[ToolSpec]) -> bool:
        """Store the plan of a solution, and return whether it was stored.

        The plan is stored only if all these conditions are met:

        - It was made in advance, and solved its whole task without a revision or a failed step.
        - `check` finds no fault.
        - The task has at most LONGEST characters, and no remembered plan fits the task already.
        """
        if len(solution.task) > LONGEST or not _ended_well(solution) or check(solution.plan, tools):
            return False
        if await self.find(solution.task, tools):
            return False
        data: JsonObject = {PLAN: solution.plan.model_dump(mode="json")}
        await self.memory.retain(solution.task, "exemplar", by=PLANNER, data=data)
        return True


def _ended_well(solution: Solution) -> bool:
    """Return whether a plan that was made in advance (not by `react`) answered the whole task.

    A plan that was revised, or has a failed step, does not count.
    """
    if solution.missing or solution.unanswered or solution.stopped or solution.changes or solution.how == "react":
        return False
    return bool(solution.answer and solution.plan.steps) and len(solution.evidence) == len(solution.plan.steps)


def _plan_for(task: str, before: str, data: Mapping[str, JsonValue]) -> Plan | None:
    """Adapt a remembered plan: replace the names and numbers of its own task (`before`) by those of `task`.

    Return None if the plan might be wrong for `task`.
    """
    swaps = find_swaps(before, task)
    try:
        plan = Plan.model_validate(data.get(PLAN))
    except ValidationError:
        return None
    if swaps is None or (before != task and not _is_general(plan, before, swaps)):
        return None
    steps = [
        step.model_copy(update={"arguments": _swap(dict(step.arguments), swaps), "why": _swap_text(step.why, swaps)})
        for step in plan.steps
    ]
    return Plan(task=task, steps=tuple(steps), foreign=plan.foreign)


def find_swaps(before: str, after: str) -> dict[str, str] | None:
    """Return a mapping from the names, numbers and quoted texts in `before` to their counterparts in `after`.

    A counterpart may be equal. None: the texts differ in anything else, or the mapping would not be one to one.
    """
    texts = [" ".join(text.split()) for text in (before, after)]
    tokens = [list(TOKEN.finditer(text)) for text in texts]
    # Names and numbers are made unequal to everything, so that only words are aligned.
    words: list[list[tuple[int, int] | str]] = [
        [(at, side) if _begins_name(found[0]) else found[0] for at, found in enumerate(tokens[side])] for side in (0, 1)
    ]
    swaps: dict[str, str] = {}
    for kind, *ends in SequenceMatcher(None, words[0], words[1], autojunk=False).get_opcodes():
        spans = [tokens[side][ends[2 * side] : ends[2 * side + 1]] for side in (0, 1)] if kind != "equal" else []
        if spans and all(spans) and spans[0][0][0] == spans[1][0][0] and BEGINS.search(texts[0][: spans[0][0].start()]):
            spans = [span[1:] for span in spans]
        if not any(spans):
            continue
        parts = [
            text[span[0].start() : span[-1].end()] if span else "" for text, span in zip(texts, spans, strict=True)
        ]
        if not all(span and _is_entity(text, span) for text, span in zip(texts, spans, strict=True)):
            if parts[0] == parts[1]:
                continue
            return None
        old, new = parts
        if swaps.setdefault(old, new) != new:
            return None
    back = {new: old for old, new in swaps.items()}
    is_other_way_too = _swap_text(texts[0], swaps) == texts[1] and _swap_text(texts[1], back) == texts[0]
    return swaps if is_other_way_too and len(back) == len(swaps) else None


def _begins_name(word: str) -> bool:
    return word[0].isupper() or word[0].isdigit()


def _is_entity(text: str, span: Sequence[re.Match[str]]) -> bool:
    """Return whether a part of a text is a name, a number, or the complete content of quotation marks."""
    ends = (span[0][0], span[-1][0])
    is_quoted = text[: span[0].start()].endswith(OPENS) and text.startswith(CLOSES, span[-1].end())
    is_one = all(_begins_name(found[0]) or found[0] in WITHIN for found in span)
    return is_quoted or (is_one and all(_begins_name(word) and word.casefold() not in STOP for word in ends))


def _is_general(plan: Plan, task: str, swaps: Mapping[str, str]) -> bool:
    """Return whether a plan can be adapted to another task by replacing text.

    The conditions concern the arguments of the plan's steps:

    - The text arguments contain every name and number that differs between the two tasks (`swaps`).
    - Any other name or number in a text argument occurs in the plan's own task (`task`) or in CONSTANTS, or stands
      before a colon.
    - If a text argument is a formula, no number in CONSTANTS differs between the tasks.
    - No argument that is a number, not a text, differs between the tasks.
    """
    values = [value for step in plan.steps for value in _literals(dict(step.arguments))]
    literals = [value for value in values if isinstance(value, str)]
    differing = [old for old, new in swaps.items() if old != new]
    changed = {found[0].casefold() for old in differing for found in TOKEN.finditer(old) if _begins_name(found[0])}
    if not all(any(_swap_text(text, {old: ""}) != text for text in literals) for old in differing):
        return False
    if changed & CONSTANTS and any(FORMULA.search(text) for text in literals):
        return False
    if changed & {str(value) for value in values if not isinstance(value, str)}:
        return False
    own = {found[0].casefold() for found in TOKEN.finditer(task)} | CONSTANTS
    bare = [_swap_text(text, dict.fromkeys(swaps, "")) for text in literals]
    rest = [
        (found[0].casefold(), text[found.end() :])
        for text in bare
        for found in TOKEN.finditer(text)
        if _begins_name(found[0])
    ]
    return all(word not in changed and (word in own or after.startswith(":")) for word, after in rest)


def _swap_text(text: str, swaps: Mapping[str, str]) -> str:
    """Replace the keys of `swaps` by their values where the keys are whole words. Replacements are not replaced
    again."""
    if not swaps:
        return text
    named = "|".join(map(re.escape, sorted(swaps, key=len, reverse=True)))
    return re.sub(rf"(?<![\w.])(?:{named})(?!\w|\.\d)", lambda found: swaps[found[0]], text)


def _swap(value: JsonValue, swaps: Mapping[str, str]) -> JsonValue:
    """Return arguments with the keys of `swaps` replaced by their values in all texts (`_swap_text`). References stay
    as they are."""

    def swap_part(part: Reference | Text) -> JsonValue:
        pieces = part.pieces if isinstance(part, Text) else ()
        swapped = (each if isinstance(each, Reference) else _swap_text(each, swaps) for each in pieces)
        return Text(tuple(swapped)).as_json() if pieces else part.as_json()

    return fill(value, swap_part, lambda text: _swap_text(text, swaps))


def _literals(value: JsonValue) -> Iterator[str | int | float]:
    """Yield the numbers in arguments, and the texts without the references in them; true and false are left out."""
    part = parse_part(value)
    if isinstance(part, Text):
        yield from (each for each in part.pieces if isinstance(each, str))
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value
    elif part is None and isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _literals(each)
