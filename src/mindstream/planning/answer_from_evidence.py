"""What is the answer, by the evidence? (Xu 2023, 3: the Solver.) It reads what strangers wrote, and calls nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, JsonValue

from mindstream.models.prompt import Prompt, rule
from mindstream.planning.arguments import Reference, Text, fill
from mindstream.planning.evidence import Evidence
from mindstream.planning.plan import PlannedStep

MISSING = re.compile(r"^\W*MISSING\b(.*)", re.DOTALL)
LONGEST = 200
SHORT = 100
"""Evidence of so many characters is shown in the calls that it fills; longer one is named there: it stands above."""


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


def show_step(step: PlannedStep, evidence: Mapping[str, Evidence]) -> Shown:
    """Return a step that has its evidence as the solver is to see it."""
    came = evidence[step.id]

    def brief(part: Reference | Text) -> JsonValue:
        pieces = (part,) if isinstance(part, Reference) else part.pieces
        return "".join(piece if isinstance(piece, str) else _brief(piece, evidence) for piece in pieces)

    values = {name: fill(value, brief) for name, value in step.arguments.items()}
    called = ", ".join(f"{name}: {value}" if len(values) > 1 else str(value) for name, value in values.items())
    text = f"No evidence: {came.text}" if came.failed else came.text
    return Shown(
        id=step.id,
        why=step.why,
        call=f"{step.tool}[{called if len(called) <= LONGEST else called[: LONGEST - 1] + '…'}]",
        text=text,
        failed=came.failed,
    )


def _brief(reference: Reference, evidence: Mapping[str, Evidence]) -> str:
    found = evidence.get(reference.step)
    fits = found and not found.failed and not reference.path and len(found.text) <= SHORT and "\n" not in found.text
    return found.text if found and fits else str(reference)


class AnswerFromEvidence(Prompt[str]):
    """Answer the task. `may_miss`: what is missing can still be looked for; `is_whole`: no step of the plan is left."""

    role: ClassVar[str] = "solver"
    reply_tokens: ClassVar[int] = 1_000

    task: str
    steps: tuple[Shown, ...]
    may_miss: bool = False
    is_whole: bool = True


def missing_steps(answer: str, ids: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the steps that an answer misses, all where it names none; None where it is an answer."""
    found = MISSING.match(answer)
    if found is None:
        return None
    named = tuple(id for id in ids if re.search(rf"\b{id}\b", found[1]))
    return named or ids


def is_bare_miss(answer: str, ids: tuple[str, ...]) -> bool:
    """Tell whether an answer says that it is missing, and nothing else."""
    found = MISSING.match(answer)
    return found is not None and all(word in ids for word in re.findall(r"\w+", found[1]))


@rule(AnswerFromEvidence)
def answer_with_last(ask: AnswerFromEvidence) -> str:
    """Give what the last step found, of a calculator's lines the last: rules plan so that it is the answer."""
    last = ask.steps[-1] if ask.steps else None
    if last is None or last.failed or not ask.is_whole:
        return f"MISSING {last.id if last else ''}".strip()
    text = last.text.strip()
    return text.splitlines()[-1] if text and last.call.startswith("calculator[") else text
