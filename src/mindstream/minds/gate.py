"""Gates: two decisions for each utterance. Does the Talker wait for the Reasoner? Is the Reasoner needed at all?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from mindstream.errors import SettingsError
from mindstream.packs.pack import Pack, Phase
from mindstream.packs.reading import read

ASKS_FOR_THOUGHT = {"plan", "stepwise", "resources", "dislike", "next", "done", "add"}


@dataclass(frozen=True, slots=True)
class Situation:
    """What a gate may look at; all of it is in memory before anybody thinks."""

    text: str
    phase: Phase
    belief: Mapping[str, JsonValue] = field(default_factory=dict)
    has_plan: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What a gate decided.

    Attributes:
        waits: the Talker waits for the Reasoner before it answers.
        thinks: the Reasoner is woken; if not, the utterance is only seen by it when it next wakes.
        why: in a few words, for the log.
    """

    waits: bool
    thinks: bool = True
    why: str = ""


class Gate(Protocol):
    """Decides for each utterance."""

    @property
    def name(self) -> str:
        """Name the gate, for the log."""

    def decide(self, situation: Situation) -> Decision:
        """Decide; takes well under a millisecond."""


class BeliefGate:
    """The paper's rule (4.2): wait in the phases that the pack marks so, whatever was said; always think."""

    name = "belief"

    def decide(self, situation: Situation) -> Decision:
        return Decision(situation.phase.waits, why=f"phase {situation.phase.name}")


class QuickGate:
    """Reads the utterance too: waits for what only the Reasoner can give, in any phase; small talk never waits."""

    name = "quick"

    def __init__(self, pack: Pack) -> None:
        self._pack = pack

    def decide(self, situation: Situation) -> Decision:
        reading = read(self._pack, situation.text)
        if "recall" in reading.moves:
            return Decision(False, why="memory answers")
        asked = sorted(
            reading.moves & (ASKS_FOR_THOUGHT if situation.phase.plans else {"plan", "stepwise", "resources"})
        )
        if not situation.phase.plans and asked:
            needs = set(self._pack.phases[0].needs)
            known = {name for name, held in situation.belief.items() if held not in (None, [], "")}
            named = {topic.field for topic in map(self._pack.topic, reading.topics) if topic}
            if needs and not needs & (named | known):
                return Decision(False, why="nothing is known yet to plan for")
        return Decision(
            bool(asked), why=f"asks for {', '.join(asked)}" if asked else "nothing that needs thought first"
        )


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
