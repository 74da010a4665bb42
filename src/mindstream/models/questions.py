"""Questions with typed answers: yes or no, one of several, a score."""

from __future__ import annotations

from pydantic import Field

from mindstream.models.decide import LETTERS, Question, tossed
from mindstream.models.prompt import rule


class Choice(Question):
    """Which of several answers fits a text best?"""

    text: str
    question: str
    options: tuple[str, ...] = Field(min_length=2, max_length=len(LETTERS))

    def answers(self) -> tuple[str, ...]:
        return self.options


rule(Choice)(tossed)


YES_NO = ("yes", "no")


class YesNo:
    """What makes a question one of yes or no: `class IsUrgent(YesNo, Question)`."""

    def answers(self) -> tuple[str, ...]:
        return YES_NO

    def marks(self) -> tuple[str, ...]:
        return YES_NO


class Predicate(YesNo, Question):
    """Is a statement about some text true?"""

    text: str
    question: str


rule(Predicate)(tossed)


class Score(Question):
    """Which level of a scale, the lowest first, fits a text best?"""

    text: str
    question: str
    levels: tuple[str, ...] = Field(min_length=2, max_length=len(LETTERS))

    def answers(self) -> tuple[str, ...]:
        return self.levels


rule(Score)(tossed)
