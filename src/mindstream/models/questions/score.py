"""How much is it?"""

from __future__ import annotations

from pydantic import Field

from mindstream.models.decide import LETTERS, Question, tossed
from mindstream.models.prompt import rule


class Score(Question):
    """Which level of a scale, the lowest first, fits a text best?"""

    text: str
    question: str
    levels: tuple[str, ...] = Field(min_length=2, max_length=len(LETTERS))

    def answers(self) -> tuple[str, ...]:
        return self.levels


rule(Score)(tossed)
