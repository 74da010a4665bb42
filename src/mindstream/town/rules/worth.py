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
    r"|\([a-z][^()]{0,80}\)\.?$"
    r"|\b(?:goes to bed|wakes? up|awakes? up)\b",
    re.IGNORECASE,
)
_ONGOING = re.compile(r"^[A-Z][\w'-]{1,30} [A-Z][\w'-]{1,30} is (?:an?|the|(?P<does>\w{2,20}ing))\b")
"""What somebody is, or does for some time: others see it, or hear of it some day."""
_SEASON = re.compile(r"\b(?:this|next|in) (?:month|year|spring|summer|autumn|fall|winter)\b", re.IGNORECASE)
_HABIT = re.compile(
    r"\b(?:every|each|usually|often|always|on most)\b|\b(?:morning|afternoon|evening|night|week|day)s\b", re.I
)


@caches.remember(4_096)
def worth(text: str) -> float:
    """Return how much something is worth telling, 0 to 15: its weight, more where it has happened, or is dated.

    What is a secret, and what one does every day, is not told.
    """
    if _OWN.search(text[:2_000]) or _SECRET.search(text[:2_000]):
        return 0.0
    rated: Importance = rate_by_words(RateImportance(who="", memories=(text,)))
    news = -2.0 if is_everyday(text) else 2.0 * (not _ONGOING.search(text[:2_000]))
    return max(0.0, rated.ratings[0] + 3.0 * _is_dated(text) + news)


def is_everyday(text: str) -> bool:
    """Tell whether a text says what somebody does these days, without a date."""
    ongoing = _ONGOING.search(text[:2_000])
    return ongoing is not None and bool(ongoing["does"]) and not _is_dated(text)


def _is_dated(text: str) -> bool:
    return bool(names_time(text) or _SEASON.search(text[:2_000])) and not _HABIT.search(text[:2_000])
