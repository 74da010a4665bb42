"""Is a standing order that came due worth a turn now? A decision, not a full call."""

from __future__ import annotations

from mindstream.models.decide import Question
from mindstream.models.questions.predicate import YesNo


class IsWorthTurn(YesNo, Question):
    """Should the mind work on this now? `since`: what happened since it last did."""

    order: str
    since: tuple[str, ...] = ()
    language: str = "en"
