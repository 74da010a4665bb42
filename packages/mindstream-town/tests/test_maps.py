"""Maps as matrices and as Tiled files: read, written, read again; invalid ones refused with place and reason."""

from __future__ import annotations

import base64
import gzip
import json
import struct
import zlib
from array import array
from pathlib import Path

import pytest
from mindstream_town.formats.files import write_text
from mindstream_town.formats.maps import load_map, save_map
from mindstream_town.formats.matrix import read_matrix, world_of_matrix, write_matrix
from mindstream_town.formats.tiled import TiledMap, matrix_of_tiled, read_tiled, write_tiled
from mindstream_town.world.tiles import TileWorld, build_tiles
from mindstream_town.world.tree import Address, parse_address

from mindstream.errors import InputError

SHARED = Path(__file__).parents[4] / "shared/data/town/the_ville"
MATRIX = {
    "maze_meta_info.json": '{"world_name": "v", "maze_width": 3, "maze_height": 2, "ours": [1]}',
    "maze/collision_maze.csv": "0, 0, 32125, 0, 0, 0",
    "maze/sector_maze.csv": "2, 2, 0, 3, 3, 0",
    "maze/arena_maze.csv": "4, 4, 0, 0, 5, 0",
    "maze/game_object_maze.csv": "7, 0, 0, 0, 7, 0",
    "maze/spawning_location_maze.csv": "0, 9, 0, 0, 0, 0",
    "special_blocks/world_blocks.csv": "1, the Ville",
    "special_blocks/sector_blocks.csv": "2, the Ville, Ryan's flat \n3, the Ville, cafe",
    "special_blocks/arena_blocks.csv": "4, the Ville, Ryan's flat, room\n5, the Ville, cafe, bar",
    "special_blocks/game_object_blocks.csv": "7, the Ville, <all>, bed",
    "special_blocks/spawning_location_blocks.csv": "9, the Ville, Ryan's flat, room, sp-A",
}


def matrix_folder(folder: Path, **changed: str) -> Path:
    for name, text in MATRIX.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(changed.get(path.stem, text))
    return folder


def small_world() -> TileWorld:
    flat, cafe = parse_address("the Ville:Ryan's flat:room"), parse_address("the Ville:cafe")
    narrowest: list[Address | None] = [flat.child("bed"), flat, None, cafe, cafe.child("bar").child("bed"), None]
    return build_tiles(flat.upto(1), (3, 2), bytes([0, 0, 1, 0, 0, 0]), narrowest, {(1, 0): "sp-A"})


def test_a_matrix_is_read_and_written_byte_for_byte(tmp_path: Path) -> None:
    folder = matrix_folder(tmp_path / "in")
    matrix = read_matrix(folder)
    assert world_of_matrix(matrix) == small_world() == load_map(folder)
    write_matrix(matrix, tmp_path / "out")
    for name, text in MATRIX.items():
        again = (tmp_path / "out" / name).read_text()
        assert json.loads(again) == json.loads(text) if name.endswith(".json") else again == text
    with pytest.raises(InputError, match="is not empty"):
        write_matrix(matrix, tmp_path / "out")


@pytest.mark.parametrize("name", ["matrix", "map.tmx", "map.json", "map.tmj"])
def test_a_world_is_the_same_after_any_format(tmp_path: Path, name: str) -> None:
    save_map(small_world(), tmp_path / name)
    assert load_map(tmp_path / name) == small_world()


@pytest.mark.parametrize(
    ("file", "text", "wrong"),
    [
        ("sector_maze", "2, 2, 0, 3, 3", "sector_maze.csv: expected 3 x 2 = 6 cells, found 5"),
        ("arena_maze", "4, 4, 0, 0, 8, 0", "row 2, column 2: the id 8 in the layer arena has no meaning"),
        ("arena_maze", "4, -4, 0, 0, 5, 0", "arena_maze.csv: row 1, column 2: expected an id"),
        ("arena_maze", "5, 4, 0, 0, 5, 0", "row 1, column 1: the arena 'the Ville:cafe:bar' is drawn in"),
        ("game_object_maze", "7, 0, 0, 7, 7, 0", "row 2, column 1: the object 'bed' is drawn outside of an arena"),
        ("sector_blocks", "2, the Ville, a\n2, the Ville, b", "sector_blocks.csv: row 2: the id 2 occurs twice"),
        ("sector_blocks", "2, the Ville, a:b", "sector_blocks.csv: row 1: .*cannot be a name"),
        ("maze_meta_info", '{"maze_width": 9999, "maze_height": 9999}', "9999 x 9999 tiles is not possible"),
        ("maze_meta_info", "[" * 60 + "]" * 60, "nested deeper"),
    ],
)
def test_a_bad_matrix_is_refused_with_place_and_reason(tmp_path: Path, file: str, text: str, wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        load_map(matrix_folder(tmp_path, **{file: text}))


def test_all_layers_of_a_tiled_map_are_kept(tmp_path: Path) -> None:
    save_map(small_world(), tmp_path / "first.tmx")
    first = read_tiled(tmp_path / "first.tmx")
    flipped = TiledMap(
        3, 2, 16, 16, {**first.layers, "art & flips": array("I", [0x80000001, 2, 3, 4, 5, 6])}, first.tilesets
    )
    for name in ("a.tmx", "a.json"):
        write_tiled(flipped, tmp_path / name)
        assert read_tiled(tmp_path / name) == flipped
    assert world_of_matrix(matrix_of_tiled(flipped)) == small_world()


@pytest.mark.parametrize("compression", ["", "zlib", "gzip"])
def test_compressed_layers_are_read_with_a_size_limit(tmp_path: Path, compression: str) -> None:
    save_map(small_world(), tmp_path / "map.json")
    data = json.loads((tmp_path / "map.json").read_text())

    def packed(cells: list[int]) -> str:
        raw = struct.pack(f"<{len(cells)}I", *cells)
        return base64.b64encode({"": raw, "zlib": zlib.compress(raw), "gzip": gzip.compress(raw)}[compression]).decode()

    for layer in data["layers"]:
        layer |= {"data": packed(layer["data"]), "encoding": "base64", "compression": compression}
    (tmp_path / "packed.json").write_text(json.dumps(data))
    assert load_map(tmp_path / "packed.json") == small_world()
    data["layers"][0]["data"] = packed([0] * 1_000_000)
    (tmp_path / "bomb.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match="the layer 'Collisions'"):
        load_map(tmp_path / "bomb.json")


def test_bad_tiled_maps_are_refused(tmp_path: Path) -> None:
    save_map(small_world(), tmp_path / "map.tmx")
    text = (tmp_path / "map.tmx").read_text()
    wrongs = {
        'width="3"': ('width="4"', "expected 4 x 2 cells, found 6"),
        'infinite="0"': ('infinite="1"', "turn this off in Tiled"),
        "Arena Blocks": ("Rooms", "no layer 'Arena Blocks' or 'arena'; it has Collisions"),
        "<map ": ("<!DOCTYPE m [<!ENTITY a 'aaaa'>]><map ", "the map has a DOCTYPE"),
    }
    for at, (old, (new, wrong)) in enumerate(wrongs.items()):
        assert old in text
        path = tmp_path / f"{at}.tmx"
        path.write_text(text.replace(old, new))
        with pytest.raises(InputError, match=f"{at}.tmx: .*{wrong}"):
            load_map(path)


@pytest.mark.skipif(not SHARED.exists(), reason="the published saves and map of Park 2023 are not available")
def test_the_authors_map_is_read_from_all_formats(tmp_path: Path) -> None:
    world = load_map(SHARED)
    levels = [sum(address.level == level for address in world.places) for level in (1, 2, 3, 4)]
    assert levels == [1, 19, 63, 222]
    assert sum(world.walls) == 2064
    assert all(world.routes.is_reachable((73, 14), address) for address in world.places)
    unnamed = frozenset({32169})
    for name in ("the_ville.tmx", "the_ville_jan7.json"):
        assert load_map(SHARED / "visuals" / name, SHARED / "matrix/special_blocks", unnamed) == world
    with pytest.raises(InputError, match="row 26, column 16: the id 32169"):
        load_map(SHARED / "visuals/the_ville.tmx", SHARED / "matrix/special_blocks")
    save_map(world, tmp_path / "again")
    assert load_map(tmp_path / "again") == world


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "maps").write_text("notes", "utf-8")
    with pytest.raises(InputError, match=r"maps exists already: name another file, or remove it"):
        write_text(tmp_path / "maps" / "ayre.json", "{}")
