"""A world without tiles: places connected by roads."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mindstream.errors import InputError
from mindstream_town.world.tree import ARENA, OBJECT, Address, Spot

MOST_SPOTS = 100_000


@dataclass(frozen=True)
class Road:
    """A road between two places; `steps` is its length, at least 1."""

    start: Address
    end: Address
    steps: int


@dataclass(frozen=True, eq=False)
class PlaceWorld:
    """Places connected by roads. Created by `build_places`.

    The spot of `ends[i]` is `(i, 0)`; the k-th spot inside the r-th road is `(k, r)`, with k and r counted from 1.
    A place without a road has the spot of the place that contains it; objects have the spot of their arena.

    Attributes:
        ends: places with roads, in order.
        roads: roads that the world was built from.
        neighbours: spots one step away, for each spot.
    """

    name: str
    places: tuple[Address, ...]
    ends: tuple[Address, ...]
    roads: tuple[Road, ...]
    neighbours: Mapping[Spot, Sequence[Spot]]

    def address_at(self, spot: Spot) -> Address:
        """Return the place of a spot; for a spot on a road, return the world.

        Raises:
            InputError: the world has no such spot.
        """
        if spot not in self.neighbours:
            raise InputError(f"{self.name} has no spot {spot}")
        return self.ends[spot[0]] if spot[1] == 0 else self.places[0]

    def arena_of(self, spot: Spot) -> int:
        """Return the number of the arena or sector of a spot; 0 on a road."""
        return self._numbers[self.ends[spot[0]].upto(ARENA)] if spot[1] == 0 else 0

    def spots(self, address: Address) -> tuple[Spot, ...]:
        """Return the spots in a place.

        If the place has none, return the spot of the narrowest surrounding place that has one; () if there is none.

        Raises:
            InputError: the world has no such place.
        """
        self.number(address)
        if inside := tuple((i, 0) for i, end in enumerate(self.ends) if end.is_within(address)):
            return inside
        around = address.parent
        while around is not None and around not in self.ends:
            around = around.parent
        return ((self.ends.index(around), 0),) if around is not None else ()

    def distance(self, a: Spot, b: Spot) -> int:
        """Return the number of steps between two spots along roads."""
        return self.routes.distance(a, b)

    def near(self, spot: Spot, radius: int) -> list[Spot]:
        """Return the spots within a number of steps (`radius`), nearest first."""
        return [there for there, steps in spread(self.neighbours, [spot], radius).items() if steps <= radius]

    def places_around(self, spot: Spot, radius: int) -> set[Address]:
        """Return the narrowest place of each spot within a number of steps (`radius`); for a spot on a road, this is
        the world."""
        return {self.address_at(each) for each in self.near(spot, radius)}

    def visible(self, spot: Spot, radius: int) -> tuple[Spot, ...]:
        """Return the spots within a number of steps (`radius`) that are in the same arena, nearest first."""
        return tuple(there for there in self.near(spot, radius) if self.arena_of(there) == self.arena_of(spot))

    def number(self, address: Address) -> int:
        """Return a place's index in `places`.

        Raises:
            InputError: the world has no such place.
        """
        if address not in self._numbers:
            raise InputError(f"{self.name} has no place {str(address)!r}")
        return self._numbers[address]

    def objects_in(self, arena: int) -> tuple[tuple[Spot, int], ...]:
        """Return the spots of the objects in an arena (given by number), each with the object's number."""
        inside = [
            address for address in self.places if address.level == OBJECT and address.parent == self.places[arena]
        ]
        return tuple((spot, self._numbers[address]) for address in inside for spot in self.spots(address))

    def walkable(self, spot: Spot) -> bool:
        return spot in self.neighbours

    @cached_property
    def routes(self) -> PlaceRoutes:
        """Shortest paths."""
        return PlaceRoutes(self)

    @cached_property
    def _numbers(self) -> dict[Address, int]:
        return {address: number for number, address in enumerate(self.places)}


class PlaceRoutes:
    """Shortest paths along roads. A goal is a spot or an address."""

    def __init__(self, world: PlaceWorld) -> None:
        self._world = world
        self._fields: dict[Address | Spot, dict[Spot, int]] = {}

    def distance(self, start: Spot, goal: Address | Spot) -> int:
        """Return the length of the shortest path, in steps from spot to spot.

        Raises:
            InputError: the goal cannot be reached, or there is no such spot or place.
        """
        return self._field(start, goal)[start]

    def is_reachable(self, start: Spot, goal: Address | Spot) -> bool:
        """Return whether the goal can be reached."""
        return self._world.walkable(start) and start in self._look_up(goal)

    def path(self, start: Spot, goal: Address | Spot) -> tuple[Spot, ...]:
        """Return the spots of a shortest path, without `start`.

        Raises:
            InputError: the goal cannot be reached, or there is no such spot or place.
        """
        field = self._field(start, goal)
        spots = []
        for steps in range(field[start] - 1, -1, -1):
            start = next(there for there in self._world.neighbours[start] if field[there] == steps)
            spots.append(start)
        return tuple(spots)

    def _field(self, start: Spot, goal: Address | Spot) -> dict[Spot, int]:
        field = self._look_up(goal)
        if start not in field:
            raise InputError(f"{goal} cannot be reached from {start} in {self._world.name}")
        return field

    def _look_up(self, goal: Address | Spot) -> dict[Spot, int]:
        if goal not in self._fields:
            if len(self._fields) * len(self._world.neighbours) > MOST_SPOTS * 20:
                self._fields.clear()
            ends = (
                self._world.spots(goal) if isinstance(goal, Address) else [goal] if self._world.walkable(goal) else []
            )
            self._fields[goal] = spread(self._world.neighbours, ends)
        return self._fields[goal]


def spread(neighbours: Mapping[Spot, Sequence[Spot]], ends: Iterable[Spot], most: int | None = None) -> dict[Spot, int]:
    """Return the distance of each spot to the nearest of `ends`, the nearest spots first.

    Args:
        most: maximum distance; farther spots are left out. None: no limit.
    """
    field = dict.fromkeys(ends, 0)
    wave, steps = list(field), 0
    while wave and (most is None or steps < most):
        steps += 1
        reached = list(dict.fromkeys(there for spot in wave for there in neighbours[spot] if there not in field))
        field.update(dict.fromkeys(reached, steps))
        wave = reached
    return field


def build_places(world: Address, places: Iterable[Address], roads: Sequence[Road]) -> PlaceWorld:
    """Build a world of places and roads. Places that contain a given place are added.

    Raises:
        InputError: a place or the end of a road is outside of `world`, a road has less than one step, a place is
            unreachable, or the roads have more than MOST_SPOTS steps in total.
    """
    known = dict.fromkeys([world])
    for address in [*places, *(end for road in roads for end in (road.start, road.end))]:
        if not address.is_within(world):
            raise InputError(f"{str(address)!r} must be inside of {str(world)!r}")
        known.update(dict.fromkeys(address.upto(level) for level in range(1, address.level + 1)))
    ends = tuple(dict.fromkeys(end for road in roads for end in (road.start, road.end))) or (world,)
    if sum(max(1, road.steps) for road in roads) > MOST_SPOTS:
        raise InputError(f"the roads of {world} have more than {MOST_SPOTS:,} steps in total")
    result = PlaceWorld(world.last, tuple(known), ends, tuple(roads), _pave(ends, roads))
    reached = spread(result.neighbours, [(0, 0)])
    for i, end in enumerate(ends):
        if (i, 0) not in reached:
            raise InputError(f"{end} cannot be reached from {ends[0]}: add a road")
    for address in known:
        if address.level > 1 and not result.spots(address):
            raise InputError(f"{str(address)!r} cannot be reached: add a road to it")
    return result


def _pave(ends: tuple[Address, ...], roads: Sequence[Road]) -> dict[Spot, tuple[Spot, ...]]:
    neighbours: dict[Spot, list[Spot]] = defaultdict(list, {(i, 0): [] for i in range(len(ends))})
    for r, road in enumerate(roads, start=1):
        if road.steps < 1:
            raise InputError(f"the road from {road.start} to {road.end}: expected at least 1 step, found {road.steps}")
        stations = [(ends.index(road.start), 0), *((k, r) for k in range(1, road.steps)), (ends.index(road.end), 0)]
        for a, b in itertools.pairwise(stations):
            neighbours[a].append(b)
            neighbours[b].append(a)
    return {spot: tuple(others) for spot, others in neighbours.items()}
