"""Prompts of planners and solvers.

When a plan is revised, the prompt contains no third-party content. If the evidence of a step is such content, the
prompt says only whether the step failed or lacks the answer, and which kind of value is missing. The solver's
description of the missing part is then reduced to words of the task and the plan (see `states_of`, `describe_missing`).
So third-party evidence cannot add a call to a plan (Debenedetti 2025, CaMeL).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias, get_args

from pydantic import Field, JsonValue

from mindstream.errors import ToolError, clipped
from mindstream.frozen import Frozen
from mindstream.models.model import ToolSpec
from mindstream.models.prompt import Prompt, rule
from mindstream.planning.plan import Evidence, Plan, PlannedStep, Reference, Text
from mindstream.tools.calculator import read_formulas, words_in


class ActOnTask(Prompt[str]):
    """Call tools, or answer (ReAct). No rule replaces the model.

    Attributes:
        exemplars: solved tasks with their thoughts, actions and observations. Exemplars from a pool include lessons.
        calls: maximum number of calls.
        calls_per_reply: maximum number of calls in one reply.
        replies: maximum number of replies with calls.
    """

    role: ClassVar[str] = "worker"

    task: str
    exemplars: tuple[str, ...] = ()
    calls: int = 24
    calls_per_reply: int = 8
    replies: int = 11


class AnswerAlone(Prompt[str]):
    """Answer without tools. No rule replaces the model.

    Attributes:
        exemplars: solved tasks. Exemplars from a pool include lessons.
        reasons: whether to think step by step first (Wei 2022).
    """

    role: ClassVar[str] = "worker"
    reply_tokens: ClassVar[int] = 1_000

    task: str
    exemplars: tuple[str, ...] = ()
    reasons: bool = False


MISSING = re.compile(
    r"(?:^|(?<=[.!?。！？]))[^\w\n]{0,8}MISSING\b(?P<steps>(?:[^\w\n]{0,4}\bE\d{1,4}\b(?:,? and\b)?)*)(?P<what>.*)$",
    re.MULTILINE,
)
Kind: TypeAlias = Literal["person", "place", "date", "amount", "text", "absent"]
"""The kind of a missing value; `absent`: the value does not exist, so no search can find it. A kind comes from this
fixed list, so it cannot contain an instruction (Debenedetti 2025, CaMeL)."""
NOT_RUN = "Not run yet."
OWN = "(Not found; known without looking:) "
MAX_CALL, MAX_SOURCE = 200, 1_000
"""Maximum number of characters in the solver's prompt. MAX_CALL: of a call. MAX_SOURCE: of evidence that is shown
although a concluding tool (see `show_steps`) has read it."""
MAX_INLINE_LINE = 60
"""Maximum number of characters of evidence that replaces a reference in a call, in the solver's prompt. Also: a line
with more characters that several steps found is shown only once."""
AROUND = " *_`.:：—–-"
NAMING = ("", *":：—–-(")
"""Characters that can follow the word MISSING where it marks a missing part. Before others, it is an ordinary word."""
QUOTED = "No model was there to answer; what was found is quoted:"
"""The first line of an answer that was given without a model and only quotes evidence."""


@dataclass(frozen=True, slots=True)
class SolverAnswer:
    """The solver's answer.

    Attributes:
        text: the answer to the task or to a part of it.
        missing: a description of the missing part; "": nothing is missing.
        steps: ids of the steps whose evidence lacks the missing part.
        kinds: the kind of value that each step in `steps` lacks.
        absent: whether all missing parts are of the kind `absent`. Such parts do not exist, so a revised plan would not
            help.
    """

    text: str = ""
    missing: str = ""
    steps: tuple[str, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    absent: bool = False


class Shown(Frozen):
    """A step as the solver's prompt shows it: its reason, its call with short evidence inserted, and its result."""

    id: str
    why: str
    call: str
    text: str
    failed: bool = False
    shows_call: bool = True
    """Whether the call of a step that did not fail is shown. It is left out if the reason is enough: no other step has
    the same reason, and the call contains no evidence."""

    def __str__(self) -> str:
        call = self.call if self.shows_call or self.failed else ""
        return "\n".join(line for line in (f"{self.id}: {self.why}", call, self.text) if line)


def show_steps(plan: Plan, evidence: Mapping[str, Evidence], concluding: Collection[str] = ()) -> tuple[Shown, ...]:
    """Return the steps for the solver's prompt.

    If several steps found the same long line, or the same line below the same heading, only the first step shows it.

    Args:
        concluding: names of tools whose results are based on their arguments only. Long evidence that such a tool has
            read is left out: the prompt shows the tool's result.
    """
    shown, holders = list[Shown](), dict[str, str]()
    drawn = {
        reference.step: step.id
        for step in plan.steps
        if step.tool in concluding and step.id in evidence and not evidence[step.id].failed
        for reference in step.references
    }
    reasons = Counter(step.why for step in plan.steps)
    clear = {step.id for step in plan.steps if step.why and reasons[step.why] == 1 and not step.references}
    for step in (_show_step(each, evidence, shows_call=each.id not in clear) for each in plan.steps):
        if step.id in drawn and not step.failed and len(step.text) > MAX_SOURCE:
            step = step.model_copy(update={"text": f"(read for {drawn[step.id]})"})
        elif not step.failed and ("\n" in step.text or len(step.text) > MAX_INLINE_LINE):
            text = _new_lines(step.id, step.text, holders)
            if text != step.text:
                step = step.model_copy(update={"text": text})
        shown.append(step)
    return tuple(shown)


def _new_lines(id: str, text: str, holders: dict[str, str]) -> str:
    """Return the lines of a step's text that no earlier step shows. A last line names the steps that show the others.

    Lines stay below their headings.

    Args:
        holders: the first step that shows a line, by line. Keys are long lines, and lines below a heading together with
            the heading. The lines of this step are added.
    """
    parts, again, keys = list[str](), set[str](), list[str]()
    for part in text.split("\n\n"):
        head, *below = part.splitlines() or [""]
        held = {line: holders.get(line) or holders.get(f"{head}\n{line}") for line in below or [head]}
        again |= {step for step in held.values() if step}
        if new := [line for line, step in held.items() if not step]:
            parts.append("\n".join([head, *new] if below else new))
        keys += [line for line in below or [head] if len(line) > MAX_INLINE_LINE]
        keys += [f"{head}\n{line}" for line in below]
    for key in keys:
        holders.setdefault(key, id)
    if again:
        parts.append(f"(the rest stands in {', '.join(sorted(again))})")
    return "\n\n".join(parts)


def _show_step(step: PlannedStep, evidence: Mapping[str, Evidence], *, shows_call: bool) -> Shown:
    came = evidence.get(step.id) or Evidence(step.id, "", failed=True)

    def brief(part: Reference | Text) -> JsonValue:
        pieces = (part,) if isinstance(part, Reference) else part.pieces
        return "".join(piece if isinstance(piece, str) else _brief(piece, evidence) for piece in pieces)

    values = step.filled(brief)
    called = ", ".join(f"{name}: {value}" if len(values) > 1 else str(value) for name, value in values.items())
    failure = f"No evidence: {came.text}" if step.id in evidence else NOT_RUN
    return Shown(
        id=step.id,
        why=step.why,
        call=f"{step.tool}[{clipped(called, MAX_CALL)}]",
        text=failure if came.failed else OWN * came.own + came.text,
        failed=came.failed,
        shows_call=shows_call,
    )


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
    """Answer the task, or the part that the evidence covers; `read_answer` parses the reply."""

    role: ClassVar[str] = "solver"
    reply_tokens: ClassVar[int] = 1_000

    task: str
    steps: tuple[Shown, ...]
    lessons: str = ""
    """Lessons of a pool (sharing), as one text."""


def read_answer(words: str, plan: Plan) -> SolverAnswer:
    """Parse an answer and its MISSING marks. A mark names a missing part and the steps that should have found the part.

    If no mark names a step, the parts count as missing in the evidence of every step.
    """
    if words.startswith(QUOTED):
        return SolverAnswer(words, "an answer: no model was there", tuple(step.id for step in plan.steps))
    found = [mark for mark in MISSING.finditer(words) if _names_a_part(mark)]
    if not found:
        return SolverAnswer(words)
    text = MISSING.sub(lambda mark: "" if _names_a_part(mark) else mark[0], words).strip()
    whys = {step.id: step.why.rstrip(".。") or step.id for step in plan.steps}
    kinds, said, each_kind = dict[str, Kind](), list[str](), set[Kind | None]()
    for mark in found:
        kind, what = _read_what(mark["what"])
        each_kind.add(kind)
        said += [what] if what else []
        kinds |= dict.fromkeys(re.findall(r"E\d+", mark["steps"]), kind) if kind else {}
    named = re.findall(r"E\d+", " ".join(mark["steps"] for mark in found))
    steps = tuple(id for id in whys if id in named) or tuple(whys)
    missing = "; ".join(said or [whys[id] for id in steps]) or "the answer"
    return SolverAnswer(text, missing, steps, kinds, each_kind == {"absent"})


def _names_a_part(mark: re.Match[str]) -> bool:
    return bool(mark["steps"]) or mark["what"].lstrip(" *_`.")[:1] in NAMING


def _read_what(words: str) -> tuple[Kind | None, str]:
    """Read `amount: the length` as the kind and the description of a missing value; kind None: the words name none."""
    first, colon, rest = words.strip(AROUND).partition(":")
    kind = next((kind for kind in get_args(Kind) if colon and kind == first.strip(AROUND).lower()), None)
    return kind, (rest if kind else words).strip(AROUND)


@rule(AnswerFromEvidence)
def quote_what_was_found(ask: AnswerFromEvidence) -> str:
    """Answer without a model.

    If the last step is a calculation, its result is the answer. Otherwise all evidence is quoted; without evidence, the
    last step is named as missing.
    """
    last = ask.steps[-1] if ask.steps else None
    if last and not last.failed and last.call.startswith("calculator["):
        return last.text.strip().splitlines()[-1]
    found = [step.text.strip() for step in ask.steps if not step.failed]
    return "\n\n".join((QUOTED, *found)) if found else f"MISSING {last.id if last else ''}".strip()


class OwnKnowledge(Frozen):
    """A model's own knowledge; `text` is "" if the model knows nothing about the question."""

    text: str = Field("", max_length=2_000)


class KnowInstead(Prompt[OwnKnowledge]):
    """State your own knowledge in place of a failed step's evidence. No rule replaces the model."""

    role: ClassVar[str] = "solver"
    reply_tokens: ClassVar[int] = 500

    why: str
    call: str


MAX_TOOL_DESCRIPTION = 600
"""Maximum number of characters of a tool's description that the planner is shown."""
NO_LIMIT = 100_000
"""If the maximum of a tool's argument is above this value, the planner is not shown the maximum."""
SIGNS = str.maketrans(dict.fromkeys("[]［］【】#＃", " "))
"""Characters that have a meaning in the plan format; they are replaced by spaces."""


class MakePlan(Prompt[str]):
    """Write the plan, in the form `Plan: …` and `#E1 = Tool[input]`.

    Attributes:
        tools: one line per tool, written by `describe`.
        exemplars: tasks with their plans, in the same format; from a pool, lessons, too.
        known: knowledge that the plan can use.
    """

    role: ClassVar[str] = "planner"
    reply_tokens: ClassVar[int] = 2_000

    task: str
    tools: tuple[str, ...]
    """One line per tool, written by `describe`."""
    exemplars: tuple[str, ...] = ()
    known: str = ""


def describe(spec: ToolSpec) -> str:
    """Return a line with a tool's arguments and purpose: `Search[query=…, count?=3 (max 10)]: …`."""
    required = spec.parameters.get("required", [])
    given = {name: _bounds(schema) for name, schema in spec.arguments.items()}
    words = " ".join(spec.description.split("\n\n")[0].split())
    names = [f"{name}{'' if name in required else '?'}={bounds or '…'}" for name, bounds in given.items()]
    shown = next(iter(given)) if len(given) == 1 and not any(given.values()) else ", ".join(names)
    return f"{spec.name}[{shown}]: {clipped(words, MAX_TOOL_DESCRIPTION)}"


def _bounds(schema: object) -> str:
    """Return the numeric default and maximum of an argument as text, such as `5 (max 20)`; "" if it has neither.

    A maximum above NO_LIMIT is left out.
    """
    schemas = [schema, *(schema.get("anyOf") or ())] if isinstance(schema, dict) else []
    default, most = (
        next((each[key] for each in schemas if isinstance(each, dict) and type(each.get(key)) in (int, float)), None)
        for key in ("default", "maximum")
    )
    limit = f" (max {most})" if most is not None and most <= NO_LIMIT else ""
    return f"{'…' if default is None else default}{limit}" if limit or default is not None else ""


@rule(MakePlan)
def calculate_or_look_up(ask: MakePlan) -> str:
    """Plan without a model: calculate a formula, or look up any other task with each search tool.

    A search tool is a tool whose first argument is `query`. If the needed tool is missing, the reply says so and has no
    plan.
    """
    takes = dict(line.split("[", 1) for line in ask.tools if "[" in line)
    if _is_formula(ask.task):
        lacks = "" if "calculator" in takes else "The task is a formula, but the tool `calculator` is not available."
        return lacks or f"#E1 = calculator[{'; '.join(ask.task.splitlines())}]"
    searches = [name for name, arguments in takes.items() if arguments.startswith("query")]
    if not searches:
        return (
            "No model is configured. Without one, only formulas such as 17.5% of 2480 + 12 (signs, not words)"
            " can be calculated, and passages can be quoted if there is a search tool (documents:DIR, recall,"
            " wikipedia or web)."
        )
    query = json.dumps({"query": " ".join(ask.task.translate(SIGNS).split())}, ensure_ascii=False)
    return "\n".join(f"Plan: Look it up.\n#E{n} = {search}[{query}]" for n, search in enumerate(searches, 1))


def _is_formula(task: str) -> bool:
    """Return whether a task is a formula: an equation, or expressions that contain no words and are not all just
    numbers."""
    try:
        formulas = read_formulas(task)
    except ToolError:
        return False
    sides = [side for formula in formulas for side in formula]
    is_equation = len(sides) > len(formulas)
    return is_equation or not (any(map(words_in, sides)) or all(isinstance(side, str) for side in sides))


SHOWN = 300
"""Maximum number of characters of a step's evidence that the replanner is shown."""


class MendPlan(Prompt[str]):
    """Revise a plan: write the new and changed steps."""

    role: ClassVar[str] = "replanner"
    reply_tokens: ClassVar[int] = 2_000

    task: str
    tools: tuple[str, ...]
    plan: str
    states: str
    lacks: str = ""
    """The solver's description of the evidence that is missing (see `describe_missing`)."""


MAX_LACKS = 300
"""Maximum number of characters of the solver's description of what is missing."""


def describe_missing(missing: str, trusted: str, evidence: Mapping[str, Evidence]) -> str:
    """Return the solver's description of what is missing, for the replanner.

    If any evidence is third-party content, only words that also occur in `trusted` (the task and the plan) are kept.
    Other words could come from an instruction that the solver has read.
    """
    text = " ".join(missing.split())[:MAX_LACKS]
    if not any(each.foreign for each in evidence.values()):
        return text
    known, folded = {word.casefold() for word in WORDS.findall(trusted)}, trusted.casefold()

    def is_known(word: str) -> bool:
        return word.casefold() in (known if word.isascii() else folded)

    kept = WORDS.sub(lambda word: word[0] if is_known(word[0]) else "…", text)
    return kept if WORDS.search(kept) else ""


WORDS = re.compile(r"\w+")


def states_of(
    plan: Plan, evidence: Mapping[str, Evidence], insufficient: Collection[str], kinds: Mapping[str, Kind]
) -> str:
    """Return a line per step with its state, for the replanner.

    Evidence that is third-party content is not quoted. The step's line then has only these facts: whether the step
    failed, the length of the evidence, and the kind of value that the evidence lacks.
    """
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
    """Revise without a model: change nothing, since rules cannot find another way to solve the task."""
    return "NOTHING"
