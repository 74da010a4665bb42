"""Does something that somebody sees change what it does now?"""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.decide import Question
from mindstream.models.questions.predicate import YesNo


class ShouldAct(YesNo, Question):
    """Would this person do something about what it sees, instead of going on?"""

    role: ClassVar[str] = "decider"

    who: str
    identity: str
    doing: str
    sees: str
    """Such as `the shower is leaking`."""
    uses_it: bool = False
    """What it does now, or next, is done there."""
    in_charge: bool = False
    """It lives or works there."""
    others: tuple[str, ...] = ()
    """Who sees to it already."""
    memories: tuple[str, ...] = ()
