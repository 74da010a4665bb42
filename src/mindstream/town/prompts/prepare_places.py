"""What are the places of a town for, whose are they, and which conditions of things are dangers there?"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt

Condition = Annotated[str, Field(min_length=1, max_length=80)]


class PlaceKeys(BaseModel):
    """What is to be said of one place."""

    model_config = ConfigDict(frozen=True)

    place: int = Field(ge=1, le=100_000, description="Its number.")
    purpose: list[Condition] = Field(default_factory=list, max_length=5)
    public: bool | None = None
    owners: list[str] = Field(default_factory=list, max_length=20)


class TownKeys(BaseModel):
    """What is to be said of a town's places and things."""

    model_config = ConfigDict(frozen=True)

    places: list[PlaceKeys] = Field(max_length=1_000)
    danger: list[Condition] = Field(min_length=1, max_length=40)
    fine: list[Condition] = Field(default_factory=list, max_length=40)


class PreparePlaces(Prompt[TownKeys]):
    """Which keys do the places of a town have?"""

    role: ClassVar[str] = "planner"

    places: tuple[str, ...]
    """By address, each with its things, numbered from 1."""
    people: tuple[str, ...]
    """Who lives where, and what they do."""
