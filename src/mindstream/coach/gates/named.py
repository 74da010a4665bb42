"""The gates that ship, by name: the paper's own rule, and the Talker's word."""

from __future__ import annotations

from mindstream.coach.gates.gate import Decision, Gate, Situation
from mindstream.errors import SettingsError
from mindstream.models.model import Model
from mindstream.models.rules import Rules

GATES = ("talker", "belief")


class BeliefGate:
    """The paper's rule (Christakopoulou 2024, 4.2): wait in the phases that the pack marks so; always think."""

    name = "belief"

    def decide(self, situation: Situation) -> Decision:
        return Decision(situation.phase.waits, why=f"phase {situation.phase.name}")


class TalkerGate:
    """Leaves it to the Talker's model, which understands what is wished for, in any language (see coach/handover)."""

    name = "talker"

    def decide(self, situation: Situation) -> Decision:
        return Decision(waits=False, why=f"the Talker's to say, in phase {situation.phase.name}", hands_over=True)


def gate_named(name: str, talker: Model) -> Gate:
    """Return the gate of that name; of none (""), `talker` where a model answers, else `belief`.

    Raises:
        SettingsError: there is none of that name, or it needs a model.
    """
    answers = talker.name != Rules.name
    if name == "belief" or not (name or answers):
        return BeliefGate()
    if name == "talker" and not answers:
        raise SettingsError("the gate 'talker' needs a language model that talks; without one there is 'belief'")
    if name in ("", "talker"):
        return TalkerGate()
    raise SettingsError(
        f"no gate {name!r}: choose one of {', '.join(GATES)}, or name none"
        " (then it is talker with a model, belief without)"
    )
