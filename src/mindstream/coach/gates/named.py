"""Gates by name."""

from __future__ import annotations

from mindstream.coach.gates.belief import BeliefGate
from mindstream.coach.gates.gate import Gate
from mindstream.coach.gates.talker import TalkerGate
from mindstream.errors import SettingsError
from mindstream.models.model import Model
from mindstream.models.rules import Rules

GATES = ("talker", "belief")
GONE = ("quick", "learned")


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
    gone = f"the gate {name!r} is no more" if name in GONE else f"no gate {name!r}"
    raise SettingsError(
        f"{gone}: choose one of {', '.join(GATES)}, or name none (then it is talker with a model, belief without)"
    )
