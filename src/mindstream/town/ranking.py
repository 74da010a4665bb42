"""How residents' memories are ranked, by their town's profile."""

from __future__ import annotations

from functools import cache

from mindstream.memory.policies import Generative, Policy
from mindstream.town.profile import Profile


@cache
def policy_of(profile: Profile) -> Policy:
    """Return the ranking of a town: recency, importance and relevance (Park 2023, 4.1)."""
    return Generative(profile.recency, profile.importance, profile.relevance, profile.decay)
