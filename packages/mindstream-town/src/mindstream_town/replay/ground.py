"""The map of a town for a web page: its drawing, and the place at each spot."""

from __future__ import annotations

import math
from collections.abc import Iterable

from mindstream_town.inspect.layers import SHAPES, Layers, Name, layers_of
from mindstream_town.setting import Setting
from mindstream_town.world.graph import PlaceWorld, spread
from mindstream_town.world.tiles import TileWorld

WIDE, HIGH = 14, 8
"""Width and height of a place's box, in units of spots."""
CORNER = 0.8
APART = 1.35
"""Minimum distance between the centres of two places, in sizes of a box."""
ROUNDS = 200
MOST_DRAWN = 80
"""Maximum number of places that are laid out by distance; more are drawn in rows, because the layout takes too long."""
LONGEST_NAME = 22
Point = tuple[float, float]


class PlaceMap:
    """Positions of a world's places: places few steps apart are drawn near each other. `size`: size of the drawing."""

    def __init__(self, world: PlaceWorld) -> None:
        self._world = world
        middles = _rows(len(world.ends)) if len(world.ends) > MOST_DRAWN else _pulled(world)
        left, top = min(x for x, _ in middles) - WIDE, min(y for _, y in middles) - HIGH
        self._middles = [(round(x - left, 1), round(y - top, 1)) for x, y in middles]
        across, down = zip(*self._middles, strict=True)
        self.size = [math.ceil(max(across) + WIDE), math.ceil(max(down) + HIGH)]

    def boxes(self) -> list[list[float]]:
        """Return number, x, y, width and height of each place with a road."""
        numbers = (self._world.number(end) for end in self._world.ends)
        return [
            [number, round(x - WIDE / 2, 1), round(y - HIGH / 2, 1), WIDE, HIGH]
            for number, (x, y) in zip(numbers, self._middles, strict=True)
        ]

    def roads(self) -> list[list[int]]:
        """Return for each road the positions in `boxes` of both ends, and the number of steps."""
        ends = {end: i for i, end in enumerate(self._world.ends)}
        return [[ends[road.start], ends[road.end], road.steps] for road in self._world.roads]

    def layers(self) -> Layers:
        """Return the drawing: roads, a box for each place, and the names above the boxes."""
        roads = "".join("M{:g} {:g}L{:g} {:g}".format(*self._middles[a], *self._middles[b]) for a, b, _ in self.roads())
        c, wide, high = CORNER, WIDE - 2 * CORNER, HIGH - 2 * CORNER
        sites = "".join(
            f"M{x - wide / 2:g} {y - HIGH / 2:g}h{wide:g}q{c:g} 0 {c:g} {c:g}v{high:g}q0 {c:g}-{c:g} {c:g}"
            f"h-{wide:g}q-{c:g} 0-{c:g}-{c:g}v-{high:g}q0-{c:g} {c:g}-{c:g}z"
            for x, y in self._middles
        )
        names = [name for i in range(len(self._middles)) for name in self._names(i)]
        return Layers((("roads", roads), ("site", sites)), (), tuple(names))

    def _names(self, i: int) -> Iterable[Name]:
        x, y = self._middles[i]
        address = self._world.ends[i]
        yield Name(x, round(y - HIGH / 2 - 0.7, 1), 1.8, (_short(address.last),))
        if address.level > 2:
            yield Name(x, round(y - HIGH / 2 - 2.7, 1), 1.3, (_short(address.names[-2]),))


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _rows(count: int) -> list[Point]:
    across = math.ceil(math.sqrt(count))
    return [(i % across * WIDE * 1.5, i // across * HIGH * 1.6) for i in range(count)]


def _pulled(world: PlaceWorld) -> list[Point]:
    """Lay places out by iteration, so that drawn distances follow the logarithm of the steps between places."""
    count = len(world.ends)
    apart = [
        [math.log1p(field[j, 0]) for j in range(count)]
        for field in (spread(world.neighbours, [(i, 0)]) for i in range(count))
    ]
    widest = max(map(max, apart)) or 1
    angles = [2 * math.pi * i / count for i in range(count)]
    spots = [[math.cos(angle) * widest / 2, math.sin(angle) * widest / 2] for angle in angles]
    for turn in range(ROUNDS):
        strength = 0.5 * (1 - turn / ROUNDS)
        for i in range(count):
            for j in range(i):
                dx, dy = spots[i][0] - spots[j][0], spots[i][1] - spots[j][1]
                far = math.hypot(dx, dy) or 1e-6
                pull = strength * (apart[i][j] - far) / far / 2
                for axis, way in enumerate((dx, dy)):
                    spots[i][axis] += way * pull
                    spots[j][axis] -= way * pull
    return _spaced([(x, y * 0.7) for x, y in spots])


def _spaced(points: list[Point]) -> list[Point]:
    """Scale positions until no two boxes touch."""
    pairs = [(a, b) for i, a in enumerate(points) for b in points[:i]]
    gaps = [max(abs(a[0] - b[0]) / WIDE, abs(a[1] - b[1]) / (HIGH + 5)) for a, b in pairs]
    times = max(APART / max(min(gaps, default=1), 0.02), 1e-6)
    return [(x * times, y * times) for x, y in points]


def ground_of(setting: Setting) -> dict[str, object]:
    """Return `size` in tiles, `map` (the drawing), and the place at each spot: `tiles`, or `boxes` and `roads`.

    `map` has, from bottom to top, `grounds` (kind, path data), `shapes` (path data), `things` (place, material,
    outline, shape, centres) and `names` (x, y, size, lines). `tiles` are pairs of a place's number and its run length,
    row by row. `boxes` are the places with roads: number, x, y, width, height. `roads` are the positions of both ends
    in `boxes`, and the number of steps.
    """
    world = setting.world
    if isinstance(world, TileWorld):
        size = [world.width, world.height]
        return {"size": size, "tiles": _runs(world.here), "map": _written(layers_of(world))}
    assert isinstance(world, PlaceWorld)
    places = PlaceMap(world)
    return {"size": places.size, "boxes": places.boxes(), "roads": places.roads(), "map": _written(places.layers())}


def _written(layers: Layers) -> dict[str, object]:
    things = [
        [each.place, each.stuff, each.outline, each.shape, [part for middle in each.middles for part in middle]]
        for each in layers.things
    ]
    return {
        "grounds": list(layers.grounds),
        "shapes": [shape for _, _, shape in SHAPES] if things else [],
        "things": things,
        "names": [[each.x, each.y, each.size, list(each.lines)] for each in layers.names],
    }


def _runs(cells: Iterable[int]) -> list[int]:
    """Encode numbers as pairs of a number and its run length."""
    runs: list[int] = []
    for cell in cells:
        if runs and runs[-2] == cell:
            runs[-1] += 1
        else:
            runs += [cell, 1]
    return runs
