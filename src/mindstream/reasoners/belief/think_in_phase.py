"""The question that a phase's mini-reasoner answers, with tools: what is believed now, and what is the plan?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from mindstream.errors import InputError, ReplyInvalid
from mindstream.memory.belief import Belief, merged
from mindstream.models.prompt import Prompt
from mindstream.packs.pack import Pack, Phase
from mindstream.reasoners.belief.plan import Plan, PlanStep
from mindstream.reasoners.conversation import Line


class Feedback(BaseModel):
    """What the user thinks of something they were offered (paper 3.1: reward in words)."""

    model_config = ConfigDict(frozen=True)

    polarity: Literal["likes", "dislikes", "did", "could_not"]
    target: str = Field(max_length=300, description="What they speak of: a step's title, or a few words.")


class SubQuestion(BaseModel):
    """A part of the problem, its answer, and what is believed because of it (an intermediate belief of equation 4)."""

    model_config = ConfigDict(frozen=True)

    question: str = Field(max_length=300)
    answer: str = Field(
        max_length=600, description="From what the user said or a tool gave; 'not said' if neither did."
    )
    patch: dict[str, JsonValue] = Field(default_factory=dict)


class PhaseThought(BaseModel):
    """What a mini-reasoner has come to."""

    model_config = ConfigDict(frozen=True)

    questions: list[SubQuestion] = Field(
        default_factory=list, max_length=8, description="The sub-questions that matter now, one to four, answered."
    )
    thought: str = Field(description="Your conclusion in one or two sentences.")
    patch: dict[str, JsonValue] = Field(
        default_factory=dict,
        description='Belief fields to change. A list adds to what is there; {"remove": [...]} takes away; null clears.',
    )
    feedback: list[Feedback] = Field(default_factory=list, max_length=5)
    plan: list[PlanStep] | None = Field(
        None, description="All steps of the plan, only when you make or change it; null leaves it as it is."
    )
    changed: str = Field("", description="If you changed the plan: what and why, in a sentence.")
    words: str = Field(
        "",
        description="What the user is told now, in your words; only with a new or changed plan, a step or resources.",
    )
    follow_up: str = Field(
        "",
        description="Only if the coach's last answer was wrong or left out something important: one or two sentences.",
    )


def composed(patches: Sequence[Mapping[str, JsonValue]]) -> dict[str, JsonValue]:
    """Compose intermediate beliefs into one patch: lists gather, else the later one counts. The phase is not theirs."""
    whole: dict[str, JsonValue] = {}
    for patch in patches:
        for name, value in patch.items():
            before = whole.get(name)
            if isinstance(before, list) and isinstance(value, list):
                whole[name] = [*before, *(item for item in value if item not in before)]
            elif name != "phase":
                whole[name] = value
    return whole


class ThinkInPhase(Prompt[PhaseThought]):
    """What follows from these utterances, thought through as this phase asks?"""

    pack: Pack
    phase: Phase
    belief: dict[str, JsonValue]
    version: int = 0
    plan: Plan
    notes: tuple[str, ...]
    conversation: tuple[Line, ...]
    utterances: tuple[str, ...]
    language: str

    def parse(self, text: str) -> PhaseThought:
        found = super().parse(text)
        patch = composed([*(each.patch for each in found.questions), found.patch])
        shape = self.pack.belief
        try:
            merged(Belief("belief", self.version, shape.model_validate(self.belief)), patch)
        except InputError as error:
            raise ReplyInvalid(f"The patch does not fit: {error}") from None
        if found.plan and sum(step.state == "now" for step in found.plan) > 1:
            raise ReplyInvalid('Exactly one step of the plan has the state "now".')
        return found.model_copy(update={"patch": patch})
