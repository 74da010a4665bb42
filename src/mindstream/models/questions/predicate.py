"""Is this so?"""

from __future__ import annotations

from mindstream.models.decide import Question, tossed
from mindstream.models.prompt import rule

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
