"""Does somebody who is spoken to answer?"""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.decide import Question
from mindstream.models.prompt import rule
from mindstream.models.questions.predicate import YesNo


class ShouldAnswer(YesNo, Question):
    """Would this person stop and answer?"""

    role: ClassVar[str] = "decider"

    who: str
    identity: str
    doing: str
    busy: bool = False
    """It does something about what cannot wait."""
    other: str
    said: str
    when: str
    relation: str = ""
    """As what the other is known; "" as nobody."""
    memories: tuple[str, ...] = ()
    last_talk: str = ""


@rule(ShouldAnswer)
def answer_unless_busy(ask: ShouldAnswer) -> dict[str, float]:
    """Stand in for a model: who is spoken to answers, unless something cannot wait."""
    return {"yes": float(not ask.busy), "no": float(ask.busy)}
