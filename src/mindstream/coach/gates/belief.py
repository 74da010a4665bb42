"""The gate `belief`: the paper's own rule, by the phase of the belief (Christakopoulou 2024, 4.2)."""

from __future__ import annotations

from mindstream.coach.gates.gate import Decision, Situation


class BeliefGate:
    """The paper's rule (4.2): wait in the phases that the pack marks so, whatever was said; always think."""

    name = "belief"

    def decide(self, situation: Situation) -> Decision:
        return Decision(situation.phase.waits, why=f"phase {situation.phase.name}")
