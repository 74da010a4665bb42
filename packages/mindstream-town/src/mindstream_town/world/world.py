"""A world of either kind, the conditions of its objects, its weather and its light."""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel, ConfigDict

from mindstream import chance
from mindstream_town.world.graph import PlaceWorld
from mindstream_town.world.tiles import TileWorld

World = TileWorld | PlaceWorld
"""Both kinds have the same methods: places, spots, sight, distances and `routes` (docs/town-inside.md, "The world")."""


class Conditions(BaseModel):
    """Conditions with a meaning, compared without case.

    Attributes:
        danger: they wake sleepers in the room and have priority.
        fine: they need no action. All others wait to be repaired.
    """

    model_config = ConfigDict(frozen=True)

    danger: tuple[str, ...] = ()
    fine: tuple[str, ...] = ()

    def is_fine(self, condition: str) -> bool:
        """Return whether the town's file says that a condition needs no action."""
        return condition.strip().casefold() in {each.strip().casefold() for each in self.fine}


USUAL = ("mild and dry", "sunny", "cloudy", "windy", "a shower in the afternoon", "rain, off and on", "fog until noon")
"""Weather if the file says nothing; it fits any season."""
LIGHT = ((5, "night"), (7, "dawn"), (18, "daylight"), (20, "dusk"), (24, "night"))
"""The hour until which each light lasts."""


class Weather(BaseModel):
    """The weather in a town file.

    Attributes:
        days: of the first day, the second, …; repeated when they are over.
        dates: of single dates; they have priority over `days`.
    """

    model_config = ConfigDict(frozen=True)

    days: tuple[str, ...] = ()
    dates: dict[date, str] = {}

    def of(self, seed: int, day: int, on: date) -> str:
        """Return the weather of a day, counted from the town's first; the same for the same seed."""
        if on in self.dates:
            return self.dates[on]
        return self.days[day % len(self.days)] if self.days else chance.pick(USUAL, seed, "weather", day)


def light_at(hour: int) -> str:
    """Return the light at an hour of the day."""
    return next(light for until, light in LIGHT if hour < until)
