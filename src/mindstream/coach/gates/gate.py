"""The seam: what a gate sees, and what it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import JsonValue

from mindstream.coach.packs.pack import Pack, Phase
from mindstream.coach.packs.safety import find_hint
from mindstream.errors import SettingsError
from mindstream.foreign_code import describe
from mindstream.models.model import Model
from mindstream.models.rules import Rules


@dataclass(frozen=True, slots=True)
class Situation:
    """What a gate may look at; all of it is in memory before anybody thinks.

    Attributes:
        belief: the fields of the belief, without its phase.
        has_plan: a step of the plan is the present one.
        said: what the mind said last in this session; "" where it has said nothing yet.
    """

    text: str
    phase: Phase
    belief: Mapping[str, JsonValue] = field(default_factory=dict)
    has_plan: bool = False
    said: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided of an utterance.

    Attributes:
        waits: the Talker waits for the Reasoner before it answers.
        thinks: the Reasoner is woken; if not, the utterance is only seen by it when it next wakes.
        why: in a few words, for the log.
        hands_over: it is left to the Talker, which says so as it begins to answer.
    """

    waits: bool
    thinks: bool = True
    why: str = ""
    hands_over: bool = False


class Gate(Protocol):
    """Decides for each utterance before it is written down, and again where it had to wait for its turn."""

    @property
    def name(self) -> str:
        """Name the gate, for the log."""

    def decide(self, situation: Situation) -> Decision:
        """Decide at once, in well under a millisecond: what is heard is acknowledged only after this."""


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
