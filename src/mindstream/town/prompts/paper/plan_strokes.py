"""What will somebody do today, in five to eight broad strokes? (Park 2023, 4.3)."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mindstream.models.prompt import Prompt, rule
from mindstream.town.prompts.memory import Memory
from mindstream.town.prompts.plan_day import BED, WAKE, Clock, Usual, check_waking_hours
from mindstream.town.prompts.where import Where
from mindstream.town.world.hours import DAY_MINUTES, clock


class Stroke(BaseModel):
    """A part of a day; it lasts until the next one starts."""

    model_config = ConfigDict(frozen=True)

    start: Clock
    what: str = Field(min_length=1, max_length=200)
    place: Where = []
    keeps: int = Field(0, ge=0, le=10_000)


class Strokes(BaseModel):
    """A day in broad strokes."""

    model_config = ConfigDict(frozen=True)

    wake: Clock
    bed: Clock
    strokes: list[Stroke] = Field(min_length=1, max_length=16)
    currently: str = Field("", max_length=800)

    @model_validator(mode="after")
    def _has_waking_hours(self) -> Self:
        check_waking_hours(self.wake, self.bed, [each.start for each in self.strokes])
        return self


class PlanStrokes(Prompt[Strokes]):
    """What will somebody do today, in broad strokes?"""

    role: ClassVar[str] = "planner"

    who: str
    identity: str
    date: str
    memories: tuple[Memory, ...] = ()
    """What comes to mind of the days before and of today, numbered from 1."""
    yesterday: tuple[str, ...] = ()
    """Yesterday in broad strokes."""
    places: tuple[str, ...]
    """The tree of places that it knows, a branch a line, numbered from 1."""
    usual: tuple[Usual, ...] = ()
    surroundings: str = ""
    """Who lives there, and what the weather is like."""


@rule(PlanStrokes)
def keep_the_usual_strokes(ask: PlanStrokes) -> Strokes:
    """Stand in for a model: the usual day as its parts follow each other."""
    wake, bed = (ask.usual[0].start, ask.usual[-1].end) if ask.usual else (WAKE, BED)
    bed = min(bed, wake + DAY_MINUTES - 1)
    strokes = [
        Stroke(start=clock(each.start), what=each.what, place=[str(each.place)] if each.place else [])
        for each in ask.usual[:16]
    ]
    return Strokes(
        wake=clock(wake), bed=clock(bed), strokes=strokes or [Stroke(start=clock(wake), what="being at home")]
    )
