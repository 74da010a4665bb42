"""What a page must know of a town's ground: how it looks, and where each spot is on it."""

from __future__ import annotations

from collections.abc import Iterable

from mindstream_town.inspect.layers import SHAPES, Layers, layers_of
from mindstream_town.replay.place_map import PlaceMap
from mindstream_town.setting import Setting
from mindstream_town.world.graph import PlaceWorld
from mindstream_town.world.tiles import TileWorld


def ground_of(setting: Setting) -> dict[str, object]:
    """Return `size` in tiles, `map` (what is drawn), and `tiles` or `boxes` and `roads`: which place a spot is in.

    `map` has `grounds` (a kind, path data), `shapes` (path data), `things` (place, stuff, outline, shape, middles) and
    `names` (x, y, size, lines), from below to above. `tiles` are pairs of a place's number and how often it follows
    itself, row by row; `boxes` are of each place at which roads end: number, x, y, width, height; `roads`: the
    positions of their two ends in `boxes`, and their steps.
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
    """Write numbers as pairs of number and how often it follows itself."""
    runs: list[int] = []
    for cell in cells:
        if runs and runs[-2] == cell:
            runs[-1] += 1
        else:
            runs += [cell, 1]
    return runs
