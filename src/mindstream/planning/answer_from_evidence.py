"""What is the answer, by the evidence? (Xu 2023, 3: the Solver.) It reads what strangers wrote, and calls nothing."""

from __future__ import annotations

import re
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from mindstream.models.prompt import Prompt, rule

MISSING = re.compile(r"^\W*MISSING\b(.*)", re.DOTALL)
LONGEST = 200


class Shown(BaseModel):
    """A step as the solver sees it: the call with what was filled in, and what came of it."""

    model_config = ConfigDict(frozen=True)

    id: str
    why: str
    call: str
    text: str
    failed: bool = False


class AnswerFromEvidence(Prompt[str]):
    """Answer the task. `may_miss`: what is missing can still be looked for."""

    role: ClassVar[str] = "solver"
    reply_tokens: ClassVar[int] = 1_000

    task: str
    steps: tuple[Shown, ...]
    may_miss: bool = False


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
    """Give what the last step found: rules plan so that it is the answer."""
    last = ask.steps[-1] if ask.steps else None
    if last is None or last.failed:
        return f"MISSING {last.id if last else ''}".strip() if ask.may_miss else _nothing(ask)
    return last.text.strip()


def _nothing(ask: AnswerFromEvidence) -> str:
    failed = "; ".join(f"{step.id} {step.call[:LONGEST]}: {step.text[:LONGEST]}" for step in ask.steps if step.failed)
    return f"No answer was found. {failed}".strip()
