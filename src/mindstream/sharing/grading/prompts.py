"""Prompts that draft a rubric and grade a pair by it."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.errors import ReplyInvalid
from mindstream.memory.store.record import normalised
from mindstream.models.prompt import Prompt, rule
from mindstream.sharing.grading.rubric import Criterion, Rubric, general_rubric
from mindstream.sharing.guarding.answer_fit import find_faults

MAX_QUESTION = 2_000


class DraftedQuestion(BaseModel):
    """The question to an answer."""

    model_config = ConfigDict(frozen=True)

    question: Annotated[str, Field(min_length=3, max_length=MAX_QUESTION)]


class DraftQuestion(Prompt[DraftedQuestion]):
    """Write the question to an answer."""

    role: ClassVar[str] = "scorer"
    reply_tokens: ClassVar[int] = 800
    trim_order = (("examples", "first"),)

    domain: str
    answer: str
    examples: tuple[str, ...] = ()

    def parse(self, text: str) -> DraftedQuestion:
        """Read the question; it must differ from the answer."""
        reply = super().parse(text)
        if normalised(reply.question) == normalised(self.answer):
            raise ReplyInvalid("That is the answer. Write the question to it.")
        return reply


class DraftRubric(Prompt[Rubric]):
    """Draft criteria that sum to 100, one of them the use to the domain's other agents, and a threshold."""

    role: ClassVar[str] = "scorer"

    domain: str
    samples: tuple[str, ...] = ()

    trim_order = (("samples", "first"),)


@rule(DraftRubric)
def draft_general_rubric(ask: DraftRubric) -> Rubric:
    """Return criteria that apply to any domain."""
    return general_rubric(ask.domain)


BY_FORM = "rules checked the form only: no model has read the content"
RULE_SHARE = 0.7
"""Share of the points that the rules give to a pair of sound form: enough for most thresholds, but never all."""


class Grade(BaseModel):
    """The points for one criterion, and why."""

    model_config = ConfigDict(frozen=True)

    criterion: Annotated[str, Field(max_length=200)]
    points: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
    reason: Annotated[str, Field(max_length=1_000)]


class Grades(BaseModel):
    """A grade for each criterion."""

    model_config = ConfigDict(frozen=True)

    grades: Annotated[tuple[Grade, ...], Field(max_length=40)]
    gives_orders: bool = False
    """It tells whoever learns from it what to do, or what to answer to other questions."""

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
        """Read the grades: each criterion once, none above its maximum."""
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
    """Give RULE_SHARE of each criterion's points to a pair of sound form, else none; the reason says so."""
    faults = find_faults(ask.query, ask.answer)
    share = 0.0 if faults else RULE_SHARE
    reason = "; ".join(faults) or BY_FORM
    return Grades(
        grades=tuple(Grade(criterion=each.name, points=share * each.points, reason=reason) for each in ask.criteria)
    )
