"""Draw docs/smallville.svg: `python packages/mindstream-town/tests/draw_smallville.py`."""

from __future__ import annotations

from pathlib import Path

from mindstream_town.formats.town_file import TownFile
from mindstream_town.inspect.layers import draw_map
from mindstream_town.packs import find_pack
from mindstream_town.world.tiles import TileWorld

FILE = Path(__file__).parents[3] / "docs" / "smallville.svg"


def draw(town: TownFile) -> str:
    """Return the picture of a town's map."""
    assert isinstance(town.world, TileWorld)
    return draw_map(town.world)


if __name__ == "__main__":
    FILE.write_text(draw(find_pack("smallville")), encoding="utf-8", newline="")
