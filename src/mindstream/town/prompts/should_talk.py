"""Does somebody begin to talk to somebody?"""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.decide import Question
from mindstream.models.prompt import rule
from mindstream.models.questions.predicate import YesNo
from mindstream.town.prompts.memory import MATTERS, Memory


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
    news: tuple[Memory, ...] = ()
    """What could be told that the other has not been told."""
    memories: tuple[str, ...] = ()
    last_talk: str = ""


@rule(ShouldTalk)
def talk_by_acquaintance(ask: ShouldTalk) -> dict[str, float]:
    """Stand in for a model: to whom one knows, less often twice a day, more often with something that matters."""
    p = (0.4 if ask.relation else 0.2) * (0.3 if ask.last_talk == "today" else 1.0)
    p += 0.3 * any(each.importance >= MATTERS for each in ask.news)
    return {"yes": p, "no": 1 - p}
