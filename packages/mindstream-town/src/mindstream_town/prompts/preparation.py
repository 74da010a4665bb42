"""Prompts that read the descriptions in a town file (`town prepare`)."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

from pydantic import Field

from mindstream.frozen import Frozen
from mindstream.models.prompt import Prompt
from mindstream_town.prompts.plans import Clock

Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
Number = Field(0, ge=0, le=100_000, description="Its number; 0: none.")


class DayPart(Frozen):
    """A part of a usual day."""

    start: Clock
    end: Clock
    what: str = Field(min_length=1, max_length=200)
    place: int = Number
    on: list[Weekday] = Field(default_factory=list, max_length=7)
    duty: bool = False


class Dated(Frozen):
    """Something that takes place at one time."""

    of: int = Number
    text: str = Field(min_length=1, max_length=1_000, description="One sentence that tells of it.")
    what: str = Field(min_length=1, max_length=200, description='What is done then, as in "having a party".')
    place: int = Number
    day: datetime.date
    start: Clock
    end: Clock
    host: str = ""
    who: list[str] = Field(default_factory=list, max_length=50)


class Acquaintance(Frozen):
    """A person whom the resident knows."""

    who: str
    kind: str = Field(min_length=1, max_length=100, description='As what: "wife", "neighbour".')


class ResidentKeys(Frozen):
    """What a resident's prose says as keys."""

    day: list[DayPart] = Field(min_length=1, max_length=60)
    bed: int = Number
    agreed: list[Dated] = Field(default_factory=list, max_length=20)
    knows: list[Acquaintance] = Field(default_factory=list, max_length=50)


class PrepareResident(Prompt[ResidentKeys]):
    """Which keys does a resident's description support?"""

    role = "planner"

    who: str
    prose: str
    sentences: tuple[str, ...] = ()
    """Memories from before the town began, numbered from 1."""
    home: str
    date: str
    places: tuple[str, ...]
    """Addresses of places and objects, numbered from 1."""
    people: tuple[str, ...]


Condition = Annotated[str, Field(min_length=1, max_length=80)]


class PlaceKeys(Frozen):
    """The missing keys of one place."""

    place: int = Field(ge=1, le=100_000, description="Its number.")
    purpose: list[Condition] = Field(default_factory=list, max_length=5)
    public: bool | None = None
    owners: list[str] = Field(default_factory=list, max_length=20)


class TownKeys(Frozen):
    """The missing keys of a town's places and things."""

    places: list[PlaceKeys] = Field(max_length=1_000)
    danger: list[Condition] = Field(min_length=1, max_length=40)
    fine: list[Condition] = Field(default_factory=list, max_length=40)


class PreparePlaces(Prompt[TownKeys]):
    """Which keys do the places of a town have?"""

    role = "planner"

    places: tuple[str, ...]
    """Addresses of places with their objects, numbered from 1."""
    people: tuple[str, ...]
    """Names of the residents with their homes and occupations."""
