"""Shortest paths over tiles with four neighbours, never through walls; fields of distances are cached.

A field covers only the area that was needed, so the cost of a path does not depend on the size of the map.
"""

from __future__ import annotations

import re
from array import array
from collections import OrderedDict
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from mindstream.errors import InputError
from mindstream_town.world.tree import Address, Spot

if TYPE_CHECKING:
    from mindstream_town.world.tiles import TileWorld

MOST_BYTES = 32_000_000
"""Maximum bytes of the cached fields; the least recently used fields are dropped first."""
FREE, OUTSIDE = -1, -2
"""Values of cells without a distance: not reached yet; not part of the region."""


@dataclass(frozen=True, eq=False, slots=True)
class Box:
    """Cells of a rectangle of the map, row by row, with a border of one tile; `stride` is the length of a row."""

    left: int
    top: int
    stride: int
    cells: array[int]

    def cell(self, spot: Spot) -> int:
        """Return the index of a spot's cell."""
        return (spot[1] - self.top) * self.stride + spot[0] - self.left

    def at(self, spot: Spot) -> int:
        """Return the value of a spot's cell; OUTSIDE if the spot is not in the rectangle."""
        is_within = 0 <= spot[0] - self.left < self.stride and self.top <= spot[1]
        cell = self.cell(spot)
        return self.cells[cell] if is_within and cell < len(self.cells) else OUTSIDE


@dataclass(frozen=True, eq=False, slots=True)
class Field(Box):
    """Distances to a goal, known up to the distance `radius`."""

    radius: int


class TileRoutes:
    """Shortest paths over tiles. A goal is a spot or an address. Regions and fields are computed on demand."""

    def __init__(self, world: TileWorld, most_bytes: int = MOST_BYTES) -> None:
        self._world, self._most_bytes, self._bytes = world, most_bytes, 0
        self._labels = array("i", bytes(4 * world.width * world.height))
        self._regions: list[Box] = []
        self._fields: OrderedDict[tuple[Address | Spot, int], Field] = OrderedDict()

    def distance(self, start: Spot, goal: Address | Spot) -> int:
        """Return the length of the shortest path, in steps from tile to tile.

        Raises:
            InputError: the goal cannot be reached, or there is no such place.
        """
        return self._field(start, goal).at(start)

    def is_reachable(self, start: Spot, goal: Address | Spot) -> bool:
        """Return whether the goal can be reached.

        Raises:
            InputError: the map has no such place.
        """
        return self._world.walkable(start) and bool(self._ends(self._label(start), goal))

    def path(self, start: Spot, goal: Address | Spot) -> tuple[Spot, ...]:
        """Return the spots of a shortest path, without `start`. Among equal steps, the order is up, left, down, right.

        Raises:
            InputError: the goal cannot be reached, or there is no such place.
        """
        field, spots = self._field(start, goal), []
        for _ in range(field.at(start)):
            start = _descend(field, start)
            spots.append(start)
        return tuple(spots)

    def _field(self, start: Spot, goal: Address | Spot) -> Field:
        """Return the field of distances to a goal that contains `start`; compute or extend the field if necessary.

        Raises:
            InputError: the goal cannot be reached from `start`.
        """
        label = self._label(start)
        key = (goal, label)
        field = self._fields.get(key)
        if field is None or field.at(start) < 0:
            ends = self._ends(label, goal)
            if not ends:
                end = f"{str(goal)!r}" if isinstance(goal, Address) else f"{goal} ({self._describe(goal)})"
                raise InputError(f"{end} cannot be reached from {start} ({self._describe(start)})")
            field = self._keep(key, _spread(self._regions[label - 1], ends, start, 2 * field.radius if field else 0))
        self._fields.move_to_end(key)
        return field

    def _keep(self, key: tuple[Address | Spot, int], field: Field) -> Field:
        """Cache a field, replacing a smaller one; drop the least recently used fields if the cache is full."""
        if (before := self._fields.pop(key, None)) is not None:
            self._bytes -= _size(before)
        self._fields[key] = field
        self._bytes += _size(field)
        while self._bytes > self._most_bytes and len(self._fields) > 1:
            self._bytes -= _size(self._fields.popitem(last=False)[1])
        return field

    def _ends(self, label: int, goal: Address | Spot) -> list[Spot]:
        """Return the spots of a goal that are in the region with the number `label`."""
        world = self._world
        ends = world.spots(goal) if isinstance(goal, Address) else [goal] if world.walkable(goal) else []
        return [spot for spot in ends if self._label(spot) == label]

    def _label(self, spot: Spot) -> int:
        world = self._world
        if not world.walkable(spot):
            raise InputError(f"no resident can stand at {spot} ({self._describe(spot)})")
        return self._labels[spot[1] * world.width + spot[0]] or self._explore(spot)

    def _explore(self, spot: Spot) -> int:
        """Find all tiles that can be reached from a spot. Give them the next label (the number of a region), and return
        the label."""
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


def path_around(world: TileWorld, start: Spot, goal: Spot, shunned: Container[Spot], most: int) -> tuple[Spot, ...]:
    """Return a shortest path, without `start`, that avoids the spots in `shunned`; () if none has at most
    `most` steps."""
    came: dict[Spot, Spot] = {start: start}
    wave = [start]
    for _ in range(most):
        reached = list[Spot]()
        for x, y in wave:
            for there in ((x, y - 1), (x - 1, y), (x, y + 1), (x + 1, y)):
                if there not in came and world.walkable(there) and there not in shunned:
                    came[there] = x, y
                    reached.append(there)
        if goal in came:
            path = [goal]
            while path[-1] != start:
                path.append(came[path[-1]])
            return tuple(path[-2::-1])
        wave = reached
    return ()


def _box(spots: list[Spot]) -> Box:
    left, right = min(x for x, _ in spots) - 1, max(x for x, _ in spots) + 1
    top, bottom = min(y for _, y in spots) - 1, max(y for _, y in spots) + 1
    stride = right - left + 1
    blank = array("h" if len(spots) < 1 << 15 else "i", [OUTSIDE]) * (stride * (bottom - top + 1))
    for x, y in spots:
        blank[(y - top) * stride + x - left] = FREE
    return Box(left, top, stride, blank)


def _size(field: Field) -> int:
    return len(field.cells) * field.cells.itemsize


def _spread(region: Box, ends: Sequence[Spot], start: Spot, least: int) -> Field:
    """Compute the distances of tiles to the nearest of `ends`: until `start` is reached, and at least up to the
    distance `least`."""
    cells, stride, wave, steps = region.cells[:], region.stride, list(dict.fromkeys(map(region.cell, ends))), 0
    begins = region.cell(start)
    for cell in wave:
        cells[cell] = 0
    while wave and (steps < least or cells[begins] == FREE):
        steps += 1
        reached = []
        for cell in wave:
            for there in (cell - stride, cell - 1, cell + 1, cell + stride):
                if cells[there] == FREE:
                    cells[there] = steps
                    reached.append(there)
        wave = reached
    return _cropped(region, cells, ends, steps)


def _cropped(region: Box, cells: array[int], ends: Sequence[Spot], steps: int) -> Field:
    """Return the part of a region that lies within a number of steps of the spots `ends`, with its border."""
    far = steps + 1
    left = max(region.left, min(x for x, _ in ends) - far)
    right = min(region.left + region.stride - 1, max(x for x, _ in ends) + far)
    top = max(region.top, min(y for _, y in ends) - far)
    bottom = min(region.top + len(cells) // region.stride - 1, max(y for _, y in ends) + far)
    kept = array(cells.typecode)
    for y in range(top, bottom + 1):
        row = region.cell((left, y))
        kept.extend(cells[row : row + right - left + 1])
    return Field(left, top, right - left + 1, kept, steps)


def _descend(field: Field, spot: Spot) -> Spot:
    """Return the first neighbour that is one step nearer to the goal, in the order up, left, down, right."""
    x, y = spot
    cells, cell = field.cells, field.cell(spot)
    nearer = cells[cell] - 1
    if cells[cell - field.stride] == nearer:
        return (x, y - 1)
    if cells[cell - 1] == nearer:
        return (x - 1, y)
    return (x, y + 1) if cells[cell + field.stride] == nearer else (x + 1, y)


_STEPS: dict[str, Spot] = {"R": (1, 0), "L": (-1, 0), "D": (0, 1), "U": (0, -1), "S": (0, 0)}
_LETTERS = {step: letter for letter, step in _STEPS.items()}
_RUN = re.compile(r"([RLDUS])(\d{1,6})|;(-?\d{1,9}),(-?\d{1,9})")


def write_walk(tiles: Sequence[Spot]) -> str:
    """Encode a walk of at least one tile as text. A jump to a tile that is not a neighbour is written as the tile's
    position."""
    (x, y), *_ = tiles
    moves = [_LETTERS.get((bx - ax, by - ay), f";{bx},{by}") for (ax, ay), (bx, by) in pairwise(tiles)]
    runs = "".join(f"{move}{len(list(run))}" if move in _STEPS else "".join(run) for move, run in groupby(moves))
    return f"{x},{y}:{runs}"


@lru_cache(maxsize=8_192)
def read_walk(text: str) -> tuple[Spot, ...]:
    """Return the positions of a walk that `write_walk` has encoded as text.

    Raises:
        ValueError: the text is not a walk.
    """
    head, _, runs = text.partition(":")
    x, y = map(int, head.split(","))
    tiles, read = [(x, y)], 0
    for run in _RUN.finditer(runs):
        if run.start() != read:
            raise ValueError(f"not an encoded walk: {text[:80]!r}")
        read = run.end()
        letter, count, to_x, to_y = run.groups()
        if letter is None:
            tiles.append((int(to_x), int(to_y)))
            continue
        dx, dy = _STEPS[letter]
        for _ in range(int(count)):
            tiles.append((tiles[-1][0] + dx, tiles[-1][1] + dy))
    if read != len(runs):
        raise ValueError(f"not an encoded walk: {text[:80]!r}")
    return tuple(tiles)
