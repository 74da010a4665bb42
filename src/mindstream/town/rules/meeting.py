"""Whether to talk, and whether to do something about a thing, without a model."""

from __future__ import annotations

import re

from mindstream.models.prompt import rule
from mindstream.text.words import plain_words
from mindstream.town.prompts.should_act import ShouldAct
from mindstream.town.prompts.should_talk import ShouldTalk
from mindstream.town.rules.worth import TOLD, names_time, worth

_OPEN = re.compile(
    r"\b(?:friendly|outgoing|hospitable|talkative|sociable|curious|warm|cheerful|energetic)\b", re.IGNORECASE
)
_SHUT = re.compile(r"\b(?:shy|reserved|quiet|introvert\w*|withdrawn|grumpy|solitary)\b", re.IGNORECASE)
FINE = frozenset(
    [
        "idle",
        "fine",
        "ok",
        "okay",
        "clean",
        "tidy",
        "ready",
        "closed",
        "open",
        "off",
        "on",
        "full",
        "new",
        "working",
        "repaired",
        "fixed",
        "well",
        "good",
        "should",
        "be",
    ]
)
FILLING = frozenset(
    ["very", "now", "quite", "all", "back", "nice", "and", "again", "switched", "turned", "freshly", "as", "it"]
)
"""A condition of such words alone, one of FINE among them, is none that anybody sees to."""
_TAKEN = re.compile(r"\b(?:occupied|in use|being used|taken|busy|engaged)\b", re.IGNORECASE)


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


@rule(ShouldAct)
def likely_to_act(ask: ShouldAct) -> dict[str, float]:
    """What is wrong with a thing that one needs, or that is at home, is seen to; elsewhere mostly."""
    condition = ask.sees.partition(" is ")[2] or ask.sees
    words = set(plain_words(condition[:200]))
    if _TAKEN.search(condition[:200]):
        p = 0.97 if ask.uses_it else 0.0
    elif words <= FINE | FILLING and words & FINE:
        p = 0.0
    else:
        p = 0.97 if ask.uses_it or ask.is_home else 0.6
    return {"yes": p, "no": 1 - p}
