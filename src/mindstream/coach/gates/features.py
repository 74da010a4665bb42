"""What gates look at beside the words: the state of talk and belief, the moves and topics, what the rules would do."""

from __future__ import annotations

import math

from mindstream.coach.gates.gate import Decision, Situation
from mindstream.coach.moves.moves import CONSENTS, move_names
from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.reading import read_utterance

OFFERED = ("plan", "step", "suggest", "idea", "计划", "方案", "步", "建议")
"""Words by which the mind offers what the Reasoner makes."""


class Features:
    """Turns a situation, and what the rules made of it, into numbers with names; each is about 0 to 1 in size."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack

    def of(self, situation: Situation, rule: Decision) -> dict[str, float]:
        """Return the numbers by name."""
        reading = read_utterance(self._pack, situation.text)
        phase, planning = situation.phase, situation.planning
        asked = "?" in situation.said[-40:] or "？" in situation.said[-40:]
        offered = asked and any(word in situation.said[-80:].lower() for word in OFFERED)
        state: dict[str, float] = {
            "rule waits": rule.waits, "rule waits, planning": rule.waits and planning, "rule thinks": rule.thinks,
            "planning": planning, "plans": phase.plans, "has plan": situation.has_plan,
            "a plan is due": phase.plans and not situation.has_plan,
            "first phase": phase.name == self._pack.phases[0].name,
            "nothing known": not situation.known, "topics named": math.log1p(len(reading.topics)),
            "topics denied": math.log1p(sum(mention.denied for mention in reading.mentions)),
            "length": math.log1p(len(situation.text)) / 5, "chinese": reading.language == "zh",
            "answers a question": asked, "was offered": offered,
            "consents to an offer": offered and bool(reading.moves & CONSENTS),
        }  # fmt: skip
        moves = dict.fromkeys(reading.moves, 1.0)
        return {name: float(value) for name, value in {**state, **moves}.items()} | {
            f"{name}, planning": float(planning) for name in reading.moves
        }

    @staticmethod
    def names() -> tuple[str, ...]:
        """Name all numbers that there can be, in an order that stays."""
        moves = move_names()
        return (*STATE, *moves, *(f"{move}, planning" for move in moves))


STATE = (
    "rule waits", "rule waits, planning", "rule thinks", "planning", "plans", "has plan", "a plan is due",
    "first phase", "nothing known", "topics named", "topics denied", "length", "chinese", "answers a question",
    "was offered", "consents to an offer",
)  # fmt: skip
