"""Remembered plans: what solved a task solves another that differs in names and numbers only, without a planner.

A plan that ended well is an exemplar in a stream. It serves another task where, put into each other's place, the names,
numbers and quoted texts in which the two differ make the one of the other and back, and where it is certain what of the
plan belongs to them: each stands in what its steps are called with, and no name or number does that is not the task's,
since that might have been worked out from them. Letters and digits alone are looked at: no word is understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from pydantic import JsonValue, ValidationError

from mindstream.memory.memory import Memory
from mindstream.models.model import ToolSpec
from mindstream.planning.arguments import Reference, Text, parse_part
from mindstream.planning.check import check
from mindstream.planning.plan import Plan
from mindstream.planning.solution import Solution
from mindstream.text.words import STOP

PLANNER = "planner"
PLAN = "planned"
LONGEST, LOOKED_AT = 2_000, 20
"""The longest task, in characters, and among so many remembered ones a plan is looked for."""
CONSTANTS = {"1", "100"}
"""Numbers that percentages are worked out with, whatever they are of."""
TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d]\w*|[^\w\s]")
FORMULA = re.compile(r"[\d)]\s*[-+*/^]\s*[\d(]")
BEGINS = re.compile(r"(?:^|[.!?:] )$")
WITHIN = {*"-'’.&", "of", "the", "de", "da", "von", "van", "la", "du"}
"""What stands in a name, and is no word of a task."""
OPENS, CLOSES = tuple('"“«《「'), tuple('"”»》」')


@dataclass(frozen=True)
class RememberedPlans:
    """The plans that a stream holds."""

    memory: Memory

    async def find(self, task: str, tools: Sequence[ToolSpec]) -> Plan | None:
        """Return the plan of a task that differs in names and numbers only, with this one's; None: none would run."""
        if len(task) > LONGEST:
            return None
        found = await self.memory.recall(task, LOOKED_AT, kinds=["exemplar"], touch=False)
        for each in found:
            plan = _plan_for(task, each.record.text, each.record.data)
            if plan and not check(plan, tools):
                return plan
        return None

    async def keep(self, solution: Solution, tools: Sequence[ToolSpec]) -> bool:
        """Keep a plan that ended well, where none is remembered for its task; return whether it was kept."""
        if len(solution.task) > LONGEST or not _ended_well(solution) or check(solution.plan, tools):
            return False
        if await self.find(solution.task, tools):
            return False
        data: dict[str, JsonValue] = {PLAN: solution.plan.model_dump(mode="json")}
        await self.memory.retain(solution.task, "exemplar", by=PLANNER, data=data)
        return True


def _ended_well(solution: Solution) -> bool:
    """Tell whether a plan that was made beforehand answered it all, as it was made, and every step found something."""
    is_whole = len(solution.evidence) == len(solution.plan.steps) and not solution.missing
    is_whole = is_whole and not solution.unanswered and not solution.stopped and not solution.changes
    return bool(solution.answer) and is_whole and bool(solution.plan.steps) and solution.how != "react"


def _plan_for(task: str, before: str, data: Mapping[str, JsonValue]) -> Plan | None:
    """Return a remembered plan with another task's names and numbers; None where it may be wrong for it."""
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
    """Return a text's names and numbers, each by that in whose place it stands in another, changed or not.

    None where the texts differ in more than these.
    """
    texts = [" ".join(text.split()) for text in (before, after)]
    tokens = [list(TOKEN.finditer(text)) for text in texts]
    # What could be changed is made alike to nothing, so that words alone are laid side by side.
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
    """Tell whether a part of a text is a name, a number, or the whole of what stands in quotes."""
    ends = (span[0][0], span[-1][0])
    is_quoted = text[: span[0].start()].endswith(OPENS) and text.startswith(CLOSES, span[-1].end())
    is_one = all(_begins_name(found[0]) or found[0] in WITHIN for found in span)
    return is_quoted or (is_one and all(_begins_name(word) and word.casefold() not in STOP for word in ends))


def _is_general(plan: Plan, task: str, swaps: Mapping[str, str]) -> bool:
    """Tell whether the plan's own words hold all that is changed, and no name or number that is not the task's."""
    literals = [text for step in plan.steps for text in _texts(dict(step.arguments))]
    differing = [old for old, new in swaps.items() if old != new]
    changed = {found[0].casefold() for old in differing for found in TOKEN.finditer(old) if _begins_name(found[0])}
    if not all(any(_swap_text(text, {old: ""}) != text for text in literals) for old in differing):
        return False
    if changed & CONSTANTS and any(FORMULA.search(text) for text in literals):
        return False
    if changed & {str(value) for step in plan.steps for value in _numbers(dict(step.arguments))}:
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
    """Return a text with other names and numbers, all at once, where they stand as whole words."""
    if not swaps:
        return text
    named = "|".join(map(re.escape, sorted(swaps, key=len, reverse=True)))
    return re.sub(rf"(?<![\w.])(?:{named})(?!\w|\.\d)", lambda found: swaps[found[0]], text)


def _swap(value: JsonValue, swaps: Mapping[str, str]) -> JsonValue:
    part = parse_part(value)
    if isinstance(part, Reference):
        return value
    if isinstance(part, Text):
        pieces = (each if isinstance(each, Reference) else _swap_text(each, swaps) for each in part.pieces)
        return Text(tuple(pieces)).as_json()
    if isinstance(value, str):
        return _swap_text(value, swaps)
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
