"""The question that a phase's mini-reasoner answers, with tools: what is believed, what is the plan, what to say?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

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
from mindstream.reasoners.conversation import Line, Note, user_statements
from mindstream.reasoners.reasoner import Briefing
from mindstream.text.links import has_links
from mindstream.text.support import Support, complaint, named

LONGEST_WORDS, LONGEST_PATCH = 6_000, 16_000
"""So many characters words to the user, and all that changes in a belief, may have."""
LONGEST_QUOTE = 400
MOST_EDITS = 12
"""So many steps of a plan change at once."""


class Thinking(BaseModel):
    """What a mini-reasoner has come to; what does not change is left out.

    Attributes:
        phase: where the conversation stands now.
        patch: belief fields that change; `rests_on`: words of the user, or of a tool, by which they do.
        thought, ask, offer, care: the briefing for the Talker.
        follow_up: what is said unasked, where the Talker's answer was wrong.
    """

    model_config = ConfigDict(frozen=True)

    thought: str = Field(max_length=2_000)
    phase: str = Field("", max_length=100)
    patch: dict[str, JsonValue] = Field(default_factory=dict)
    rests_on: str = Field("", max_length=LONGEST_QUOTE)
    plan: list[StepEdit] = Field(default_factory=list, max_length=MOST_EDITS)
    changed: str = Field("", max_length=1_000)
    ask: str = Field("", max_length=300)
    offer: str = Field("", max_length=LONGEST_WORDS)
    care: str = Field("", max_length=1_000)
    follow_up: str = Field("", max_length=LONGEST_WORDS)

    @model_validator(mode="before")
    @classmethod
    def _unnested(cls, value: Any) -> Any:
        """Take what belongs beside the patch out of it: models put it there, and mean the same."""
        patch = value.get("patch") if isinstance(value, dict) else None
        if not isinstance(patch, dict):
            return value
        beside = {name: patch[name] for name in ("rests_on", "phase") if isinstance(patch.get(name), str)}
        return {**beside, **value, "patch": {name: each for name, each in patch.items() if name not in beside}}

    @property
    def briefing(self) -> Briefing:
        """What the Talker is told of it."""
        return Briefing(self.thought, self.ask, self.offer, self.care)


class Think(Prompt[Thinking]):
    """What follows from these utterances, thought through as this phase asks (Christakopoulou 2024, 3.2.2)?

    `reply`: what the Talker has answered already. `waits`: it waits for this thought instead. `first`: what was come to
    under the phase before, where that thought changed it. `hint`: what alarm the newest words may hint at. `kept`: how
    often steps that were thought likely were done.
    """

    pack: Pack
    phase: Phase
    belief: dict[str, JsonValue]
    version: int = 0
    plan: CoachingPlan
    briefing: Briefing = Briefing()
    recalled: tuple[Note, ...] = ()
    conversation: tuple[Line, ...]
    utterances: tuple[str, ...]
    reply: str = ""
    waits: bool = False
    first: str = ""
    hint: str = ""
    kept: str = ""
    language: str = "en"
    now: str = ""

    def reply_schema(self) -> JsonSchema | None:
        """Return a schema that knows the pack's phases, as short as it can be: the words say what its parts mean."""
        schema = super().reply_schema()
        if schema is None:
            return None
        phases = {"type": "string", "enum": [phase.name for phase in self.pack.phases]}
        return {**schema, "properties": {**schema["properties"], "phase": phases}}

    def parse(self, text: str) -> Thinking:
        found = super().parse(text)
        if len(json.dumps(found.patch, ensure_ascii=False)) > LONGEST_PATCH:
            raise ReplyInvalid(f"The patch has more than {LONGEST_PATCH:,} characters. Only what changes, in short.")
        names = [phase.name for phase in self.pack.phases]
        if found.phase and found.phase not in names:
            raise ReplyInvalid(f"There is no phase {found.phase!r}. The phases are: {', '.join(names)}.")
        patch = compose_patches([found.patch])
        shape = self.pack.belief
        try:
            merged(Belief("belief", self.version, shape.model_validate(self.belief)), patch)
        except InputError as error:
            raise ReplyInvalid(f"The patch does not fit: {error}") from None
        return found

    def ground(self, reply: Thinking, turns: Sequence[Message]) -> tuple[Thinking, str]:
        """Leave out beliefs that rest on nothing, and resources and links that nobody gave; the thought says which."""
        supported, unsupported = self._supported(reply, turns)
        kept, made_up = self._without_made_up(supported, turns)
        return kept, " ".join(filter(None, (unsupported, made_up)))

    def _supported(self, reply: Thinking, turns: Sequence[Message]) -> tuple[Thinking, str]:
        """Return a thought whose beliefs rest on what was said, noted or found, and a complaint about the others."""
        given = (turn.text for turn in turns if turn.role in ("tool", "user"))
        patch, gone = ground_patch(reply.patch, reply.rests_on, Support([*self.stated(), *given]))
        if not gone:
            return reply, ""
        thought = f"{reply.thought} (Left out, because it rests on nothing: {named(gone)}.)"
        return reply.model_copy(update={"patch": patch, "thought": thought}), complaint(gone)

    def stated(self) -> Iterator[str]:
        """Give what a belief may rest on, beside what tools give: the user's words, notes, what is believed already."""
        yield from user_statements(self.conversation, self.utterances)
        yield from (note.text for note in self.recalled)
        yield json.dumps(self.belief, ensure_ascii=False)

    def _without_made_up(self, reply: Thinking, turns: Sequence[Message]) -> tuple[Thinking, str]:
        whole = reply.model_dump(mode="json")
        resources = any(edit.resources for edit in reply.plan)
        if not resources and not has_links(json.dumps(whole, ensure_ascii=False)):
            return reply, ""
        said = [line.text for line in self.conversation] + [*map(str, self.recalled), *self.utterances, self.reply]
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
