"""Plans as data (Xu 2023): steps with a tool, its arguments, a reason and the steps they need; and their evidence; and
the faults that a plan can have before it runs.

Arguments may contain references to the evidence of earlier steps. A reference is a JSON object,
`{"$ref": "E1", "path": ["price", 0]}` (written `#E1` in text). It can be part of a text,
`{"$text": ["What is the capital of ", {"$ref": "E1"}, "?"]}`. Inserted evidence is never searched for references.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from graphlib import CycleError, TopologicalSorter
from operator import getitem
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, JsonValue, SkipValidation, ValidationError

from mindstream.errors import InputError, clipped
from mindstream.json_values import JsonObject
from mindstream.models.model import ToolSpec
from mindstream.models.prompt import complaints
from mindstream.models.reply import DECODER, DEEP, MAX_DEPTH
from mindstream.models.untrusted import without_controls

STEP_ID = re.compile(r"E[1-9][0-9]{0,3}")
REF, PATH, TEXT = "$ref", "path", "$text"
SHOWN = 60
NESTED = (dict, list)
Keys: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to the evidence of the step with the id `step`.

    If the evidence is JSON, `path` has the keys and indexes that lead to a part of it; (): the whole evidence.
    """

    step: str
    path: Keys = ()

    def as_json(self) -> JsonObject:
        path: JsonObject = {PATH: list(self.path)} if self.path else {}
        return {REF: self.step, **path}

    def __str__(self) -> str:
        keys = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path)
        return f"#{self.step}{''.join(keys)}"


reference_to = lru_cache(10_000)(Reference)
"""Returns the reference to the whole evidence of a step; the argument must be a valid step id."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text with references, as pieces in order. Adjacent pieces of text are joined, and empty ones are removed."""

    pieces: tuple[str | Reference, ...]

    def __post_init__(self) -> None:
        joined: list[str | Reference] = []
        for piece in self.pieces:
            if isinstance(piece, Reference):
                joined.append(piece)
            elif joined and isinstance(last := joined[-1], str):
                joined[-1] = last + piece
            elif piece:
                joined.append(piece)
        object.__setattr__(self, "pieces", tuple(joined))

    def as_json(self) -> JsonValue:
        """Return the text as JSON: a string if the text has no reference, otherwise an object with the pieces."""
        if not any(isinstance(piece, Reference) for piece in self.pieces):
            return "".join(str(piece) for piece in self.pieces)
        return {TEXT: [piece if isinstance(piece, str) else piece.as_json() for piece in self.pieces]}

    def __str__(self) -> str:
        return "".join(str(piece) for piece in self.pieces)


def parse_part(value: JsonValue) -> Reference | Text | None:
    """Return the reference, or the text with references, that a JSON value represents; None if it is neither."""
    if not isinstance(value, dict) or not (REF in value or TEXT in value):
        return None
    if len(value) == 1 and isinstance(given := value.get(TEXT), list):
        pieces: list[str | Reference] = []
        for each in given:
            if (piece := each if isinstance(each, str) else _parse_reference(each)) is None:
                return None
            pieces.append(piece)
        return Text(tuple(pieces))
    return _parse_reference(value)


def _parse_reference(value: JsonValue) -> Reference | None:
    if not isinstance(value, dict) or not isinstance(step := value.get(REF), str) or not STEP_ID.fullmatch(step):
        return None
    if len(value) == 1:
        return reference_to(step)
    path = value.get(PATH)
    if len(value) > 2 or not isinstance(path, list):
        return None
    keys = [key for key in path if isinstance(key, str) or (isinstance(key, int) and not isinstance(key, bool))]
    return Reference(step, tuple(keys)) if len(keys) == len(path) else None


def fill(
    value: JsonValue,
    part: Callable[[Reference | Text], JsonValue],
    text: Callable[[str], JsonValue] | None = None,
) -> JsonValue:
    """Return a copy of a JSON value with other values in place of references.

    The result of `part` replaces each reference, and each text that contains references. The result of `text`, if it is
    given, replaces every other text. The results are not searched for references.
    """
    if isinstance(value, dict):
        if (found := parse_part(value)) is not None:
            return part(found)
        return {
            key: fill(each, part, text) if text or isinstance(each, NESTED) else each for key, each in value.items()
        }
    if isinstance(value, list):
        return [fill(each, part, text) for each in value]
    return text(value) if text and isinstance(value, str) else value


def find_parts(value: JsonValue, at: Keys = ()) -> Iterator[tuple[Keys, Reference | Text | None]]:
    """Yield each reference and each text with references, with the keys and indexes that lead to it.

    An object may have the key `$ref` or `$text` but be neither of the two. For such an object, yield None with its keys
    and indexes.
    """
    if isinstance(value, dict):
        if REF in value or TEXT in value:
            yield at, (found := parse_part(value))
            if found is not None:
                return
        items: Iterator[tuple[str | int, JsonValue]] = iter(value.items())
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return
    for key, each in items:
        if isinstance(each, NESTED):
            yield from find_parts(each, (*at, key))


def bind(arguments: Mapping[str, JsonValue], evidence: Mapping[str, JsonValue]) -> JsonObject:
    """Return arguments with evidence in place of references. Raise InputError if a step has no evidence, or its
    evidence has no part at a path."""
    return {name: fill(value, lambda part: insert(part, evidence)) for name, value in arguments.items()}


def insert(part: Reference | Text, evidence: Mapping[str, JsonValue]) -> JsonValue:
    """Return the evidence for a reference, or a text with evidence in place of its references.

    A reference that is a whole value is replaced by the evidence itself. A reference inside a text is replaced by the
    evidence as text; evidence with several lines is placed on separate lines.

    Raises:
        InputError: a step has no evidence, or its evidence has no part at a path.
    """
    if isinstance(part, Reference):
        return _look_up(part, evidence)
    return "".join(piece if isinstance(piece, str) else _as_piece(_look_up(piece, evidence)) for piece in part.pieces)


def _as_piece(value: JsonValue) -> str:
    """Return evidence as a piece of a text. Evidence with several lines begins and ends with a line break."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"\n{text.strip()}\n" if "\n" in text.strip() else text


def _look_up(reference: Reference, evidence: Mapping[str, JsonValue]) -> JsonValue:
    if reference.step not in evidence:
        there = ", ".join(evidence) or "none"
        raise InputError(
            f"there is no evidence of #{reference.step} yet (so far: {there}); run #{reference.step} first"
        )
    value = evidence[reference.step]
    if reference.path and isinstance(value, str):
        value = _read_json(value, reference)
    for depth, key in enumerate(reference.path):
        try:
            value = _part(value, key)
        except LookupError:
            here = Reference(reference.step, reference.path[:depth])
            raise InputError(
                f"{reference} does not exist: {here} is {_describe_value(value)}; correct the path"
            ) from None
    return value


def _part(value: JsonValue, key: str | int) -> JsonValue:
    if isinstance(value, dict) and isinstance(key, str):
        return value[key]
    if isinstance(value, list) and isinstance(key, int):
        return value[key]
    raise KeyError(key)


def _read_json(text: str, reference: Reference) -> JsonValue:
    try:
        return DECODER.decode(text.strip())  # type: ignore[no-any-return]
    except (ValueError, RecursionError):
        raise InputError(
            f"{reference} has a path, but the evidence of #{reference.step} is not JSON: {text[:SHOWN]!r}; "
            f"remove the path, or let #{reference.step} return JSON"
        ) from None


def _describe_value(value: JsonValue) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(map(repr, value))[:SHOWN] or 'nothing'}"
    return f"a list of {len(value)}" if isinstance(value, list) else json.dumps(value, ensure_ascii=False)[:SHOWN]


MARKS = {"added": "+", "removed": "-", "changed": "~", "kept": " "}


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a step between two plans. `before`: None if the step was added. `after`: None if it was removed."""

    kind: Literal["added", "removed", "changed", "kept"]
    before: PlannedStep | None
    after: PlannedStep | None

    @property
    def step(self) -> str:
        """The step's id."""
        return (self.after or self.before).id  # type: ignore[union-attr]  # a change has at least one of the two

    def __str__(self) -> str:
        """Return the change as a line; for a changed step, the line has the old and the new values."""
        if self.kind != "changed" or not self.before or not self.after:
            step = self.after or self.before
            return f"{MARKS[self.kind]} {self.step} = {step.tool}[{_show(step.arguments)}]" if step else ""
        before, after = dict(self.before), dict(self.after)
        names = (name for name in after if after[name] != before[name])
        changes = "; ".join(f"{name} {_show(before[name])} → {_show(after[name])}" for name in names)
        return f"{MARKS[self.kind]} {self.step}: {changes}"


def compare(old: Sequence[PlannedStep], new: Sequence[PlannedStep]) -> tuple[Change, ...]:
    """Return the change of each step: removed steps first, then the steps of the new plan in order."""
    before, after = {step.id: step for step in old}, {step.id for step in new}
    gone = (Change("removed", step, None) for step in old if step.id not in after)
    stays = ((before.get(step.id), step) for step in new)
    return (
        *gone,
        *(Change("added" if was is None else "kept" if was == step else "changed", was, step) for was, step in stays),
    )


def _show(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


TOOL_NAME = re.compile(r"\w[\w./:-]{0,127}")


def _checked_id(text: str) -> str:
    if not STEP_ID.fullmatch(text):
        raise ValueError(f"expected a step id from E1 to E9999, found {text[:40]!r}")
    return text


def _checked_tool(name: str) -> str:
    if not TOOL_NAME.fullmatch(name):
        raise ValueError(
            "expected a tool's name of 1 to 128 letters, digits and _./:-, which begins with a letter, a digit or _,"
            f" found {name[:40]!r}"
        )
    return name


def _checked_arguments(value: Any, depth: int = 0) -> Any:
    """Check that a value is JSON; return it without control characters and with references in their canonical form."""
    if isinstance(value, str):
        return without_controls(value)
    if isinstance(value, (*NESTED, tuple)) and depth >= MAX_DEPTH:
        raise ValueError(DEEP)
    if isinstance(value, dict):
        if (part := parse_part(value)) is not None and str(part).isprintable():
            return part.as_json()
        if not all(isinstance(key, str) for key in value):
            raise ValueError("the keys of an object must be strings")
        kept = {without_controls(key): _checked_arguments(each, depth + 1) for key, each in value.items()}
        return kept if (part := parse_part(kept)) is None else part.as_json()
    if isinstance(value, list | tuple):
        return [_checked_arguments(each, depth + 1) for each in value]
    try:
        return value if value is None else DECODER.decode(json.dumps(value, allow_nan=False))
    except TypeError as error:
        raise ValueError(str(error)) from None


StepId = Annotated[str, AfterValidator(_checked_id)]
Words = Annotated[str, AfterValidator(without_controls)]


class _Parts(NamedTuple):
    """The references in a step's arguments, found once: see the properties of `PlannedStep`."""

    by_keys: Mapping[Keys, Reference | Text]
    malformed: tuple[Keys, ...]
    references: tuple[Reference, ...]
    needs: tuple[str, ...]

    @classmethod
    def of(cls, arguments: JsonObject, after: tuple[str, ...]) -> _Parts:
        found = tuple(find_parts(arguments))
        if not found:
            return cls({}, (), (), after and tuple(dict.fromkeys(after)))
        by_keys = {at: part for at, part in found if part is not None}
        pieces = (part.pieces if isinstance(part, Text) else (part,) for part in by_keys.values())
        references = tuple(each for some in pieces for each in some if isinstance(each, Reference))
        needs = tuple(dict.fromkeys((*(each.step for each in references), *after)))
        return cls(by_keys, tuple(at for at, part in found if part is None), references, needs)


class PlannedStep(BaseModel, frozen=True, extra="forbid"):
    """A planned tool call; `arguments` may refer to other steps' evidence (see the top of this module)."""

    id: StepId
    tool: Annotated[str, AfterValidator(_checked_tool)]
    arguments: Annotated[dict[str, SkipValidation[JsonValue]], BeforeValidator(_checked_arguments)] = {}
    why: Words = ""
    after: tuple[StepId, ...] = ()

    @property
    def _parts(self) -> _Parts:
        known: _Parts | None = self.__dict__.get("_found")
        if known is None:
            known = self.__dict__["_found"] = _Parts.of(self.arguments, self.after)
        return known

    @property
    def parts(self) -> Mapping[Keys, Reference | Text]:
        """The references and the texts with references in the arguments, by the keys and indexes that lead to them."""
        return self._parts.by_keys

    @property
    def malformed(self) -> list[JsonValue]:
        """The malformed objects in the arguments (usually none).

        Such an object has the key `$ref` or `$text`, but is neither a reference nor a text with references.
        """
        arguments: Any = self.arguments
        malformed = self._parts.malformed
        return [reduce(getitem, at, arguments) for at in malformed] if malformed else []

    @property
    def references(self) -> Sequence[Reference]:
        """The references in the arguments, in their order."""
        return self._parts.references

    @property
    def needs(self) -> tuple[str, ...]:
        """The ids of the steps that this step waits for: the steps that it refers to, and the steps in `after`."""
        return self._parts.needs

    def filled(self, part: Callable[[Reference | Text], JsonValue]) -> JsonObject:
        """Return the arguments, in which results of `part` replace all references and all texts with references."""
        if not (known := self.parts):
            return dict(self.arguments)
        return {
            name: part(known[name,]) if (name,) in known else fill(value, part) if isinstance(value, NESTED) else value
            for name, value in self.arguments.items()
        }

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with the values in `update`, which are not validated."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("_found", None)  # drop the cached parts of the old arguments
        return copied

    def is_same_call(self, other: PlannedStep | None) -> bool:
        """Return whether another step has the same id and makes the same call after the same steps. Only the reasons of
        the two steps may differ."""
        return other is not None and self.model_copy(update={"why": other.why}) == other


class Plan(BaseModel, frozen=True, extra="forbid"):
    """The steps for a task, written before they are run.

    Attributes:
        foreign: whether the planner's prompt had third-party content (an exemplar). Then the arguments of every call
            count as third-party content, so a tool's name in the planner's `approve=[…]` does not allow calls that
            change the world. A person who has checked the plan may set it to False.
    """

    task: Words = ""
    steps: tuple[PlannedStep, ...] = ()
    foreign: bool = False

    # As text.

    def save(self) -> str:
        """Return the plan as JSON text for `load`."""
        return self.model_dump_json(indent=1, exclude_defaults=True)

    @classmethod
    def load(cls, text: str) -> Plan:
        """Read a saved plan.

        Raises:
            InputError: the text is not a saved plan.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise InputError(f"this is not a saved plan: {complaints(error)}") from None

    def __str__(self) -> str:
        """Return the steps as text, each with its reason: `Plan: …`, then `#E1 = tool[arguments]`."""
        return "".join(
            f"Plan: {step.why}\n#{step.id} = {step.tool}[{describe_arguments(step.arguments)}]\n" for step in self.steps
        )

    def mermaid(self) -> str:
        """Return the plan as a Mermaid flowchart."""
        return draw(self)

    def _repr_html_(self) -> str:
        from mindstream.html_tables import table

        return table(self.task or "plan", ("", "tool", "with", "after", "why"), table_rows(self))

    # Order.

    def layers(self) -> tuple[tuple[str, ...], ...]:
        """Return the step ids in layers; the steps of a layer need only steps of earlier layers.

        Needed steps that the plan does not have are ignored (`check` reports them).

        Raises:
            InputError: two steps have the same id, or steps wait for each other.
        """
        ids = [step.id for step in self.steps]
        if double := next((id for id in ids if ids.count(id) > 1), ""):
            raise InputError(f"two steps have the id {double}; rename one of them")
        layers, waiting = list[tuple[str, ...]](), {step.id: {*step.needs} for step in self.steps}
        while waiting:
            layers.append(tuple(id for id, needs in waiting.items() if not needs & waiting.keys()))
            if not layers[-1]:
                raise InputError(
                    f"{', '.join(waiting)} can never run, because steps wait for each other; remove a reference"
                    " between them"
                )
            waiting = {id: needs for id, needs in waiting.items() if id not in layers[-1]}
        return tuple(layers)

    def order(self) -> tuple[str, ...]:
        """Return the step ids in an order in which every step follows the steps that it needs. Raise InputError if two
        steps have the same id, or if steps wait for each other."""
        return tuple(id for layer in self.layers() for id in layer)

    # Lookup and editing.

    def step(self, id: str) -> PlannedStep:
        """Return a step by its id.

        Raises:
            InputError: the plan has no step of this id.
        """
        for step in self.steps:
            if step.id == id:
                return step
        there = ", ".join(step.id for step in self.steps) or "none"
        raise InputError(f"there is no step {id[:40]!r} in the plan; its steps are: {there}")

    def with_step(self, step: PlannedStep, before: str = "") -> Plan:
        """Return the plan with one more step, at the end or before another one.

        Raises:
            InputError: the plan has a step of this id already, or no step `before`.
        """
        if any(each.id == step.id for each in self.steps):
            raise InputError(f"the plan has a step {step.id} already; edit that step, or give the new one another id")
        at = self.steps.index(self.step(before)) if before else len(self.steps)
        return self.model_copy(update={"steps": (*self.steps[:at], step, *self.steps[at:])})

    def without_step(self, id: str) -> Plan:
        """Return the plan without a step; `check` reports steps that still refer to it. Raise InputError if the plan
        has no step of this id."""
        gone = self.step(id)
        return self.model_copy(update={"steps": tuple(step for step in self.steps if step is not gone)})

    def edited(self, id: str, **changes: Any) -> Plan:
        """Return the plan with changed fields of a step: `tool`, `arguments`, `why` or `after`.

        Raises:
            InputError: the plan has no such step, or the changes are invalid.
        """
        old = self.step(id)
        try:
            new = PlannedStep.model_validate({**dict(old), **changes})
        except ValidationError as error:
            raise InputError(f"this change of {id} is invalid: {complaints(error)}") from None
        return self.model_copy(update={"steps": tuple(new if step is old else step for step in self.steps)})

    def sorted(self) -> Plan:
        """Return the plan with its steps in an order in which each step follows the steps that it needs. Raises the
        same errors as `layers`."""
        return self.model_copy(update={"steps": tuple(self.step(id) for id in self.order())})

    def diff(self, other: Plan) -> tuple[Change, ...]:
        """Return the changes from this plan to another one, step by step."""
        return compare(self.steps, other.steps)


MAX_LABEL_CHARACTERS = 80
"""Maximum length of a text in a flowchart."""

MERMAID_ESCAPES = str.maketrans(
    {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "\n": " "}
)


def draw(plan: Plan) -> str:
    """Return a Mermaid flowchart of a plan: solid arrows for references, dotted ones for `after`."""
    lines = ["flowchart TD"]
    for step in plan.steps:
        why = f"<br/>{_escape(step.why)}" if step.why.strip() else ""
        lines.append(f'    {step.id}["{step.id} · {_escape(step.tool)}{why}"]')
    for step in plan.steps:
        taken = {reference.step for reference in step.references}
        lines += [f"    {need} {'-->' if need in taken else '-.->'} {step.id}" for need in step.needs]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return clipped(text, MAX_LABEL_CHARACTERS).translate(MERMAID_ESCAPES)


def outline(plan: Plan) -> str:
    """Return a plan as lines; a step is indented by the length of the longest chain of steps that it waits for."""
    depth: dict[str, int] = {}
    lines = []
    for step in plan.steps:
        depth[step.id] = 1 + max((depth[need] for need in step.needs if need in depth), default=-1)
        after = f"  ← {', '.join(step.needs)}" if step.needs else ""
        indent = "   " * depth[step.id]
        lines.append(f"{indent}{step.id} {step.tool}[{describe_arguments(step.arguments)}]{after}")
        if step.why.strip():
            lines.append(f"{indent}   {' '.join(step.why.split())}")
    return "\n".join(lines)


def table_rows(plan: Plan) -> list[tuple[str, str, str, str, str]]:
    """Return a row for each step: its id, tool, arguments, the steps that it needs, and its reason."""
    return [
        (step.id, step.tool, describe_arguments(step.arguments), ", ".join(step.needs), step.why) for step in plan.steps
    ]


def describe_arguments(arguments: Mapping[str, JsonValue]) -> str:
    """Return arguments as one line for display, with references as `#E1`. If there is only one argument, its name is
    left out."""
    shown = {name: fill(value, str) for name, value in arguments.items()}
    if len(shown) == 1:
        return " ".join(str(next(iter(shown.values()))).split())
    return " ".join(", ".join(f"{name}={value}" for name, value in shown.items()).split())


@dataclass(frozen=True, slots=True)
class Evidence:
    """The result of a planned step.

    Attributes:
        step: the step's id.
        text: the tool's result; if the step failed, the reason.
        failed: whether the step failed.
        foreign: whether the text is third-party content or based on it; no planner's prompt shows such a text.
        tool, arguments: the call, with other steps' evidence inserted into the arguments.
        tries: number of calls that were made; several if the tool failed and was retried.
        seconds: duration of the calls, including the wait while other calls of the tool or of the run take its place.
        own: whether the tool failed and the text is the model's own knowledge.
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

    def __str__(self) -> str:
        return f"{self.step} {self.tool}{' failed' * self.failed}: {self.text}"


def still_valid(old: Plan, new: Plan, evidence: Mapping[str, Evidence]) -> dict[str, Evidence]:
    """Return the evidence that stays valid when a plan changes.

    The evidence of a step stays valid if the step, and all steps that it needs directly or indirectly, make the same
    calls as before and did not fail.
    """
    before = {step.id: step for step in old.steps}
    changed = {step.id for step in new.steps if not step.is_same_call(before.get(step.id))}
    changed |= {id for id, each in evidence.items() if each.failed}
    while more := {step.id for step in new.steps if changed & set(step.needs)} - changed:
        changed |= more
    ids = {step.id for step in new.steps}
    return {id: each for id, each in evidence.items() if id in ids and id not in changed}


MOST_STEPS = 64
"""Maximum number of steps of a plan."""

LONGEST = 100_000
"""Maximum length of a saved plan, in characters."""
SHOWN_TOOLS = 12
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
    """Return all faults of a plan for these tools; () if the plan can run.

    If the plan has too many steps, the steps are not checked. Evidence is unknown before the run, so a reference is
    accepted as an argument of any type.
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
        if step.id in earlier or next(self.check_call(step), None):
            return False
        return not step.needs or not next(_check_needs(step, earlier, [*earlier, step.id], ()), None)

    def check_call(self, step: PlannedStep) -> Iterator[Fault]:
        """Yield the faults of a step's tool and arguments."""
        if (schema := self._schemas.get(step.tool)) is None:
            near = _find_near(step.tool, self._schemas)
            names = ", ".join([*self._schemas][:SHOWN_TOOLS]) or "none"
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
