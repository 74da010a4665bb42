"""What will somebody do today? In broad strokes, then hour by hour (Park 2023, 4.3)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt

Clock = Annotated[str, Field(pattern=r"^([01]?\d|2[0-4]):[0-5]\d$", description="As HH:MM.")]


class Place(BaseModel):
    """A place that somebody knows and may go to.

    Attributes:
        words: as in "library of Oak Hill College".
        things: what is there. home: it is where the person lives. own: it belongs to the person.
        hours: when it is open today; "" always, or nobody knows.
    """

    model_config = ConfigDict(frozen=True)

    words: str
    things: tuple[str, ...] = ()
    home: bool = False
    own: bool = False
    hours: str = ""

    @property
    def line(self) -> str:
        """All of it on one line: `cafe of Oak Cafe (open 08:00-20:00): counter, piano`."""
        whose = "at home" if self.home else "your own" if self.own else ""
        whose = "at home" if self.home else "your own" if self.own else ""
        more = ", ".join(each for each in (whose, self.hours and _hours(self.hours)) if each)
        things = f": {', '.join(self.things)}" if self.things else ""
        return f"{self.words}{f' ({more})' if more else ''}{things}"


def _hours(hours: str) -> str:
    return "closed today" if hours == "closed" else f"open {hours}"


class Item(BaseModel):
    """A part of a day."""

    model_config = ConfigDict(frozen=True)

    start: Clock
    minutes: int = Field(ge=5, le=1_440)
    what: str = Field(min_length=1, max_length=200, description='What is done, as in "having lunch".')
    place: int = Field(0, ge=0, le=10_000, description="The number of the place; 0: at home, or anywhere.")


class DayPlan(BaseModel):
    """A day."""

    model_config = ConfigDict(frozen=True)

    wake: Clock
    bed: Clock
    items: list[Item] = Field(min_length=1, max_length=24, description="From getting up to going to bed, in order.")
    currently: str = Field("", max_length=800, description="What the person is about these days, as of today.")


class PlanDay(Prompt[DayPlan]):
    """What will somebody do today?"""

    role: ClassVar[str] = "planner"

    who: str
    identity: str
    date: str
    memories: tuple[str, ...] = ()
    """What comes to mind of the days before and of today, each after the day on which it was written down."""
    yesterday: tuple[str, ...] = ()
    """Yesterday in broad strokes."""
    places: tuple[Place, ...]
    """Where one can go, numbered from 1."""
    currently: str = ""
    """What the person has been about, as it stands in the identity."""
