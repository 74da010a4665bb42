"""Whether to talk, and whether to do something, without a model."""

from __future__ import annotations

from mindstream.models.prompt import rule
from mindstream.town.prompts.should_act import ShouldAct
from mindstream.town.prompts.should_talk import ShouldTalk


@rule(ShouldTalk)
def likely_to_talk(ask: ShouldTalk) -> dict[str, float]:
    """People talk mostly to whom they know."""
    p = 0.4 if ask.relation else 0.15
    return {"yes": p, "no": 1 - p}


@rule(ShouldAct)
def likely_to_act(ask: ShouldAct) -> dict[str, float]:
    """People see to what they use, and to their homes."""
    p = 0.95 if ask.uses_it or ask.is_home else 0.5
    return {"yes": p, "no": 1 - p}
