"""What will somebody do today, from getting up to going to bed? All of it in one reply."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from mindstream.models.prompt import Prompt, rule
from mindstream.town.prompts.memory import Memory
from mindstream.town.prompts.plan_day import AT_HOME, BED, WAKE, Clock, Place
from mindstream.town.world.hours import clock

MOST = 60


class SceneItem(BaseModel):
    """A part of a day."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    start: Clock = Field(alias="from")
    end: Clock = Field(alias="to")
    what: str = Field(min_length=1, max_length=200)
    place: str = Field("", max_length=200, description="A name from the list; empty: at home.")
    thing: str = Field("", max_length=100)
    state: str = Field("", max_length=80)
    busy: bool = False
    weight: int = Field(1, ge=1, le=10)

    @field_validator("place", "thing", "state", mode="before")
    @classmethod
    def _nothing(cls, given: Any) -> Any:
        return given or ""


class SceneDay(BaseModel):
    """A day."""

    model_config = ConfigDict(frozen=True)

    items: list[SceneItem] = Field(min_length=1, max_length=MOST)


class PlanScenes(Prompt[SceneDay]):
    """What will somebody do today?"""

    role: ClassVar[str] = "planner"

    who: str
    identity: str
    date: str
    weather: str = ""
    memories: tuple[Memory, ...] = ()
    """What comes to mind, each after the day on which it was written down."""
    yesterday: tuple[str, ...] = ()
    places: tuple[Place, ...]
    usual: tuple[str, ...] = ()
    """The usual day, as it is on such a weekday: `08:00-12:00 work (duty)`."""


@rule(PlanScenes)
def stay_at_home(ask: PlanScenes) -> SceneDay:  # noqa: ARG001
    """Stand in where a model plans elsewhere: a day at home."""
    return SceneDay(items=[SceneItem(start=clock(WAKE), end=clock(BED), what=AT_HOME)])
