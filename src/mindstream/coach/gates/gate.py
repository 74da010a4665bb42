"""The seam: what a gate sees, and what it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from mindstream.coach.packs.pack import Phase


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
