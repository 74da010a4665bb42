"""What residents need of a world, whether it has tiles (tiles.py) or only places and distances (graph.py)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Protocol

from pydantic import BaseModel, ConfigDict

from mindstream import chance
from mindstream_town.world.tree import Address

Spot = tuple[int, int]
"""Where somebody stands. In a world of tiles: x from the left, y from the top."""


class Routes(Protocol):
    """Shortest ways, never through walls. A goal is a spot or an address (then its nearest spot is gone to)."""

    def distance(self, start: Spot, goal: Address | Spot) -> int:
        """Count the steps of the shortest way.

        Raises:
            InputError: there is no way; the message names both ends.
        """

    def path(self, start: Spot, goal: Address | Spot) -> tuple[Spot, ...]:
        """Return the spots of a shortest way after `start`, the goal's last; empty if it is reached already.

        The same every time: of equal ways the one that goes up, left, down, right first.

        Raises:
            InputError: there is no way.
        """

    def is_reachable(self, start: Spot, goal: Address | Spot) -> bool:
        """Tell whether there is a way."""


class Places(Protocol):
    """What a world is called, and what is in it."""

    @property
    def name(self) -> str:
        """Of the world: the first name of every address."""

    @property
    def places(self) -> tuple[Address, ...]:
        """Every address, parents before children, the world's own first; its position here is its number."""

    @property
    def routes(self) -> Routes:
        """The ways through it."""

    def number(self, address: Address) -> int:
        """Return a place's position in `places`.

        Raises:
            InputError: the world has no such place.
        """


class Sight(Protocol):
    """What can be perceived from where; quick when asked again."""

    def visible(self, spot: Spot, radius: int) -> tuple[Spot, ...]:
        """Return the spots at most `radius` apart that are in the same arena, in a fixed order."""

    def objects_in(self, arena: int) -> tuple[tuple[Spot, int], ...]:
        """Return the spots of the objects in an arena (by its number), with the objects' numbers, in a fixed order."""


class World(Places, Sight, Protocol):
    """Where places lie and what is near. Nothing in it ever changes."""

    def address_at(self, spot: Spot) -> Address:
        """Return the narrowest address of a spot; the world's own where nothing is."""

    def spots(self, address: Address) -> tuple[Spot, ...]:
        """Return the spots of a place, the places in it included, walls excluded unless there is nothing else.

        Raises:
            InputError: the world has no such place.
        """

    def arena_of(self, spot: Spot) -> int:
        """Return the number (in `places`) of the arena around a spot, else of the sector, else of the world (0)."""

    def distance(self, a: Spot, b: Spot) -> int:
        """Return how far two spots are apart for eyes and causes; a step changes it by at most one."""

    def near(self, spot: Spot, radius: int) -> Sequence[Spot]:
        """Return the spots at most `radius` apart, the spot itself too, in a fixed order."""

    def walkable(self, spot: Spot) -> bool:
        """Tell whether one can stand there."""


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
