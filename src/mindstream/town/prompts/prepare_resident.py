"""What does the prose about a resident say as keys of a town file?"""

from __future__ import annotations

import datetime
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt
from mindstream.town.prompts.plan_day import Clock

Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
Number = Field(0, ge=0, le=100_000, description="Its number; 0: none.")


class DayPart(BaseModel):
    """A part of a usual day."""

    model_config = ConfigDict(frozen=True)

    start: Clock
    end: Clock
    what: str = Field(min_length=1, max_length=200)
    place: int = Number
    on: list[Weekday] = Field(default_factory=list, max_length=7)
    duty: bool = False


class Dated(BaseModel):
    """Something that takes place at one time."""

    model_config = ConfigDict(frozen=True)

    of: int = Number
    text: str = Field(min_length=1, max_length=1_000, description="One sentence that tells of it.")
    what: str = Field(min_length=1, max_length=200, description='What is done then, as in "having a party".')
    place: int = Number
    day: datetime.date
    start: Clock
    end: Clock
    host: str = ""
    who: list[str] = Field(default_factory=list, max_length=50)


class Acquaintance(BaseModel):
    """Somebody who is known."""

    model_config = ConfigDict(frozen=True)

    who: str
    kind: str = Field(min_length=1, max_length=100, description='As what: "wife", "neighbour".')


class ResidentKeys(BaseModel):
    """What a resident's prose says as keys."""

    model_config = ConfigDict(frozen=True)

    day: list[DayPart] = Field(min_length=1, max_length=60)
    bed: int = Number
    agreed: list[Dated] = Field(default_factory=list, max_length=20)
    knows: list[Acquaintance] = Field(default_factory=list, max_length=50)


class PrepareResident(Prompt[ResidentKeys]):
    """Which keys does the prose about somebody bear?"""

    role: ClassVar[str] = "planner"

    who: str
    prose: str
    sentences: tuple[str, ...] = ()
    """What the person remembers from before, numbered from 1."""
    home: str
    date: str
    places: tuple[str, ...]
    """Places and things by address, numbered from 1."""
    people: tuple[str, ...]
