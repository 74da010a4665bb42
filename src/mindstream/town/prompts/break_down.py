"""What does somebody do minute by minute? (Park 2023, 4.3: chunks of 5 to 15 minutes)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt


class Task(BaseModel):
    """A task of some minutes."""

    model_config = ConfigDict(frozen=True)

    minutes: int = Field(ge=1, le=240)
    what: str = Field(min_length=1, max_length=200)
    place: int = Field(0, ge=0, le=10_000, description="The number of the thing it is done at; 0: none.")
    leaves: str = Field("", max_length=80, description="The condition in which it leaves that thing; mostly empty.")


class Tasks(BaseModel):
    """Tasks, one after the other."""

    model_config = ConfigDict(frozen=True)

    tasks: list[Task] = Field(min_length=1, max_length=60)


class BreakDown(Prompt[Tasks]):
    """What does somebody do in this part of the day, in tasks of 5 to 15 minutes?"""

    role: ClassVar[str] = "planner"

    who: str
    identity: str
    what: str
    where: str = ""
    """The place, in words."""
    is_home: bool = False
    """The place is the person's home."""
    when: str
    already: int = 0
    """So many minutes of it are done."""
    minutes: int
    around: tuple[str, ...]
    """Things that it can be done at, numbered from 1."""
    day: tuple[str, ...] = ()
