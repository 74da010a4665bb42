"""Shortest ways over tiles: four neighbours, exact, never through walls; fields of distances are kept."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mindstream.errors import InputError
from mindstream.town.world.address import Address
from mindstream.town.world.world import Spot

if TYPE_CHECKING:
    from mindstream.town.world.tiles import TileWorld

MOST_BYTES = 32_000_000
"""What the kept fields may take; those asked for longest ago go first."""
FREE, OUTSIDE = -1, -2
"""In a field: not reached yet; not of this part of the map."""


@dataclass(frozen=True, eq=False, slots=True)
class Region:
    """The tiles that can be reached from one another, in the box around them with a rim of one tile.

    Attributes:
        stride: how many cells a row of the box has.
        blank: FREE for each of its tiles, OUTSIDE for the rest.
        size: how many tiles it has.
    """

    left: int
    top: int
    stride: int
    blank: array[int]
    size: int

    def cell(self, spot: Spot) -> int:
        """Return a spot's position in the box."""
        return (spot[1] - self.top) * self.stride + spot[0] - self.left


class TileRoutes:
    """The ways through a world of tiles (see `Routes`). Regions and fields are found when they are first asked for."""

    def __init__(self, world: TileWorld, most_bytes: int = MOST_BYTES) -> None:
        self._world, self._most_bytes, self._bytes = world, most_bytes, 0
        self._labels = array("i", bytes(4 * world.width * world.height))
        self._regions: list[Region] = []
        self._fields: OrderedDict[tuple[Address | Spot, int], array[int] | None] = OrderedDict()

    def region(self, spot: Spot) -> Region:
        """Return the part of the map that can be reached from a spot.

        Raises:
            InputError: nobody can stand there.
        """
        return self._regions[self._label(spot) - 1]

    def distance(self, start: Spot, goal: Address | Spot) -> int:
        """Count the steps of the shortest way.

        Raises:
            InputError: there is no way, or no such place.
        """
        region, field = self._field(start, goal)
        return field[region.cell(start)]

    def is_reachable(self, start: Spot, goal: Address | Spot) -> bool:
        """Tell whether there is a way.

        Raises:
            InputError: the map has no such place.
        """
        return self._world.walkable(start) and self._look_up(self._label(start), goal) is not None

    def next_spot(self, start: Spot, goal: Address | Spot) -> Spot:
        """Return the first spot of `path`, or `start` itself where the goal is reached.

        Raises:
            InputError: there is no way, or no such place.
        """
        region, field = self._field(start, goal)
        return _descend(field, region, start) if field[region.cell(start)] else start

    def path(self, start: Spot, goal: Address | Spot) -> tuple[Spot, ...]:
        """Return the spots of a shortest way after `start`; of equal ways, up, left, down, right.

        Raises:
            InputError: there is no way, or no such place.
        """
        region, field = self._field(start, goal)
        spots = []
        for _ in range(field[region.cell(start)]):
            start = _descend(field, region, start)
            spots.append(start)
        return tuple(spots)

    def _field(self, start: Spot, goal: Address | Spot) -> tuple[Region, array[int]]:
        label = self._label(start)
        field = self._look_up(label, goal)
        if field is None:
            end = f"{str(goal)!r}" if isinstance(goal, Address) else f"{goal} ({self._describe(goal)})"
            raise InputError(f"there is no way from {start} ({self._describe(start)}) to {end}")
        return self._regions[label - 1], field

    def _look_up(self, label: int, goal: Address | Spot) -> array[int] | None:
        key = (goal, label)
        if key in self._fields:
            self._fields.move_to_end(key)
            return self._fields[key]
        field = self._fields[key] = self._flood(label, goal)
        self._bytes += len(field) * field.itemsize if field else 0
        while self._bytes > self._most_bytes and len(self._fields) > 1:
            old = self._fields.popitem(last=False)[1]
            self._bytes -= len(old) * old.itemsize if old else 0
        return field

    def _flood(self, label: int, goal: Address | Spot) -> array[int] | None:
        region, world = self._regions[label - 1], self._world
        ends = world.spots(goal) if isinstance(goal, Address) else [goal] if world.walkable(goal) else []
        cells = [region.cell(spot) for spot in ends if self._label(spot) == label]
        return _spread(region, cells) if cells else None

    def _label(self, spot: Spot) -> int:
        world = self._world
        if not world.walkable(spot):
            raise InputError(f"nobody can stand at {spot} ({self._describe(spot)})")
        return self._labels[spot[1] * world.width + spot[0]] or self._explore(spot)

    def _explore(self, spot: Spot) -> int:
        """Find all tiles that can be reached from a spot, and give them the next label."""
        world, labels, label = self._world, self._labels, len(self._regions) + 1
        width, found = world.width, [spot[1] * world.width + spot[0]]
        labels[found[0]] = label
        for cell in found:
            x, y = cell % width, cell // width
            for there, on_map in (
                (cell - width, y > 0),
                (cell - 1, x > 0),
                (cell + 1, x < width - 1),
                (cell + width, y < world.height - 1),
            ):
                if on_map and not labels[there] and not world.walls[there]:
                    labels[there] = label
                    found.append(there)
        self._regions.append(_box([(cell % width, cell // width) for cell in found]))
        return label

    def _describe(self, spot: Spot) -> str:
        world = self._world
        if not (0 <= spot[0] < world.width and 0 <= spot[1] < world.height):
            return "not on the map"
        return f"{world.address_at(spot)}{'' if world.walkable(spot) else ', a wall'}"


def _box(spots: list[Spot]) -> Region:
    left, right = min(x for x, _ in spots) - 1, max(x for x, _ in spots) + 1
    top, bottom = min(y for _, y in spots) - 1, max(y for _, y in spots) + 1
    stride = right - left + 1
    blank = array("h" if len(spots) < 1 << 15 else "i", [OUTSIDE]) * (stride * (bottom - top + 1))
    for x, y in spots:
        blank[(y - top) * stride + x - left] = FREE
    return Region(left, top, stride, blank, len(spots))


def _spread(region: Region, cells: Iterable[int]) -> array[int]:
    """Fill a region with the distances to the nearest of some cells, wave by wave."""
    field, stride, wave, steps = region.blank[:], region.stride, list(dict.fromkeys(cells)), 0
    for cell in wave:
        field[cell] = 0
    while wave:
        steps += 1
        reached = []
        for cell in wave:
            for there in (cell - stride, cell - 1, cell + 1, cell + stride):
                if field[there] == FREE:
                    field[there] = steps
                    reached.append(there)
        wave = reached
    return field


def _descend(field: array[int], region: Region, spot: Spot) -> Spot:
    """Return the first neighbour (up, left, down, right) that is one step nearer."""
    x, y = spot
    cell = region.cell(spot)
    nearer = field[cell] - 1
    if field[cell - region.stride] == nearer:
        return (x, y - 1)
    if field[cell - 1] == nearer:
        return (x - 1, y)
    return (x, y + 1) if field[cell + region.stride] == nearer else (x + 1, y)
