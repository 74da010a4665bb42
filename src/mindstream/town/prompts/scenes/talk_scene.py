"""Do two people who meet speak, what do they say, and what does each keep of it? The whole talk in one reply."""

from __future__ import annotations

import datetime
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from mindstream.models.prompt import Prompt, rule
from mindstream.town.prompts.plan_day import Clock


class SceneLine(BaseModel):
    """What one says."""

    model_config = ConfigDict(frozen=True)

    who: str = Field(max_length=200)
    says: str = Field(min_length=1, max_length=600)
    tells: list[int] = Field(default_factory=list, max_length=20)


class SceneAgreed(BaseModel):
    """What both have agreed on."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    what: str = Field(min_length=1, max_length=200, description='What is done then, as in "having lunch with Ada".')
    place: str = Field("", max_length=200)
    day: datetime.date | None = None
    start: Clock | None = Field(None, alias="from")
    end: Clock | None = Field(None, alias="to")
    who: list[str] = Field(default_factory=list, max_length=20)


class SceneMemory(BaseModel):
    """What one of them keeps."""

    model_config = ConfigDict(frozen=True)

    who: str = Field(max_length=200)
    text: str = Field(min_length=1, max_length=400)
    weight: int = Field(3, ge=1, le=10)


class SceneChange(BaseModel):
    """A part of one's day that the talk has overtaken."""

    model_config = ConfigDict(frozen=True)

    number: int
    becomes: str = Field(min_length=1, max_length=200, description="What is done in those hours now.")
    place: str = Field("", max_length=200, description="A name from the list; empty: where it was.")


class Scene(BaseModel):
    """What happened between two people."""

    model_config = ConfigDict(frozen=True)

    talk: bool
    declined_by: str = Field("", max_length=200)
    lines: list[SceneLine] = Field(default_factory=list, max_length=12)
    agreed: list[SceneAgreed] = Field(default_factory=list, max_length=4)
    changes: list[SceneChange] = Field(default_factory=list, max_length=8)
    places: list[str] = Field(default_factory=list, max_length=8)
    remember: list[SceneMemory] = Field(default_factory=list, max_length=8)
    overheard: str = Field("", max_length=400)

    @field_validator("declined_by", "overheard", mode="before")
    @classmethod
    def _nobody(cls, given: Any) -> Any:
        return given or ""


class Side(BaseModel):
    """One of the two.

    Attributes:
        text: who that is, as far as it may be told.
        memories: what comes to mind of the other and of this place, each after its number.
        plan: what lies before it today, what it is at first, each after its number.
    """

    model_config = ConfigDict(frozen=True)

    who: str
    text: str
    doing: str
    memories: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()


class TalkScene(Prompt[Scene]):
    """What happens between two people who are at the same place? The first comes up to the second."""

    role: ClassVar[str] = "talker"

    sides: tuple[Side, Side]
    when: str
    weather: str = ""
    place: str
    near: tuple[str, ...] = ()
    """Who else is in sight."""
    before: str = ""
    """When they last met; "" never."""
    strangers: bool = False
    """Neither knows the other."""
    places: tuple[str, ...] = ()
    """What both can speak of, in words."""


@rule(TalkScene)
def nod(ask: TalkScene) -> Scene:  # noqa: ARG001
    """Stand in where no model talks: nobody speaks."""
    return Scene(talk=False)
