"""How does the rest of a day go on, now that something was agreed on for it? (Park 2023, 4.3.1: regenerated plans)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt, rule
from mindstream.town.prompts.memory import Memory
from mindstream.town.prompts.paper.plan_strokes import Stroke


class RestOfDay(BaseModel):
    """The rest of a day, in broad strokes."""

    model_config = ConfigDict(frozen=True)

    strokes: list[Stroke] = Field(min_length=1, max_length=16)


class RewriteDay(Prompt[RestOfDay]):
    """How does the rest of the day go on?"""

    role: ClassVar[str] = "planner"

    who: str
    identity: str
    when: str
    bed: str
    agreed: tuple[Memory, ...]
    """What was agreed on for today, numbered from 1."""
    plan: tuple[str, ...]
    """The rest of the day as it was planned, as `HH:MM-HH:MM what (where)`."""
    places: tuple[str, ...]
    """The tree of places that it knows, a branch a line, numbered from 1."""


@rule(RewriteDay)
def put_it_in(ask: RewriteDay) -> RestOfDay:
    """Stand in for a model: nothing but what was agreed on."""
    kept = [
        Stroke(start=f"{at.start:%H:%M}", what=at.what[:200], keeps=number)
        for number, each in enumerate(ask.agreed, 1)
        if (at := each.appointment) is not None
    ]
    return RestOfDay(strokes=kept or [Stroke(start=ask.when, what=ask.agreed[0].text[:200])])
