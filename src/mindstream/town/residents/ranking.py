"""How residents' memories are ranked, by their town's profile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from mindstream.memory.memory import Memory
from mindstream.memory.recall.policies import Candidates, Floats, Generative, Policy, Ranking, Rows, best, rated, spread
from mindstream.memory.store.columns import KIND_CODES
from mindstream.town.profile import Profile

IDLE = "idle"
"""The keyword of what was seen as it should be."""


@cache
def policy_of(profile: Profile) -> Policy:
    """Return the ranking of a town: recency, importance and relevance (Park 2023, 4.1)."""
    weights = profile.recency, profile.importance, profile.relevance, profile.decay
    return ByRank(*weights) if profile.compat else Generative(*weights)


@dataclass(frozen=True, slots=True)
class ByRank:
    """As the published code ranks: recency by rank instead of hours, relevance by vectors alone.

    It begins to count at the memory that was returned longest ago, so that the oldest counts as the most recent; that
    is a defect, and `newest_first` is what was meant. `without`: rows that are no candidates;
    `thoughts`: those that come after what was seen at the same moment.
    """

    recency: float = 0.5
    importance: float = 2.0
    relevance: float = 3.0
    decay: float = 0.995
    newest_first: bool = False
    without: tuple[int, ...] = ()
    thoughts: tuple[int, ...] = ()

    async def within(self, stream: Memory) -> ByRank:
        """Return it for a stream: what was said and what was seen idle is left out."""
        columns = await stream.columns()
        chats = np.flatnonzero(columns.kind.values == KIND_CODES["chat"]).tolist()
        thoughts = np.flatnonzero(columns.kind.values != KIND_CODES["observation"]).tolist()
        return replace(self, without=(*chats, *columns.keywords.of(IDLE).tolist()), thoughts=tuple(thoughts))

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        rows = np.setdiff1d(candidates.rows, self.without)
        signals = candidates.signals(rows)
        parts = {
            "recency": self.recency * spread(self._recency(rows, signals.accessed)),
            "importance": self.importance * spread(rated(signals.importance)),
            "relevance": self.relevance * spread(candidates.cosines(rows)),
        }
        return best(rows, parts["recency"] + parts["importance"] + parts["relevance"], n, parts)

    def _recency(self, rows: Rows, accessed: Floats) -> Floats:
        order = np.lexsort((-rows, np.isin(rows, self.thoughts), accessed))
        places = np.empty(len(order))
        places[order[::-1] if self.newest_first else order] = np.arange(1, len(order) + 1)
        return np.power(self.decay, places)
