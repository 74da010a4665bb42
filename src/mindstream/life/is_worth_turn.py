"""Is a standing order that came due worth a turn now? A decision, not a full call."""

from __future__ import annotations

from collections.abc import Mapping

from mindstream.models.decide import Question
from mindstream.models.prompt import rule
from mindstream.models.questions.predicate import YesNo


class IsWorthTurn(YesNo, Question):
    """Should the mind work on this now? `since`: what happened since it last did."""

    order: str
    since: tuple[str, ...] = ()
    language: str = "en"


@rule(IsWorthTurn)
def follow_orders(ask: IsWorthTurn) -> Mapping[str, float]:  # noqa: ARG001
    """Do what was ordered: who wants it done less often says so in the order."""
    return {"yes": 0.9, "no": 0.1}
