"""A world of tiles: where the walls are, and for each tile the innermost place that contains it. It is immutable."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from mindstream.errors import InputError
from mindstream.guidance import nearest
from mindstream_town.world.routes import TileRoutes
from mindstream_town.world.tree import ARENA, OBJECT, Address, Spot

MOST_TILES = 4_000_000
MOST_PLACES = 30_000
MOST_KEPT = 5_000
"""Maximum entries in the cache of visible spots; a full cache is emptied."""
T = TypeVar("T")


@dataclass(frozen=True)
class TileWorld:
    """A map of tiles. Created by `build_tiles`. Sequences are row-major from the top: index `y * width + x`.

    Attributes:
        walls: 1 for a wall, 0 for a free tile.
        places: all addresses of the map, parents before children; the first is the world.
        here: for each tile, the number of its narrowest place.
        arenas: for each tile, the number of its arena, else of its sector, else 0.
        spawns: names of the spots where residents may appear.
    """

    name: str
    width: int
    height: int
    walls: bytes
    places: tuple[Address, ...]
    here: array[int]
    arenas: array[int]
    spawns: Mapping[Spot, str]

    def __hash__(self) -> int:
        return hash((self.name, self.width, self.height, self.walls))

    def address_at(self, spot: Spot) -> Address:
        """Return the narrowest place at a spot; the world if there is no other."""
        return self.places[self.here[self._cell(spot)]]

    def arena_of(self, spot: Spot) -> int:
        """Return the number of the arena at a spot, else of the sector, else 0."""
        return self.arenas[spot[1] * self.width + spot[0]]

    def distance(self, a: Spot, b: Spot) -> int:
        """Return the Chebyshev distance of two spots."""
        return max(abs(a[0] - b[0]), abs(a[1] - b[1]))

    def near(self, spot: Spot, radius: int) -> list[Spot]:
        """Return the spots in the square around a spot, row by row."""
        x, y = spot
        across = range(max(0, x - radius), min(self.width, x + radius + 1))
        return [(i, j) for j in range(max(0, y - radius), min(self.height, y + radius + 1)) for i in across]

    def places_around(self, spot: Spot, radius: int) -> set[Address]:
        """Return the narrowest places in the square around a spot."""
        x, y = spot
        left, right = max(0, x - radius), min(self.width, x + radius + 1)
        rows = range(max(0, y - radius) * self.width, min(self.height, y + radius + 1) * self.width, self.width)
        return {self.places[each] for each in set().union(*(self.here[row + left : row + right] for row in rows))}

    def visible(self, spot: Spot, radius: int) -> tuple[Spot, ...]:
        """Return the spots in the square around a spot that are in the same arena, row by row."""
        known = self._visible.get((spot, radius))
        if known is None:
            arena = self.arena_of(spot)
            near = (there for there in self.near(spot, radius) if self.arena_of(there) == arena)
            known = tuple(self._same.setdefault(there, there) for there in near)
            _keep(self._visible, (spot, radius), known)
        return known

    def walkable(self, spot: Spot) -> bool:
        """Return whether a spot is on the map and not a wall."""
        x, y = spot
        return 0 <= x < self.width and 0 <= y < self.height and not self.walls[y * self.width + x]

    def tiles(self, address: Address) -> tuple[Spot, ...]:
        """Return all tiles of a place, including walls, row by row.

        Raises:
            InputError: the map has no such place.
        """
        if address not in self._tiles:
            raise InputError(self._unknown(address))
        return self._tiles[address]

    def spots(self, address: Address) -> tuple[Spot, ...]:
        """Return the tiles where residents can stand at a place: its tiles that are not walls.

        If an object consists of walls only, residents use it from neighbouring tiles in the same arena.

        Raises:
            InputError: the map has no such place.
        """
        if (known := self._spots.get(address)) is None:
            tiles = self.tiles(address)
            known = tuple(tile for tile in tiles if self.walkable(tile))
            self._spots[address] = known = known or (self._beside(tiles) if address.level == OBJECT else ())
        return known

    def number(self, address: Address) -> int:
        """Return a place's index in `places`.

        Raises:
            InputError: the map has no such place.
        """
        try:
            return self._numbers[address]
        except KeyError:
            raise InputError(self._unknown(address)) from None

    def objects_in(self, arena: int) -> tuple[tuple[Spot, int], ...]:
        """Return the tiles of the objects in an arena, each with the object's number, row by row."""
        return self._objects.get(arena, ())

    @cached_property
    def routes(self) -> TileRoutes:
        """Shortest paths."""
        return TileRoutes(self)

    @cached_property
    def _numbers(self) -> dict[Address, int]:
        return {address: number for number, address in enumerate(self.places)}

    @cached_property
    def _spots(self) -> dict[Address, tuple[Spot, ...]]:
        return {}

    @cached_property
    def _visible(self) -> dict[tuple[Spot, int], tuple[Spot, ...]]:
        return {}

    @cached_property
    def _same(self) -> dict[Spot, Spot]:
        """One tuple per spot, which the caches share to save memory."""
        return {}

    @cached_property
    def _tiles(self) -> dict[Address, tuple[Spot, ...]]:
        around = [
            tuple(self._numbers[address.upto(level)] for level in range(1, address.level + 1))
            for address in self.places
        ]
        found: list[list[Spot]] = [[] for _ in self.places]
        for cell, place in enumerate(self.here):
            for number in around[place]:
                found[number].append((cell % self.width, cell // self.width))
        return {address: tuple(spots) for address, spots in zip(self.places, found, strict=True)}

    @cached_property
    def _objects(self) -> dict[int, tuple[tuple[Spot, int], ...]]:
        found: dict[int, list[tuple[Spot, int]]] = {}
        things = {number for number, address in enumerate(self.places) if address.level == OBJECT}
        for cell, place in enumerate(self.here):
            if place in things:
                found.setdefault(self.arenas[cell], []).append(((cell % self.width, cell // self.width), place))
        return {arena: tuple(pairs) for arena, pairs in found.items()}

    def _beside(self, tiles: Sequence[Spot]) -> tuple[Spot, ...]:
        beside = {
            spot: None
            for x, y in tiles
            for spot in ((x, y - 1), (x - 1, y), (x + 1, y), (x, y + 1))
            if self.walkable(spot) and self.arena_of(spot) == self.arena_of((x, y))
        }
        return tuple(sorted(beside, key=lambda spot: (spot[1], spot[0])))

    def _cell(self, spot: Spot) -> int:
        x, y = spot
        if not (0 <= x < self.width and 0 <= y < self.height):
            raise InputError(
                f"({x}, {y}) is outside of the map of {self.name}, which has {self.width} x {self.height} tiles"
            )
        return y * self.width + x

    def _unknown(self, address: Address) -> str:
        near = nearest(str(address), map(str, self.places))
        advice = f"; did you mean {near!r}?" if near else ""
        return f"{self.name} has no place {str(address)!r}{advice}"


def _keep(kept: dict[tuple[Spot, int], T], key: tuple[Spot, int], value: T) -> None:
    if len(kept) >= MOST_KEPT:
        kept.clear()
    kept[key] = value


def check_size(width: int, height: int) -> None:
    """Refuse a map without tiles, or with too many.

    Raises:
        InputError: the size is not allowed; the message contains it.
    """
    if width < 1 or height < 1 or width * height > MOST_TILES:
        raise InputError(f"a map of {width} x {height} tiles is not possible: expected 1 to {MOST_TILES:,} tiles")


def build_tiles(
    world: Address,
    size: tuple[int, int],
    walls: bytes,
    narrowest: Iterable[Address | None],
    spawns: Mapping[Spot, str] | None = None,
) -> TileWorld:
    """Build a world from the narrowest place at each tile (None: only the world), row by row.

    Places are numbered in the order of their first tile, each after the place that contains it.

    Raises:
        InputError: the size is not possible, a number of tiles is wrong, an address is of another world, or there are
            too many places.
    """
    width, height = size
    check_size(width, height)
    numbers: dict[Address, int] = {world: 0}
    here = array("H", bytes(2 * width * height))
    count = 0
    for cell, address in enumerate(narrowest):
        count += 1
        if address is not None and cell < width * height:
            here[cell] = numbers[address] if address in numbers else _number(address, world, numbers)
    if count != width * height or len(walls) != count:
        raise InputError(f"expected {width * height} tiles, found the places of {count} and the walls of {len(walls)}")
    places = tuple(numbers)
    arenas = [numbers[address.upto(ARENA)] for address in places]
    return TileWorld(
        name=world.last,
        width=width,
        height=height,
        walls=walls,
        places=places,
        here=here,
        arenas=array("H", [arenas[place] for place in here]),
        spawns=dict(spawns or {}),
    )


def _number(address: Address, world: Address, numbers: dict[Address, int]) -> int:
    if not address.is_within(world):
        raise InputError(f"{str(address)!r} must be inside of {str(world)!r}")
    for level in range(1, address.level + 1):
        numbers.setdefault(address.upto(level), len(numbers))
    if len(numbers) > MOST_PLACES:
        raise InputError(f"a map may have at most {MOST_PLACES:,} places")
    return numbers[address]
