"""The question in which phase the conversation is, and the rule that answers it.

Source: Christakopoulou 2024, 4.2: asked each turn.
"""

from __future__ import annotations

from copy import deepcopy

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.reading import Reading, read_utterance
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
def phase_by_known_fields(ask: InferPhase) -> InferredPhase:
    """Move on when what the phase needs is known, or when a plan is asked for and there is something to plan for."""
    readings = [read_utterance(ask.pack, text) for text in ask.utterances]
    names = [phase.name for phase in ask.pack.phases]
    at = names.index(ask.phase) if ask.phase in names else 0
    present = ask.pack.phases[at]
    if present.plans:
        return InferredPhase(reason="the plan is being worked on", phase=present.name)
    known = {name for name, held in ask.belief.items() if held not in (None, [], "")} | _named(ask.pack, readings)
    wanted = any({"plan", "stepwise", "resources"} & reading.moves for reading in readings)
    first_needs = set(ask.pack.phases[0].needs)
    planning = next((phase.name for phase in ask.pack.phases if phase.plans), None)
    audience = {name for name in known if name in ask.pack.fields and ask.pack.fields[name].audience}
    if wanted and planning and (first_needs <= known or audience):
        return InferredPhase(reason="a plan is asked for, and it is known what for", phase=planning)
    if present.needs and set(present.needs) <= known and at + 1 < len(names):
        return InferredPhase(reason=f"{', '.join(present.needs)} known", phase=names[at + 1])
    return InferredPhase(reason="there is more to understand", phase=present.name)


def _named(pack: Pack, readings: list[Reading]) -> set[str]:
    topics = [pack.topic(topic) for reading in readings for topic in reading.topics]
    return {topic.field for topic in topics if topic and topic.field}
