"""What does somebody do hour by hour in a part of the day? (Park 2023, 4.3)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt, rule
from mindstream.town.prompts.plan_day import Clock
from mindstream.town.prompts.where import Where
from mindstream.town.world.hours import clock, minute_of


class Hour(BaseModel):
    """What is done in an hour or so; it lasts until the next one starts."""

    model_config = ConfigDict(frozen=True)

    start: Clock
    what: str = Field(min_length=1, max_length=200)
    place: Where = []


class Hours(BaseModel):
    """A part of a day, hour by hour."""

    model_config = ConfigDict(frozen=True)

    hours: list[Hour] = Field(min_length=1, max_length=24)


class PlanHours(Prompt[Hours]):
    """What does somebody do in this part of the day, hour by hour?"""

    role: ClassVar[str] = "planner"

    who: str
    identity: str
    what: str
    where: str = ""
    """The place, as a path of names."""
    start: str
    end: str
    day: tuple[str, ...] = ()
    """The day in broad strokes."""
    done: tuple[str, ...] = ()
    """What it has done today, as `HH:MM-HH:MM what`."""
    lately: tuple[str, ...] = ()
    """The newest of what it remembers."""
    places: tuple[str, ...]
    """The tree of places that it knows, a branch a line, numbered from 1."""
    surroundings: str = ""


AN_HOUR = 60


@rule(PlanHours)
def go_on_for_hours(ask: PlanHours) -> Hours:
    """Stand in for a model: the same, hour after hour."""
    start, end = minute_of(ask.start), minute_of(ask.end)
    starts = range(start, max(end, start + 1), AN_HOUR)
    return Hours(hours=[Hour(start=clock(each), what=ask.what) for each in starts][:24])
