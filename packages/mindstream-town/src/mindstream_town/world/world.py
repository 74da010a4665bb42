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
    """Conditions by name, as they are written where an object comes into one; small and capital letters are the same.

    Attributes:
        danger: these wake who sleeps beside them, and come before everything.
        fine: nobody does anything about these. What is neither is not as it should be, and waits to be mended.
    """

    model_config = ConfigDict(frozen=True)

    danger: tuple[str, ...] = ()
    fine: tuple[str, ...] = ()

    def is_fine(self, condition: str) -> bool:
        """Tell whether the file says that nothing is to be done about this condition."""
        return condition.strip().casefold() in {each.strip().casefold() for each in self.fine}


USUAL = ("mild and dry", "sunny", "cloudy", "windy", "a shower in the afternoon", "rain, off and on", "fog until noon")
"""What a day can be like where the file does not say: it fits any season."""
LIGHT = ((5, "night"), (7, "dawn"), (18, "daylight"), (20, "dusk"), (24, "night"))
"""Until which hour which light is."""


class Weather(BaseModel):
    """What the file of a town says of its weather.

    Attributes:
        days: of the first day, the second, …; when they are over they begin again.
        dates: of single dates, written as 2024-09-03; before `days`.
    """

    model_config = ConfigDict(frozen=True)

    days: tuple[str, ...] = ()
    dates: dict[date, str] = {}

    def of(self, seed: int, day: int, on: date) -> str:
        """Return the weather of a day, counted from the town's first: the same for the same seed."""
        if on in self.dates:
            return self.dates[on]
        return self.days[day % len(self.days)] if self.days else chance.pick(USUAL, seed, "weather", day)


def light_at(hour: int) -> str:
    """Return how light it is at an hour of the day."""
    return next(light for until, light in LIGHT if hour < until)
