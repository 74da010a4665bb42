"""What the learned gate looks at: the words' embedding, the moves and topics, the state of talk and belief."""

from __future__ import annotations

import math

import numpy as np

from mindstream.minds.gates.gate import Decision, Situation
from mindstream.minds.gates.logistic import Row
from mindstream.models.embedders.wordllama import WIDTH, vectors
from mindstream.packs.moves import ADAPTS, ASKS
from mindstream.packs.pack import Pack
from mindstream.packs.reading import move_names, read

VERSION = 1
"""Changes with what a feature means: weights of another version are learned anew."""
STATE = (
    "always", "quick waits", "quick waits, planning", "quick thinks", "planning", "plans", "has plan", "a plan is due",
    "first phase", "fields known", "topics named", "topics denied", "unthought", "length", "answers a question",
    "a plan was offered", "chinese",
)  # fmt: skip


class Features:
    """Turns a situation, and what the quick gate made of it, into a row of numbers."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._moves = move_names()
        self.names = (*STATE, *self._moves, *(f"{move}, planning" for move in self._moves))
        self.width = len(self.names) + WIDTH

    def row(self, situation: Situation, quick: Decision) -> Row:
        """Return the row; each number is about 0 to 1 in size, the embedding has length 1."""
        reading = read(self._pack, situation.text)
        waits, planning, phase = (1.0 if quick.waits else -1.0), situation.planning, situation.phase
        denied = sum(mention.denied for mention in reading.mentions)
        state = [
            1.0, waits, waits * planning, (1.0 if quick.thinks else -1.0), planning, phase.plans, situation.has_plan,
            phase.plans and not situation.has_plan, phase.name == self._pack.phases[0].name,
            math.log1p(len(situation.known)) / 2, math.log1p(len(reading.topics)), math.log1p(denied),
            math.log1p(situation.unthought) / 2, math.log1p(len(situation.text)) / 5,
            "?" in situation.said[-40:] or "？" in situation.said[-40:],
            "plan" in situation.said or "计划" in situation.said,
            reading.language == "zh",
        ]  # fmt: skip
        moves = [float(move in reading.moves) for move in self._moves]
        found = [*map(float, state), *moves, *(move * planning for move in moves)]
        return np.concatenate([np.array(found), vectors([situation.text])[0].astype(np.float64)])

    def as_if_missed(self, row: Row) -> Row:
        """Return the row as it would be, had the rules not seen that something is asked for."""
        missed = row.copy()
        asks = ASKS | ADAPTS
        for at, name in enumerate(self.names):
            if name.removesuffix(", planning") in asks:
                missed[at] = 0.0
        missed[self.names.index("quick waits")] = -1.0
        missed[self.names.index("quick waits, planning")] = -row[self.names.index("planning")]
        return missed

    def prior(self, name: str, log_odds: float) -> Row:
        """Return the weights before any outcome: one feature counts so much, the others nothing."""
        weights = np.zeros(self.width)
        weights[self.names.index(name)] = log_odds
        return weights

    def spread(self, named: float, words: float) -> Row:
        """Return how far weights may be from the prior: those with a name, and those of the words' embedding."""
        return np.concatenate([np.full(len(self.names), named), np.full(WIDTH, words)])
