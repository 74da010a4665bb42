"""What is worth telling: what weighs, what is still to come, and not what everybody sees."""

from __future__ import annotations

import re

from mindstream import caches
from mindstream.memory.rate_importance import Importance, RateImportance, rate_by_words
from mindstream.town.rules.times import names_time

TOLD, NEWS = 5, 2
"""From which worth on something is a reason to talk, and is told at all."""
_SECRET = re.compile(
    r"\bsecret(?:ly|s)?\b|\bin private\b|\bcrush on\b|\bin love with\b|\b(?:has not|hasn't|have not|never|not yet) "
    r"(?:told|said|confessed|admitted)\b|\bkeeps? (?:it|this|that) to \w{3,10}sel(?:f|ves)\b",
    re.IGNORECASE,
)
_OWN = re.compile(
    r"'s plan for |\btalked with\b|\b(?:will (?:be there|help to prepare it)|(?:cannot|not want to) come\b[^:]{0,40}): "
    r"|\bis talking with\b"
    r"|\([a-z][^()]{0,80}\)\.?$|\bkeeps coming up with\b|^With .{1,60} go together\.?$"
    r"|\b(?:goes to bed|wakes? up|awakes? up)\b",
    re.IGNORECASE,
)


@caches.remember(4_096)
def worth(text: str) -> float:
    """Return how much something is worth telling, 0 to 13: its weight as a memory, more where it says when.

    What is a secret, and what one does every day, is not told.
    """
    if _OWN.search(text[:2_000]) or _SECRET.search(text[:2_000]):
        return 0.0
    rated: Importance = rate_by_words(RateImportance(who="", memories=(text,)))
    return rated.ratings[0] + 3.0 * names_time(text)
