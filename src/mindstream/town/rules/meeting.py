"""Whether to talk, without a model."""

from __future__ import annotations

import re

from mindstream.models.prompt import rule
from mindstream.town.prompts.should_talk import ShouldTalk
from mindstream.town.rules.times import names_time
from mindstream.town.rules.worth import TOLD, worth

_OPEN = re.compile(
    r"\b(?:friendly|outgoing|hospitable|talkative|sociable|curious|warm|cheerful|energetic)\b", re.IGNORECASE
)
_SHUT = re.compile(r"\b(?:shy|reserved|quiet|introvert\w*|withdrawn|grumpy|solitary)\b", re.IGNORECASE)


@rule(ShouldTalk)
def likely_to_talk(ask: ShouldTalk) -> dict[str, float]:
    """People talk to whom they know, most of all when they have something to tell, each by its nature."""
    p = 0.2 if ask.relation else 0.1 if ask.last_talk else 0.18
    p *= 0.3 if ask.last_talk == "today" else 1.0
    announces = any(each.startswith(ask.who) and names_time(each) and worth(each) >= TOLD for each in ask.news)
    p += 0.3 if announces else 0.08 * any(worth(each) >= TOLD for each in ask.news)
    p += 0.1 * bool(_OPEN.search(ask.identity[:2_000])) - 0.15 * bool(_SHUT.search(ask.identity[:2_000]))
    p = min(max(p, 0.05), 0.9)
    return {"yes": p, "no": 1 - p}
