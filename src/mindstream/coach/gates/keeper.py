"""Where the mind meets its gate: what overrules it, and what becomes of a gate that fails."""

from __future__ import annotations

from dataclasses import replace

from mindstream.coach.gates.gate import Decision, Gate, Situation
from mindstream.coach.gates.named import BeliefGate
from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.safety import find_hint
from mindstream.isolation import describe


class Gatekeeper:
    """Asks a gate, whatever it does."""

    def __init__(self, gate: Gate, pack: Pack) -> None:
        self.name = gate.name
        self._gate, self._pack = gate, pack

    def decide(self, situation: Situation) -> Decision:
        """Decide of an utterance. A hint of danger is always thought about."""
        try:
            decision = self._gate.decide(situation)
        except Exception as error:  # noqa: BLE001 (a gate is foreign code; without it the paper's rule decides)
            decision = BeliefGate().decide(situation)
            decision = replace(decision, why=f"{decision.why} (the gate failed: {describe(error)})")
        if not decision.thinks and self.hints(situation.text):
            return replace(decision, thinks=True, why=f"a hint of danger; {decision.why}")
        return decision

    def hints(self, text: str) -> bool:
        """Tell whether an utterance hints at danger."""
        return find_hint(self._pack, text) is not None
