"""Does somebody begin to talk to somebody?"""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.decide import Question
from mindstream.models.questions.predicate import YesNo


class ShouldTalk(YesNo, Question):
    """Would this person begin a conversation with the other now?"""

    role: ClassVar[str] = "decider"

    who: str
    identity: str
    doing: str
    other: str
    other_doing: str
    when: str
    relation: str = ""
    """As what the other is known; "" as nobody."""
    news: tuple[str, ...] = ()
    """What could be told that the other has not been told."""
    memories: tuple[str, ...] = ()
    last_talk: str = ""
