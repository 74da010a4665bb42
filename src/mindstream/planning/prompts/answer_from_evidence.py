"""What is the answer, by the evidence? (Xu 2023, 3: the Solver.) It reads what strangers wrote, and calls nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, JsonValue

from mindstream.models.prompt import Prompt, rule
from mindstream.planning.arguments import Reference, Text, fill, find_references
from mindstream.planning.evidence import Evidence
from mindstream.planning.plan import Plan, PlannedStep

MISSING = re.compile(
    r"(?:^|(?<=[.!?。！？]))[^\w\n]{0,8}MISSING\b(?P<steps>(?:[^\w\n]{0,4}\bE\d{1,4}\b(?:,? and\b)?)*)(?P<what>.*)$",
    re.MULTILINE,
)
Kind: TypeAlias = Literal["person", "place", "date", "amount", "text"]
"""What may be missing: a value of a schema, so that no order can stand in it (Debenedetti 2025, CaMeL)."""
NOT_RUN = "Not run yet."
OWN = "(Not found; known without looking:) "
LONGEST = 200
SHORT = 60
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
        if step.id in drawn and not step.failed and len(step.text) > LONGEST:
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
        yield from (line for line in below or [head] if len(line) > SHORT)
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
        call=f"{step.tool}[{called if len(called) <= LONGEST else called[: LONGEST - 1] + '…'}]",
        text=failure if came.failed else OWN * came.own + came.text,
        failed=came.failed,
    )


def _brief(reference: Reference, evidence: Mapping[str, Evidence]) -> str:
    found = evidence.get(reference.step)
    fits = found and not found.failed and not reference.path and len(found.text) <= SHORT and "\n" not in found.text
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
