"""The map of a town for a page: its picture, and the place of each spot."""

from __future__ import annotations

from collections.abc import Iterable

from mindstream_town.inspect.layers import SHAPES, Layers, layers_of
from mindstream_town.replay.place_map import PlaceMap
from mindstream_town.setting import Setting
from mindstream_town.world.graph import PlaceWorld
from mindstream_town.world.tiles import TileWorld


def ground_of(setting: Setting) -> dict[str, object]:
    """Return `size` in tiles, `map` (the picture), and `tiles`, or `boxes` and `roads`: the place of each spot.

    `map` has `grounds` (kind, path data), `shapes` (path data), `things` (place, stuff, outline, shape, centres) and
    `names`
    (x, y, size, lines), from bottom to top. `tiles` are pairs of a place's number and its run length, row by row.
    `boxes`
    are the places with roads: number, x, y, width, height. `roads` are the positions of their two ends in `boxes`, and
    their steps.
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
