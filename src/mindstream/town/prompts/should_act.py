"""Does something that somebody sees change what it does now?"""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.decide import Question
from mindstream.models.prompt import rule
from mindstream.models.questions.predicate import YesNo


class ShouldAct(YesNo, Question):
    """Would this person do something about what it sees, instead of going on?"""

    role: ClassVar[str] = "decider"

    who: str
    identity: str
    doing: str
    sees: str
    """Such as `the shower is leaking`."""
    danger: bool = False
    """It is a danger."""
    taken: bool = False
    """Another is at it, and there is room for no more."""
    fine: bool = False
    """The town's file says that nothing is to be done about it."""
    uses_it: bool = False
    """What it does now, or next, is done there."""
    at_it: bool = False
    """It says so otherwise: what it does may be what is to be done about it."""
    in_charge: bool = False
    """It lives or works there."""
    others: tuple[str, ...] = ()
    """Who sees to it already."""
    memories: tuple[str, ...] = ()


@rule(ShouldAct)
def act_by_charge(ask: ShouldAct) -> dict[str, float]:
    """Stand in for a model: danger always; what is wrong where one needs it or is in charge; else mostly.

    Of what is in use, or seen to by another, only who needs it makes anything.
    """
    if ask.danger:
        p = 1.0
    elif ask.fine or (not ask.uses_it and (ask.taken or ask.others)):
        p = 0.0
    else:
        p = 1.0 if ask.uses_it or ask.in_charge else 0.6
    return {"yes": p, "no": 1 - p}
