"""Draw docs/smallville.svg: `python tests/town/draw_smallville.py`."""

from __future__ import annotations

from pathlib import Path

from mindstream.town.drawing import draw_map
from mindstream.town.packs import find_pack
from mindstream.town.world.tiles import TileWorld

FILE = Path(__file__).parents[2] / "docs" / "smallville.svg"


def draw() -> str:
    """Return the picture of the map that comes with mindstream."""
    world = find_pack("smallville").world
    assert isinstance(world, TileWorld)
    return draw_map(world)


if __name__ == "__main__":
    FILE.write_text(draw(), encoding="utf-8", newline="")
