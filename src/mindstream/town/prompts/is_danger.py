"""Is the condition into which somebody from outside puts a thing a danger?"""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.decide import Question
from mindstream.models.prompt import rule
from mindstream.models.questions.predicate import YesNo


class IsDanger(YesNo, Question):
    """Is a thing in this condition a danger?"""

    role: ClassVar[str] = "decider"

    thing: str
    condition: str
    dangers: tuple[str, ...] = ()
    """Conditions of which the town's file says so."""


@rule(IsDanger)
def is_named(ask: IsDanger) -> dict[str, float]:
    """Stand in: what the town's file names is a danger."""
    known = ask.condition.casefold() in {each.casefold() for each in ask.dangers}
    return {"yes": float(known), "no": float(not known)}
