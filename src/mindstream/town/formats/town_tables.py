"""The tables of a town file, as they stand in it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

MOST_RESIDENTS, MOST_LINES = 10_000, 1_000
ShortText = Annotated[str, Field(min_length=1, max_length=1_000)]
Paragraph = Annotated[str, Field(max_length=20_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Clock = Annotated[str, Field(pattern=r"^([01]?\d|2[0-4]):[0-5]\d$")]
Mark = Annotated[str, Field(min_length=1, max_length=1)]
Marks = Annotated[str, Field(min_length=1, max_length=20)]


class Table(BaseModel):
    """A table of which every key is known."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class TownTable(Table):
    """`[town]`: what it is called, when its story begins, and its weather, by day or by date."""

    name: Name
    start: datetime | None = None
    weather: list[Name] | dict[str, Name] = Field(default_factory=list, max_length=MOST_LINES)


class MapTable(Table):
    """`[map]`: a drawing, or a file beside the town file."""

    rows: str = ""
    things: str = ""
    wall: Marks = "#"
    ground: Mark = "."
    places: dict[str, ShortText] = Field(default_factory=dict)
    objects: dict[str, Name] = Field(default_factory=dict)
    spawns: dict[str, Name] = Field(default_factory=dict)
    file: str = ""
    tables: str = ""
    skip: list[int] = Field(default_factory=list)


class RoadTable(Table):
    """`[[roads]]`: a way between two places, for a town without tiles."""

    start: ShortText = Field(alias="from")
    end: ShortText = Field(alias="to")
    steps: int = Field(ge=1)


class PlaceTable(Table):
    """`[[places]]`: what holds at a place, and, without tiles, what is in it."""

    address: ShortText
    hours: str | None = None
    days: list[str] | None = None
    capacity: int | None = Field(default=None, ge=1)
    owners: list[Name] | None = None
    public: bool | None = None
    purpose: list[Name] | None = None
    objects: list[Name] = Field(default_factory=list)


class ConditionsTable(Table):
    """`[conditions]`: what the conditions of objects mean."""

    danger: list[Name] = Field(default_factory=list, max_length=MOST_LINES)
    fine: list[Name] = Field(default_factory=list, max_length=MOST_LINES)


class DayTable(Table):
    """A part of a resident's usual day."""

    start: Clock = Field(alias="from")
    end: Clock = Field(alias="to")
    what: Name
    where: str = ""
    on: list[str] = Field(default_factory=list)
    duty: bool = False


class SeedTable(Table):
    """What a resident remembers from before; with `what`, `from` and `to` an appointment."""

    text: ShortText
    weight: int = Field(0, ge=0, le=10)
    secret: bool = False
    what: str = ""
    where: str = ""
    start: datetime | None = Field(None, alias="from")
    end: datetime | None = Field(None, alias="to")
    host: str = ""
    who: list[Name] = Field(default_factory=list)


class RelationTable(Table):
    """Who somebody is to a resident."""

    who: Name
    kind: Name = Field(alias="as")


class ResidentTable(Table):
    """`[[residents]]`: who lives in the town."""

    name: Name
    age: int = Field(ge=0, le=200)
    innate: Paragraph = ""
    learned: Paragraph = ""
    currently: Paragraph = ""
    lifestyle: Paragraph = ""
    routine: Paragraph = ""
    about: Paragraph = ""
    home: ShortText
    bed: str = ""
    start: str = ""
    day: list[DayTable] = Field(default_factory=list, max_length=MOST_LINES)
    knows: list[ShortText] = Field(default_factory=list, max_length=MOST_LINES)
    household: list[Name] = Field(default_factory=list, max_length=MOST_LINES)
    relations: list[RelationTable] = Field(default_factory=list, max_length=MOST_LINES)
    seeds: list[SeedTable] = Field(default_factory=list, max_length=MOST_LINES)

    @field_validator("seeds", mode="before")
    @classmethod
    def _of_texts(cls, seeds: Any) -> Any:
        """Take a text for a memory with no other key."""
        every = seeds if isinstance(seeds, list) else []
        return [{"text": each} if isinstance(each, str) else each for each in every] or seeds


class TownTables(Table):
    """A whole town file."""

    town: TownTable
    map: MapTable | None = None
    roads: list[RoadTable] = Field(default_factory=list)
    places: list[PlaceTable] = Field(default_factory=list)
    conditions: ConditionsTable = Field(default_factory=ConditionsTable)
    residents: list[ResidentTable] = Field(default_factory=list, max_length=MOST_RESIDENTS)
