"""What does somebody do about another who comes into sight? (Park 2023, 4.3.1)."""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.decide import Question
from mindstream.models.prompt import rule
from mindstream.town.prompts.memory import MATTERS, Memory

CONTINUE, TALK, WAIT, GO_ALONG, AVOID = "continue", "talk", "wait", "go along", "avoid"


class MeetPerson(Question):
    """What would this person do about the other now?"""

    role: ClassVar[str] = "decider"

    who: str
    identity: str
    doing: str
    next: str = ""
    """What it has planned next."""
    other: str
    other_doing: str
    when: str
    relation: str = ""
    news: tuple[Memory, ...] = ()
    """What could be told that the other has not been told."""
    memories: tuple[str, ...] = ()
    last_talk: str = ""

    def answers(self) -> tuple[str, ...]:
        return CONTINUE, TALK, WAIT, GO_ALONG, AVOID


@rule(MeetPerson)
def meet_by_acquaintance(ask: MeetPerson) -> dict[str, float]:
    """Stand in for a model: talk to whom one knows, less often twice a day; else go on."""
    p = (0.4 if ask.relation else 0.2) * (0.3 if ask.last_talk == "today" else 1.0)
    p += 0.3 * any(each.importance >= MATTERS for each in ask.news)
    return {CONTINUE: 1 - p, TALK: p, WAIT: 0.0, GO_ALONG: 0.0, AVOID: 0.0}
