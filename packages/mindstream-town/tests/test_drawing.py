"""A picture of a world of tiles."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from hamlet import HAMLET
from mindstream_town.formats.town_file import parse_town
from mindstream_town.inspect.layers import draw_map
from mindstream_town.world.tiles import TileWorld

NS = "{http://www.w3.org/2000/svg}"


def draw(text: str) -> ElementTree.Element:
    world = parse_town(text, Path()).world
    assert isinstance(world, TileWorld)
    drawn = draw_map(world)
    assert drawn == draw_map(world)
    return ElementTree.fromstring(drawn)


def test_rooms_are_drawn_around_their_tiles_and_names_are_escaped() -> None:
    picture = draw(HAMLET.replace("Elm House", "Elm <& House"))
    floors = {each.get("class"): each.get("d") for each in picture.iter(f"{NS}path")}
    assert floors["floor treat"] == "M13 1h6v3h-6v-3z"
    assert "Elm <& House" in [" ".join(text.itertext()) for text in picture.iter(f"{NS}text")]
