"""Prompts that draft a rubric and grade a pair by it."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from mindstream.errors import ReplyInvalid
from mindstream.frozen import Frozen
from mindstream.memory.store.record import normalised
from mindstream.models.prompt import Prompt, rule
from mindstream.sharing.grading.rubric import Criterion, Rubric, general_rubric
from mindstream.sharing.guarding.answer_fit import find_faults

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
            raise ReplyInvalid("That is the answer. Write the question to it.")
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

    Each criterion gets RULE_SHARE of its points if `find_faults` finds no fault, otherwise 0. The faults, or BY_FORM,
    are the reason of every grade.
    """
    faults = find_faults(ask.query, ask.answer)
    share = 0.0 if faults else RULE_SHARE
    reason = "; ".join(faults) or BY_FORM
    return Grades(
        grades=tuple(Grade(criterion=each.name, points=share * each.points, reason=reason) for each in ask.criteria)
    )
