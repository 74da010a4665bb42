"""The question in which phase the conversation is.

Source: Christakopoulou 2024, 4.2: asked each turn.
"""

from __future__ import annotations

from copy import deepcopy

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from mindstream.coach.packs.pack import Pack, all_texts
from mindstream.coach.packs.topics import topics_in
from mindstream.errors import ReplyInvalid
from mindstream.models.model import JsonSchema
from mindstream.models.prompt import Prompt, rule
from mindstream.reasoners.conversation import Line


class InferredPhase(BaseModel):
    """Where the conversation stands."""

    model_config = ConfigDict(frozen=True)

    phase: str = Field(max_length=100)
    reason: str = Field("", max_length=1_000, description="Why, in a few words.")


class InferPhase(Prompt[InferredPhase]):
    """In which phase of the pack is the conversation after these utterances?"""

    pack: Pack
    phase: str
    belief: dict[str, JsonValue]
    conversation: tuple[Line, ...]
    utterances: tuple[str, ...]

    def reply_schema(self) -> JsonSchema:
        """Return a schema that knows the pack's phases."""
        schema = deepcopy(super().reply_schema() or {})
        schema["properties"]["phase"] = {"type": "string", "enum": [phase.name for phase in self.pack.phases]}
        return schema

    def parse(self, text: str) -> InferredPhase:
        found = super().parse(text)
        names = [phase.name for phase in self.pack.phases]
        if found.phase not in names:
            raise ReplyInvalid(f"There is no phase {found.phase!r}. The phases are: {', '.join(names)}.")
        return found


@rule(InferPhase)
def phase_by_filled_fields(ask: InferPhase) -> InferredPhase:
    """Stand in: the first phase, from the present one on, of which a needed field holds nothing.

    What a later phase needs holds nobody up once the pack's question for it was asked.
    """
    phases, fields = ask.pack.phases, ask.pack.fields
    known = {name for name, held in ask.belief.items() if held not in (None, [], "")}
    named = {id_ for text in ask.utterances for id_ in topics_in(ask.pack, text)}
    known |= {topic.field for topic in ask.pack.topics if topic.id in named}
    said = "\n".join(line.text for line in ask.conversation if not line.by_user)
    asked = {name for name, spec in fields.items() if any(each in said for each in all_texts(spec.ask))}
    phase = ask.pack.phase(ask.phase)
    for follower in phases[phases.index(phase) + 1 :]:
        met = known if phase is phases[0] else known | asked
        if phase.plans or not phase.needs or not set(phase.needs) <= met:
            break
        phase = follower
    return InferredPhase(reason=f"by stand-in: known are {', '.join(sorted(known)) or 'no fields'}", phase=phase.name)
