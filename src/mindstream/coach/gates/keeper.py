"""Where the mind meets its gate: when it is asked, what overrules it, and how its decision gets into the log."""

from __future__ import annotations

from dataclasses import replace

from mindstream.coach.gates.belief import BeliefGate
from mindstream.coach.gates.gate import Decision, Gate, Situation
from mindstream.coach.gates.outcomes import BY, decision_event
from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.safety import find_hint
from mindstream.isolation import Broken, Isolated, describe
from mindstream.memory.store import Entry

LONGEST_S = 2.0
"""How long a gate may take to decide."""


class Gatekeeper:
    """Asks a gate twice for each utterance, and hands what it decided to the first commit that answers it."""

    def __init__(self, gate: Gate, pack: Pack) -> None:
        self._gate, self._pack = gate, pack
        self._decided: dict[int, Entry] = {}

    def first(self, situation: Situation) -> Decision:
        """Decide before the utterance is written down: is the Reasoner woken? A hint of danger always wakes it."""
        try:
            decision = self._gate.decide(situation)
        except Exception as error:  # noqa: BLE001 (a gate is foreign code; without it the paper's rule decides)
            decision = self._without_gate(situation, error)
        if not decision.thinks and find_hint(self._pack, situation.text):
            return replace(decision, thinks=True, why=f"a hint of danger; {decision.why}")
        return decision

    async def _weigh(self, situation: Situation) -> Decision:
        try:
            return await Isolated(lambda: self._gate.weigh(situation)).result(LONGEST_S)
        except Broken as error:
            return self._without_gate(situation, error.cause or error)

    def _without_gate(self, situation: Situation, error: BaseException) -> Decision:
        decision = BeliefGate().decide(situation)
        return replace(decision, why=f"{decision.why} (the gate failed: {describe(error)})")

    async def waits(self, situation: Situation, heard: int, first: Decision, alarmed: bool = False) -> bool:
        """Decide when its turn has come; what is believed may have moved on. An alarm waits for nobody."""
        weighed = replace(first, why=f"an alarm; {first.why}") if alarmed else await self._weigh(situation)
        waits = weighed.waits and first.thinks and not alarmed
        decision = replace(weighed, waits=waits, thinks=first.thinks)
        self._decided[heard] = Entry(decision_event(decision, self._gate.name, situation, self._pack, heard), BY)
        return waits

    def decision(self, heard: int) -> list[Entry]:
        """Return the decision's entry for the log, once."""
        entry = self._decided.pop(heard, None)
        return [entry] if entry else []
