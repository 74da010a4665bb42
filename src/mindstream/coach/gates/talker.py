"""The gate `talker`: whoever answers decides, in the same call (see coach/handover)."""

from __future__ import annotations

from mindstream.coach.gates.gate import Decision, Situation


class TalkerGate:
    """Leaves it to the Talker's model, which understands what is wished for, in any language."""

    name = "talker"

    def decide(self, situation: Situation) -> Decision:
        return Decision(waits=False, why=f"the Talker's to say, in phase {situation.phase.name}", hands_over=True)
