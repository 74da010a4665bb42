"""The question to a small model: must this answer wait for the Reasoner? The rule beside it is the quick gate's."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.coach.gates.gate import Situation
from mindstream.coach.gates.quick import QuickGate
from mindstream.coach.packs.pack import Pack
from mindstream.models.prompt import Prompt, rule


class Needed(BaseModel):
    """Yes or no."""

    model_config = ConfigDict(frozen=True)

    waits: bool = Field(description="true: the answer must wait for the reasoner.")


class NeedsReasoner(Prompt[Needed]):
    """Must the answer to this utterance wait for the Reasoner?"""

    role: ClassVar[str] = "gate"

    pack: Pack
    phase: str
    known: tuple[str, ...]
    has_plan: bool
    said: str
    utterance: str


def build_question(pack: Pack, situation: Situation) -> NeedsReasoner:
    """Put a situation as the question."""
    return NeedsReasoner(
        pack=pack, phase=situation.phase.name, known=tuple(sorted(situation.known)), has_plan=situation.has_plan,
        said=situation.said, utterance=situation.text,
    )  # fmt: skip


@rule(NeedsReasoner)
def answer_by_moves(ask: NeedsReasoner) -> Needed:
    """Answer as the quick gate does."""
    situation = Situation(
        ask.utterance, ask.pack.phase(ask.phase), dict.fromkeys(ask.known, True), ask.has_plan, ask.said
    )
    return Needed(waits=QuickGate(ask.pack).decide(situation).waits)
