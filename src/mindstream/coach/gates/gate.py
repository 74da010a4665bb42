"""The seam: what a gate sees, and what it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from mindstream.coach.belief.plan import PlanStep
from mindstream.coach.packs.pack import Phase


@dataclass(frozen=True, slots=True)
class Situation:
    """What a gate may look at; all of it is in memory before anybody thinks.

    Attributes:
        belief: the fields of the belief, without its phase.
        has_plan: a step of the plan is the present one.
        said: what the mind said last; "" where that is not known.
        unthought: how many utterances the Reasoner has not thought about yet, this one left out.
        told: the present step of the plan, where the user was given it.
    """

    text: str
    phase: Phase
    belief: Mapping[str, JsonValue] = field(default_factory=dict)
    has_plan: bool = False
    said: str = ""
    unthought: int = 0
    told: PlanStep | None = None

    @property
    def known(self) -> frozenset[str]:
        """The fields of the belief that hold something."""
        return frozenset(name for name, held in self.belief.items() if held not in (None, [], ""))

    @property
    def planning(self) -> bool:
        """The talk is about a plan: its phase makes one, or there is one."""
        return self.phase.plans or self.has_plan


@dataclass(frozen=True, slots=True)
class Decision:
    """What a gate decided.

    Attributes:
        waits: the Talker waits for the Reasoner before it answers.
        thinks: the Reasoner is woken; if not, the utterance is only seen by it when it next wakes.
        why: in a few words, for the log.
        probability: how likely the Reasoner has something that the answer needs; None where the gate cannot tell.
    """

    waits: bool
    thinks: bool = True
    why: str = ""
    probability: float | None = None


class Gate(Protocol):
    """Decides for each utterance, twice: before it is written down as heard, and when its turn has come."""

    @property
    def name(self) -> str:
        """Name the gate, for the log."""

    def decide(self, situation: Situation) -> Decision:
        """Decide at once, in well under a millisecond: what is heard is acknowledged only after this."""

    async def weigh(self, situation: Situation) -> Decision:
        """Decide whether to wait now that the turn has come; may ask a small model. Never raises ModelError."""
