"""Prompts of planners and solvers.

Whoever plans reads nothing that strangers wrote: only which steps failed or did not hold the answer, and what kind of
thing is missing from them (see `states_of`).
So no evidence, whatever it says, can add a call to a plan (Debenedetti 2025, CaMeL).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from mindstream.errors import ToolError
from mindstream.models.model import ToolSpec
from mindstream.models.prompt import Prompt, rule
from mindstream.planning.arguments import Reference, Text, fill, find_references
from mindstream.planning.evidence import Evidence
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.tools.algebra import read_formulas, words_in


class ActOnTask(Prompt[str]):
    """Call tools, or answer; nobody stands in. `exemplars`: tasks with their thoughts, actions and observations."""

    role: ClassVar[str] = "worker"

    task: str
    exemplars: tuple[str, ...] = ()


class AnswerAlone(Prompt[str]):
    """Answer without any tool; nobody stands in. `exemplars`: solved tasks. `reasons`: think first (Wei 2022)."""

    role: ClassVar[str] = "worker"
    reply_tokens: ClassVar[int] = 1_000

    task: str
    exemplars: tuple[str, ...] = ()
    reasons: bool = False


MISSING = re.compile(
    r"(?:^|(?<=[.!?。！？]))[^\w\n]{0,8}MISSING\b(?P<steps>(?:[^\w\n]{0,4}\bE\d{1,4}\b(?:,? and\b)?)*)(?P<what>.*)$",
    re.MULTILINE,
)
Kind: TypeAlias = Literal["person", "place", "date", "amount", "text"]
"""What may be missing: a value of a schema, so that no order can stand in it (Debenedetti 2025, CaMeL)."""
NOT_RUN = "Not run yet."
OWN = "(Not found; known without looking:) "
MAX_INLINE_EVIDENCE = 200
MAX_INLINE_LINE = 60
"""Evidence of so many characters is shown in the calls that it fills, and lines of so many again where they were found
twice; longer ones stand above."""
AROUND = " *_`.:：—–-"
NAMING = ("", *":：—–-(")
"""What stands behind MISSING where it is no word of the answer."""
QUOTED = "No model was there to answer; what was found is quoted:"
"""The first line of what is no answer, but passages as they stand."""


@dataclass(frozen=True, slots=True)
class SolverAnswer:
    """What a solver said: `text` answers the task or a part of it.

    Attributes:
        missing: what is missing from it; "" where the whole task is answered.
        steps: the steps that it is missing from.
        kinds: of each of them, what kind of thing; all of it that whoever mends the plan is told.
    """

    text: str = ""
    missing: str = ""
    steps: tuple[str, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)


class Shown(BaseModel):
    """A step as the solver sees it: the call with what was filled in, and what came of it."""

    model_config = ConfigDict(frozen=True)

    id: str
    why: str
    call: str
    text: str
    failed: bool = False

    def __str__(self) -> str:
        return "\n".join(line for line in (f"{self.id}: {self.why}", self.call, self.text) if line)


def show_steps(plan: Plan, evidence: Mapping[str, Evidence], concluding: Collection[str] = ()) -> tuple[Shown, ...]:
    """Return the steps as the solver is to see them; a line that was found twice stands in the first of them.

    `concluding`: tools whose results are read instead of what they were handed.
    """
    shown, holders = list[Shown](), dict[str, str]()
    drawn = {
        reference.step: step.id
        for step in plan.steps
        if step.tool in concluding and step.id in evidence and not evidence[step.id].failed
        for reference in find_references(step.arguments)
    }
    for step in map(partial(_show_step, evidence=evidence), plan.steps):
        if step.id in drawn and not step.failed and len(step.text) > MAX_INLINE_EVIDENCE:
            step = step.model_copy(update={"text": f"(read for {drawn[step.id]})"})
        elif not step.failed:
            text, again = _new_lines(step.text, holders)
            more = f"(more of it stands in {', '.join(again)})" if again else ""
            for line in _keys(step.text):
                holders.setdefault(line, step.id)
            step = step.model_copy(update={"text": "\n\n".join(filter(None, (text, more)))})
        shown.append(step)
    return tuple(shown)


def _new_lines(text: str, holders: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the lines of a text that stand nowhere yet, below what heads them, and the steps that hold the others."""
    parts, again = list[str](), set[str]()
    for part in text.split("\n\n"):
        head, *below = part.splitlines() or [""]
        held = {line: holders.get(line) or holders.get(f"{head}\n{line}") for line in below or [head]}
        again |= {step for step in held.values() if step}
        if new := [line for line, step in held.items() if not step]:
            parts.append("\n".join([head, *new] if below else new))
    return "\n\n".join(parts), sorted(again)


def _keys(text: str) -> Iterator[str]:
    """Yield what is told again of a text: long lines wherever they stand, short ones below the same head."""
    for part in text.split("\n\n"):
        head, *below = part.splitlines() or [""]
        yield from (line for line in below or [head] if len(line) > MAX_INLINE_LINE)
        yield from (f"{head}\n{line}" for line in below)


def _show_step(step: PlannedStep, evidence: Mapping[str, Evidence]) -> Shown:
    came = evidence.get(step.id) or Evidence(step.id, "", failed=True)

    def brief(part: Reference | Text) -> JsonValue:
        pieces = (part,) if isinstance(part, Reference) else part.pieces
        return "".join(piece if isinstance(piece, str) else _brief(piece, evidence) for piece in pieces)

    values = {name: fill(value, brief) for name, value in step.arguments.items()}
    called = ", ".join(f"{name}: {value}" if len(values) > 1 else str(value) for name, value in values.items())
    failure = f"No evidence: {came.text}" if step.id in evidence else NOT_RUN
    return Shown(
        id=step.id,
        why=step.why,
        call=f"{step.tool}[{_clip(called)}]",
        text=failure if came.failed else OWN * came.own + came.text,
        failed=came.failed,
    )


def _clip(text: str) -> str:
    return text if len(text) <= MAX_INLINE_EVIDENCE else text[: MAX_INLINE_EVIDENCE - 1] + "…"


def _brief(reference: Reference, evidence: Mapping[str, Evidence]) -> str:
    found = evidence.get(reference.step)
    fits = (
        found
        and not found.failed
        and not reference.path
        and len(found.text) <= MAX_INLINE_LINE
        and "\n" not in found.text
    )
    return found.text if found and fits else str(reference)


class AnswerFromEvidence(Prompt[str]):
    """Answer the task, or the part of it that the evidence holds; `read_answer` reads what is missing."""

    role: ClassVar[str] = "solver"
    reply_tokens: ClassVar[int] = 1_000

    task: str
    steps: tuple[Shown, ...]


def read_answer(words: str, plan: Plan) -> SolverAnswer:
    """Read the answer, and what is said to be MISSING from it; steps that are not named are all of them."""
    if words.startswith(QUOTED):
        return SolverAnswer(words, "an answer: no model was there", tuple(step.id for step in plan.steps))
    found = [mark for mark in MISSING.finditer(words) if _names_a_part(mark)]
    if not found:
        return SolverAnswer(words)
    text = MISSING.sub(lambda mark: "" if _names_a_part(mark) else mark[0], words).strip()
    whys = {step.id: step.why.rstrip(".。") or step.id for step in plan.steps}
    kinds, said = dict[str, Kind](), list[str]()
    for mark in found:
        kind, what = _read_what(mark["what"])
        said += [what] if what else []
        kinds |= dict.fromkeys(re.findall(r"E\d+", mark["steps"]), kind) if kind else {}
    named = re.findall(r"E\d+", " ".join(mark["steps"] for mark in found))
    steps = tuple(id for id in whys if id in named) or tuple(whys)
    return SolverAnswer(text, "; ".join(said or [whys[id] for id in steps]) or "the answer", steps, kinds)


def _names_a_part(mark: re.Match[str]) -> bool:
    return bool(mark["steps"]) or mark["what"].lstrip(" *_`.")[:1] in NAMING


def _read_what(words: str) -> tuple[Kind | None, str]:
    """Read `amount: the length` as the kind of what is missing, and what it is."""
    first, colon, rest = words.strip(AROUND).partition(":")
    kind = next((kind for kind in get_args(Kind) if colon and kind == first.strip(AROUND).lower()), None)
    return kind, (rest if kind else words).strip(AROUND)


@rule(AnswerFromEvidence)
def quote_what_was_found(ask: AnswerFromEvidence) -> str:
    """Stand in: what a calculator gave last is the answer; of anything else the passages are quoted, saying so."""
    last = ask.steps[-1] if ask.steps else None
    if last and not last.failed and last.call.startswith("calculator["):
        return last.text.strip().splitlines()[-1]
    found = [step.text.strip() for step in ask.steps if not step.failed]
    return "\n\n".join((QUOTED, *found)) if found else f"MISSING {last.id if last else ''}".strip()


class OwnKnowledge(BaseModel):
    """What a model knows itself: `text` is "" where that is nothing."""

    model_config = ConfigDict(frozen=True)

    text: str = Field("", max_length=2_000)


class KnowInstead(Prompt[OwnKnowledge]):
    """Say what you know of it; nobody stands in."""

    role: ClassVar[str] = "solver"
    reply_tokens: ClassVar[int] = 500

    why: str
    call: str


MAX_TOOL_DESCRIPTION = 600
"""So much is said of a tool, in characters."""
NO_LIMIT = 100_000
"""A greater maximum keeps nobody from anything."""
SIGNS = str.maketrans(dict.fromkeys("[]［］【】#＃", " "))
"""What means something in a plan's own form."""


class MakePlan(Prompt[str]):
    """Write the plan, in the form `Plan: …` and `#E1 = Tool[input]`.

    `exemplars`: tasks with their plans, in the same form. `known`: what is known already that the plan can rest on.
    """

    role: ClassVar[str] = "planner"
    reply_tokens: ClassVar[int] = 2_000

    task: str
    tools: tuple[str, ...]
    """A line each, by `describe`."""
    exemplars: tuple[str, ...] = ()
    known: str = ""


def describe(spec: ToolSpec) -> str:
    """Say in a line how a tool is called and what it does: `Search[query=…, count?=3 (max 10)]: …`."""
    required = spec.parameters.get("required", [])
    given = {name: _bounds(schema) for name, schema in spec.parameters.get("properties", {}).items()}
    words = " ".join(spec.description.split("\n\n")[0].split())
    names = [f"{name}{'' if name in required else '?'}={bounds or '…'}" for name, bounds in given.items()]
    shown = next(iter(given)) if len(given) == 1 and not any(given.values()) else ", ".join(names)
    if len(words) > MAX_TOOL_DESCRIPTION:
        words = words[: MAX_TOOL_DESCRIPTION - 1] + "…"
    return f"{spec.name}[{shown}]: {words}"


def _bounds(schema: object) -> str:
    """Say which number an argument has where it is not given, and the greatest that it may have."""
    schemas = [schema, *(schema.get("anyOf") or ())] if isinstance(schema, dict) else []
    default, most = (
        next((each[key] for each in schemas if isinstance(each, dict) and type(each.get(key)) in (int, float)), None)
        for key in ("default", "maximum")
    )
    limit = f" (max {most})" if most is not None and most <= NO_LIMIT else ""
    return f"{'…' if default is None else default}{limit}" if limit or default is not None else ""


@rule(MakePlan)
def calculate_or_look_up(ask: MakePlan) -> str:
    """Stand in: a formula is calculated, and anything else looked up as it stands, by the first tool for a `query`."""
    takes = dict(line.split("[", 1) for line in ask.tools if "[" in line)
    if _is_formula(ask.task):
        lacks = "" if "calculator" in takes else "That is a formula, and the tool calculator is not there."
        return lacks or f"#E1 = calculator[{'; '.join(ask.task.splitlines())}]"
    search = next((name for name, arguments in takes.items() if arguments.startswith("query")), "")
    if not search:
        return (
            "Without a model a formula is calculated, as 17.5% of 2480 + 12, and the best passages are quoted where a"
            " tool searches (documents:DIR, recall, wikipedia or web)."
        )
    query = json.dumps({"query": " ".join(ask.task.translate(SIGNS).split())}, ensure_ascii=False)
    return f"Plan: Look it up.\n#E1 = {search}[{query}]"


def _is_formula(task: str) -> bool:
    """Tell whether a task is something to work out, and no word stands in it but an equation's unknowns."""
    try:
        formulas = read_formulas(task)
    except ToolError:
        return False
    sides = [side for formula in formulas for side in formula]
    is_equation = len(sides) > len(formulas)
    return is_equation or not (any(map(words_in, sides)) or all(isinstance(side, ast.Constant) for side in sides))


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
