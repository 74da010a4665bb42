"""Which of these is it?"""

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
