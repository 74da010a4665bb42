"""Gates: does the Talker wait for the Reasoner before it answers?"""

from __future__ import annotations

from typing import Protocol

from mindstream.errors import SettingsError
from mindstream.packs.pack import Pack, Phase
from mindstream.packs.reading import read

ASKS_FOR_THOUGHT = {"plan", "stepwise", "resources", "dislike", "next", "done", "add"}


class Gate(Protocol):
    """Decides for each utterance whether to wait."""

    def waits(self, phase: Phase, text: str) -> bool:
        """Return whether the Talker waits, given the phase that is believed and what was just heard."""


class BeliefGate:
    """The paper's rule (4.2): wait in the phases that the pack marks so, whatever was said."""

    def waits(self, phase: Phase, text: str) -> bool:  # noqa: ARG002
        return phase.waits


class QuickGate:
    """Reads the utterance too: waits for what only the Reasoner can give, in any phase; small talk never waits."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack

    def waits(self, phase: Phase, text: str) -> bool:
        reading = read(self._pack, text)
        if "recall" in reading.moves:
            return False
        if not phase.plans:
            needs = set(self._pack.phases[0].needs)
            named = {topic.field for topic in map(self._pack.topic, reading.topics) if topic}
            return bool(reading.moves & {"plan", "stepwise", "resources"}) and bool(needs & named or not needs)
        return bool(reading.moves & ASKS_FOR_THOUGHT)


GATES = ("belief", "quick")


def gate(name: str, pack: Pack) -> Gate:
    """Return the gate of that name.

    Raises:
        SettingsError: there is none.
    """
    if name == "belief":
        return BeliefGate()
    if name == "quick":
        return QuickGate(pack)
    raise SettingsError(f"no gate {name!r}: choose one of {', '.join(GATES)}")
