"""A world of either kind (tiles or roads), the conditions of its objects, its weather and its light; the time of a
day."""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel

from mindstream import chance
from mindstream.frozen import Frozen
from mindstream_town.world.graph import PlaceWorld
from mindstream_town.world.tiles import TileWorld

World = TileWorld | PlaceWorld
"""Both kinds have the same methods: places, spots, sight, distances and `routes` (docs/town-inside.md, "The world")."""


class Conditions(Frozen):
    """Conditions with a special meaning, compared without regard to case.

    Attributes:
        danger: conditions that wake sleepers in the room and have priority over plans.
        fine: conditions that need no action. All other conditions wait for a repair.
    """

    danger: tuple[str, ...] = ()
    fine: tuple[str, ...] = ()

    def is_fine(self, condition: str) -> bool:
        """Return whether the town file says that a condition needs no action."""
        return condition.strip().casefold() in {each.strip().casefold() for each in self.fine}


USUAL = ("mild and dry", "sunny", "cloudy", "windy", "a shower in the afternoon", "rain, off and on", "fog until noon")
"""Weather if the town file has none; it fits any season."""
LIGHT = ((5, "night"), (7, "dawn"), (18, "daylight"), (20, "dusk"), (24, "night"))
"""Pairs of an hour and the light until that hour."""


class Weather(BaseModel, frozen=True):
    """The weather of a town.

    Attributes:
        days: weather of the first day, the second, …; it starts again after the last one.
        dates: weather of single dates, which has priority over `days`.
    """

    days: tuple[str, ...] = ()
    dates: dict[date, str] = {}

    def of(self, seed: int, day: int, on: date) -> str:
        """Return the weather of a day (0 is the first) on a date; it is the same for the same seed."""
        if on in self.dates:
            return self.dates[on]
        return self.days[day % len(self.days)] if self.days else chance.pick(USUAL, seed, "weather", day)


def light_at(hour: int) -> str:
    """Return the light at an hour of the day in words."""
    return next(light for until, light in LIGHT if hour < until)


DAY_MINUTES = 24 * 60


def minute_of(clock: str) -> int:
    """Return the minute of the day of a text `HH:MM`; `24:00` is the end of the day."""
    hours, _, minutes = clock.partition(":")
    return min(int(hours) * 60 + int(minutes), DAY_MINUTES)


def clock(minute: int) -> str:
    """Return a minute of the day as `HH:MM`. 1440 is 24:00; later minutes are of the next day (1441 is 00:01)."""
    minute = minute if minute <= DAY_MINUTES else minute - DAY_MINUTES
    return f"{minute // 60:02d}:{minute % 60:02d}"
