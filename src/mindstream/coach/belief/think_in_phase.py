"""The question that a phase's mini-reasoner answers, with tools: what is believed now, and what is the plan?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from mindstream.coach.belief.grounding import (
    MadeUp,
    drop_made_up_links,
    gather_given,
    ground_edits,
    ground_patch,
)
from mindstream.coach.belief.plan import CoachingPlan, StepEdit
from mindstream.coach.packs.pack import Pack, Phase
from mindstream.errors import InputError, ReplyInvalid
from mindstream.memory.belief import Belief, merged
from mindstream.models.model import JsonSchema, Message
from mindstream.models.prompt import Prompt
from mindstream.reasoners.conversation import Line, user_statements
from mindstream.text.links import has_links
from mindstream.text.support import Support, complaint, named

LONGEST_WORDS, LONGEST_PATCH = 6_000, 16_000
"""So many characters words to the user, and all that changes in a belief, may have."""
LONGEST_QUOTE = 400
MOST_EDITS = 12
"""So many steps of a plan change at once."""


class SubQuestion(BaseModel):
    """A part of the problem, its answer, and what is believed because of it (an intermediate belief of equation 4)."""

    model_config = ConfigDict(frozen=True)

    question: str = Field(max_length=300)
    answer: str = Field(max_length=600, description="From the user's words or a tool; 'not said' if neither.")
    patch: dict[str, JsonValue] = Field(default_factory=dict)
    rests_on: str = Field("", max_length=LONGEST_QUOTE)


class Feedback(BaseModel):
    """What the user thinks of something they were offered (Christakopoulou 2024, 3.1: reward in words)."""

    model_config = ConfigDict(frozen=True)

    polarity: Literal["likes", "dislikes", "will_try", "did", "did_not", "could_not"]
    target: str = Field(max_length=300, description="What they speak of: a step's title, or a few words.")


class PhaseThought(BaseModel):
    """What a mini-reasoner has come to."""

    model_config = ConfigDict(frozen=True)

    questions: list[SubQuestion] = Field(default_factory=list, max_length=8)
    thought: str = Field(max_length=2_000, description="Your conclusion in one or two sentences.")
    patch: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Belief fields that change and stand in no sub-question's patch.",
    )
    rests_on: str = Field("", max_length=LONGEST_QUOTE)
    ask_next: str = Field("", max_length=300)
    follow_up: str = Field("", max_length=LONGEST_WORDS)
    feedback: list[Feedback] = Field(default_factory=list, max_length=5)
    plan: list[StepEdit] = Field(default_factory=list, max_length=MOST_EDITS)
    changed: str = Field("", max_length=1_000, description="If the plan changed: what and why, in a sentence.")
    words: str = Field("", max_length=LONGEST_WORDS)
    tells_step: bool = Field(False, description="What you say here tells the user the step that is now.")

    @property
    def patches(self) -> list[dict[str, JsonValue]]:
        """The intermediate beliefs, and what is believed besides."""
        return [*(each.patch for each in self.questions), self.patch]


ONLY_PLANNING = {"feedback", "plan", "changed", "tells_step"}


class ThinkInPhase(Prompt[PhaseThought]):
    """What follows from these utterances, thought through as this phase asks?

    `reply`: what the Talker has answered already. `waits`: it waits for this thought instead.
    `open_question`: what the last thought wanted to know. `hint`: what alarm the newest words may hint at.
    """

    pack: Pack
    phase: Phase
    belief: dict[str, JsonValue]
    version: int = 0
    plan: CoachingPlan
    notes: tuple[str, ...]
    conversation: tuple[Line, ...]
    utterances: tuple[str, ...]
    reply: str = ""
    waits: bool = False
    open_question: str = ""
    hint: str = ""
    language: str
    now: str = ""

    def reply_schema(self) -> JsonSchema | None:
        schema = super().reply_schema()
        if schema is None:
            return None
        unfit = {"follow_up"} if self.waits else {"words"}  # whoever is waited for answers; whoever is not, adds
        if not self.phase.plans:
            unfit |= ONLY_PLANNING
        defs = schema["$defs"] if self.phase.plans else {"SubQuestion": schema["$defs"]["SubQuestion"]}
        kept = {name: spec for name, spec in schema["properties"].items() if name not in unfit}
        changes = {
            "type": "object",
            "properties": {name: {} for name in self.pack.fields},
            "additionalProperties": False,
        }
        question = defs["SubQuestion"]
        named = {**question, "properties": {**question["properties"], "patch": changes}}
        return {
            **schema,
            "properties": {**kept, "patch": {**kept["patch"], **changes}},
            "$defs": {**defs, "SubQuestion": named},
        }

    def shown_schema(self) -> JsonSchema | None:
        """Return the schema without the belief's fields: the words have named them."""
        schema = self.reply_schema()
        if schema is None:
            return None
        question = schema["$defs"]["SubQuestion"]
        plain = {"type": "object"}
        shown = {**question, "properties": {**question["properties"], "patch": plain}}
        patch = {**plain, "description": schema["properties"]["patch"]["description"]}
        return {
            **schema,
            "properties": {**schema["properties"], "patch": patch},
            "$defs": {name: spec for name, spec in schema["$defs"].items() if spec} | {"SubQuestion": shown},
        }

    def parse(self, text: str) -> PhaseThought:
        found = super().parse(text)
        if len(json.dumps(found.patches, ensure_ascii=False)) > LONGEST_PATCH:
            raise ReplyInvalid(f"The patches have more than {LONGEST_PATCH:,} characters. Only what changes, in short.")
        patch = compose_patches(found.patches)
        shape = self.pack.belief
        try:
            merged(Belief("belief", self.version, shape.model_validate(self.belief)), patch)
        except InputError as error:
            raise ReplyInvalid(f"The patch does not fit: {error}") from None
        if sum(edit.state == "now" for edit in found.plan) > 1:
            raise ReplyInvalid('Only one step of the plan can have the state "now".')
        return found

    def ground(self, reply: PhaseThought, turns: Sequence[Message]) -> tuple[PhaseThought, str]:
        """Leave out beliefs that rest on nothing, and resources and links that nobody gave; the thought says which."""
        supported, unsupported = self._supported(reply, turns)
        kept, made_up = self._without_made_up(supported, turns)
        return kept, " ".join(filter(None, (unsupported, made_up)))

    def _supported(self, reply: PhaseThought, turns: Sequence[Message]) -> tuple[PhaseThought, str]:
        """Return a thought whose beliefs rest on what was said, noted or found, and a complaint about the others."""
        given = (turn.text for turn in turns if turn.role in ("tool", "user"))
        support = Support([*self.stated(), *given])
        gone: list[str] = []

        def kept(patch: dict[str, JsonValue], rests_on: str) -> dict[str, JsonValue]:
            left, more = ground_patch(patch, rests_on, support)
            gone.extend(more)
            return left

        questions = [each.model_copy(update={"patch": kept(each.patch, each.rests_on)}) for each in reply.questions]
        patch = kept(reply.patch, reply.rests_on)
        if not gone:
            return reply, ""
        thought = f"{reply.thought} (Left out, because it rests on nothing: {named(gone)}.)"
        left = {"questions": questions, "patch": patch, "thought": thought}
        return reply.model_copy(update=left), complaint(gone)

    def stated(self) -> Iterator[str]:
        """Give what a belief may rest on, beside what tools give: the user's words, notes, what is believed already."""
        yield from user_statements(self.conversation, self.utterances)
        yield from self.notes
        yield json.dumps(self.belief, ensure_ascii=False)

    def _without_made_up(self, reply: PhaseThought, turns: Sequence[Message]) -> tuple[PhaseThought, str]:
        whole = reply.model_dump(mode="json")
        resources = any(edit.resources for edit in reply.plan)
        if not resources and not has_links(json.dumps(whole, ensure_ascii=False)):
            return reply, ""
        said = [line.text for line in self.conversation] + [*self.notes, *self.utterances, self.reply]
        known, made_up = gather_given(self.pack, self.plan, said, turns), MadeUp()
        edits = ground_edits(reply.plan, known, made_up)
        whole = drop_made_up_links(whole | {"plan": [edit.model_dump() for edit in edits]}, known, made_up)
        if not str(made_up):
            return reply, ""
        thought = f"{whole['thought']} (Left out, because nothing gave it: {made_up}.)"
        kept = type(reply).model_validate(whole).model_copy(update={"thought": thought})
        return kept, f"No tool gave this: {made_up}. Name only resources and links that a tool gave, as it gave them."


def compose_patches(patches: Sequence[Mapping[str, JsonValue]]) -> dict[str, JsonValue]:
    """Compose intermediate beliefs into one patch: what is added and removed gathers, the later counts.

    The phase is not theirs to set.
    """
    whole: dict[str, Any] = {}
    for patch in patches:
        for name, value in patch.items():
            if name == "phase":
                continue
            before = whole.get(name)
            if isinstance(value, list | dict) and isinstance(before, list | dict):
                added, removed = _parts(before)
                more, less = _parts(value)
                kept = [item for item in added if item not in less]
                whole[name] = {
                    "add": [*kept, *(item for item in more if item not in kept)],
                    "remove": [*(item for item in removed if item not in more), *less],
                }
            else:
                whole[name] = value
    return whole


def _parts(change: Any) -> tuple[list[Any], list[Any]]:
    if isinstance(change, list):
        return change, []
    return _listed(change.get("add")), _listed(change.get("remove"))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
