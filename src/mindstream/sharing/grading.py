"""Rubrics: the criteria by which the question-answer pairs of a pool are graded, and the prompts that draft a rubric
and grade a pair by it.

A model drafts a rubric; a person edits and freezes it (Gao 2024, 3.1.2).
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from mindstream.errors import InputError, ReplyInvalid
from mindstream.frozen import Frozen
from mindstream.memory.store.record import normalised
from mindstream.models.prompt import Prompt, complaints, rule
from mindstream.sharing.guarding import find_faults

__path__: list[str] = []  # so that moved.py can redirect imports of former submodules

MAX_RUBRIC = 64_000
"""Maximum number of characters of a rubric's file."""
HEAD = """\
# A rubric. Review it, edit it, then freeze it: mindstream pool rubric NAME --freeze FILE
# The points must sum to 100. At least one criterion needs `others = true`: it asks how useful the pair is to the
# domain's other agents, not only to its writer. A pair with `threshold` points or more is admitted.
"""


class Criterion(BaseModel, frozen=True, extra="forbid"):
    """One criterion: a pair gets 0 to `points` points for it; `asks` is the question that the judge answers."""

    name: str
    points: Annotated[int, Field(ge=1, le=99)]
    asks: str
    others: bool = False
    """Whether the criterion asks how useful the pair is to the domain's other agents."""


class Rubric(BaseModel, frozen=True, extra="forbid"):
    """Criteria whose points sum to 100, and the threshold: a pair with this number of points or more is admitted."""

    domain: Annotated[str, Field(min_length=1, max_length=300)]
    threshold: Annotated[int, Field(ge=1, le=100)]
    criteria: Annotated[tuple[Criterion, ...], Field(min_length=2, max_length=20)]

    @model_validator(mode="after")
    def _check(self) -> Rubric:
        if not all(0 < len(each.name) <= 80 and 0 < len(each.asks) <= 1_000 for each in self.criteria):
            raise ValueError("a criterion needs a name of 1 to 80 characters, and `asks` of 1 to 1,000 characters")
        total = sum(each.points for each in self.criteria)
        if total != 100:
            raise ValueError(f"the points of the criteria must sum to 100; these sum to {total}")
        if len({each.name.casefold() for each in self.criteria}) < len(self.criteria):
            raise ValueError("two criteria have the same name")
        if not any(each.others for each in self.criteria):
            raise ValueError(
                "no criterion has `others = true`; at least one must rate how useful the answer is to other agents"
                " of the domain"
            )
        return self

    def text(self) -> str:
        """Return the rubric as TOML for editing."""
        lines = [HEAD, f"domain = {_quoted(self.domain)}", f"threshold = {self.threshold}"]
        for each in self.criteria:
            lines += ["", "[[criteria]]", f"name = {_quoted(each.name)}", f"points = {each.points}"]
            lines += ["others = true"] * each.others + [f"asks = {_quoted(each.asks)}"]
        return "\n".join(lines) + "\n"

    @property
    def digest(self) -> str:
        """A digest of the rubric's content, as hexadecimal text."""
        return hashlib.blake2b(self.model_dump_json().encode(), digest_size=8).hexdigest()


def read_rubric(text: str, name: str = "the rubric") -> Rubric:
    """Read a rubric's TOML.

    Raises:
        InputError: the text is not a valid rubric; the message says why.
    """
    if len(text) > MAX_RUBRIC:
        raise InputError(f"{name} has {len(text):,} characters; the maximum is {MAX_RUBRIC:,}")
    try:
        return Rubric.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not valid TOML: {error}") from None
    except ValidationError as error:
        raise InputError(f"{name}: {complaints(error)}") from None
    except RecursionError:
        raise InputError(f"{name}: values are nested too deeply") from None


def general_rubric(domain: str) -> Rubric:
    """Return criteria that apply to any domain."""
    return Rubric(
        domain=" ".join(domain.split())[:300] or "general",
        threshold=60,
        criteria=(
            Criterion(name="answers the question", points=30, asks="Does the answer do what the question asks for?"),
            Criterion(name="right", points=25, asks="Is it right, and does it keep to the form that is asked for?"),
            Criterion(name="clear", points=20, asks="Can it be understood without anything else?"),
            Criterion(
                name="use to others",
                points=25,
                others=True,
                asks="Would an agent of the domain with another task learn from it how to answer?",
            ),
        ),
    )


def _quoted(text: str) -> str:
    """Return a text on one line as a quoted TOML string (JSON escapes are valid in TOML)."""
    return json.dumps(" ".join(text.split()), ensure_ascii=False).replace("\x7f", "")


MAX_QUESTION = 2_000


class DraftedQuestion(Frozen):
    """The question that a model has written for a given answer."""

    question: Annotated[str, Field(min_length=3, max_length=MAX_QUESTION)]


class DraftQuestion(Prompt[DraftedQuestion]):
    """Write the question that a given answer belongs to."""

    role: ClassVar[str] = "scorer"
    reply_tokens: ClassVar[int] = 800
    trim_order = (("examples", "first"),)

    domain: str
    answer: str
    examples: tuple[str, ...] = ()

    def parse(self, text: str) -> DraftedQuestion:
        """Parse the question; reject it if it repeats the answer."""
        reply = super().parse(text)
        if normalised(reply.question) == normalised(self.answer):
            raise ReplyInvalid("You repeated the answer. Write the question that it answers.")
        return reply


class DraftRubric(Prompt[Rubric]):
    """Draft a rubric: a threshold, and criteria whose points sum to 100.

    One criterion asks how useful a pair is to the domain's other agents.
    """

    role: ClassVar[str] = "scorer"

    domain: str
    samples: tuple[str, ...] = ()

    trim_order = (("samples", "first"),)


@rule(DraftRubric)
def draft_general_rubric(ask: DraftRubric) -> Rubric:
    """Return criteria that apply to any domain."""
    return general_rubric(ask.domain)


BY_FORM = "graded by the form only, by rules: no model has read the content"
RULE_SHARE = 0.7
"""Share of each criterion's points that the rules give to a pair without faults in its form. It reaches most
thresholds, but is never the full score."""


class Grade(Frozen):
    """The points for one criterion, and why."""

    criterion: Annotated[str, Field(max_length=200)]
    points: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
    reason: Annotated[str, Field(max_length=1_000)]


class Grades(Frozen):
    """A grade for each criterion."""

    grades: Annotated[tuple[Grade, ...], Field(max_length=40)]
    gives_orders: bool = False
    """Whether the graded example tells its readers what to do, or what to answer to other questions."""

    @property
    def total(self) -> float:
        """The sum of all points."""
        return sum(each.points for each in self.grades)


class GradePair(Prompt[Grades]):
    """Grade a question and its answer by each criterion of a rubric."""

    role: ClassVar[str] = "scorer"

    domain: str
    criteria: tuple[Criterion, ...]
    query: str
    answer: str

    def parse(self, text: str) -> Grades:
        """Parse the grades; require each criterion exactly once, with at most its maximum points."""
        reply = super().parse(text)
        most = {each.name.casefold(): each for each in self.criteria}
        named = [each.criterion.strip().casefold() for each in reply.grades]
        if sorted(named) != sorted(most):
            wanted = ", ".join(each.name for each in self.criteria)
            raise ReplyInvalid(f"Grade each criterion once, by its name: {wanted}.")
        for each, name in zip(reply.grades, named, strict=True):
            if each.points > most[name].points:
                raise ReplyInvalid(f"{most[name].name!r} has at most {most[name].points} points, not {each.points:g}.")
        return reply


@rule(GradePair)
def grade_by_form(ask: GradePair) -> Grades:
    """Grade a pair without a model, by its form only.

    If `find_faults` finds no fault, each criterion gets RULE_SHARE of its points, and BY_FORM is given as the reason.
    Otherwise each gets 0, and the faults are given as the reason.
    """
    faults = find_faults(ask.query, ask.answer)
    share = 0.0 if faults else RULE_SHARE
    reason = "; ".join(faults) or BY_FORM
    return Grades(
        grades=tuple(Grade(criterion=each.name, points=share * each.points, reason=reason) for each in ask.criteria)
    )
