"""Maps of Tiled (mapeditor.org), `.tmx` and `.json`/`.tmj`: tile layers, and what the tiles of a blocks tileset mean.

A place layer holds tiles whose meaning stands in a matrix folder's tables, or in a property `address` of the tile, as
text: "the Ville:Hobbs Cafe" in the sector layer, "the Ville:<all>:piano" in the object layer. Read and written again,
tile layers, tilesets (by reference) and addresses are kept; object and image layers are not.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import JsonValue

from mindstream.errors import InputError
from mindstream.town.formats.matrix import COLUMNS, MAZES, TABLES, TILE_PIXELS, Matrix, Rows
from mindstream.town.world.tiles import check_size

LAYERS = MappingProxyType(
    {
        "collision": "Collisions",
        "sector": "Sector Blocks",
        "arena": "Arena Blocks",
        "game_object": "Object Interaction Blocks",
        "spawning_location": "Spawning Blocks",
    }
)
"""What the layer of each maze is called in the authors' map; its own short name ("arena") is taken too."""
ADDRESS = "address"
"""The property of a tile that says what it means."""
TILE = 0x1FFFFFFF
"""Of a cell's number: the tile. The three bits above say how it is flipped."""


@dataclass(frozen=True)
class Tileset:
    """Some tiles, numbered from `first`; pictures by reference only.

    Attributes:
        addresses: what tiles mean, by their number in the map.
        picture: the picture's attributes (source, width, height), if it is named in the map.
        source: the file that the tileset stands in, if it is not in the map.
    """

    first: int
    name: str
    tiles: int
    columns: int = 1
    addresses: Mapping[int, str] = field(default_factory=dict)
    picture: Mapping[str, str | int] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True)
class TiledMap:
    """A map with orthogonal tiles. A layer's cells are row-major, as they stand in the file, flips included."""

    width: int
    height: int
    tile_width: int
    tile_height: int
    layers: Mapping[str, array[int]]
    tilesets: tuple[Tileset, ...] = ()

    def cells(self, maze: str) -> array[int]:
        """Return the tiles of a maze's layer without their flips.

        Raises:
            InputError: the map has no such layer.
        """
        for name in (LAYERS[maze], maze):
            if name in self.layers:
                return array("i", [cell & TILE for cell in self.layers[name]])
        raise InputError(f"the map has no layer {LAYERS[maze]!r} or {maze!r}; it has {', '.join(self.layers)!s:.300}")


def matrix_of_tiled(map: TiledMap, tables: Mapping[str, Rows] | None = None) -> Matrix:
    """Make a matrix of a Tiled map.

    Args:
        map: the map.
        tables: what its tiles mean (`read_tables`); None: it says so itself.

    Raises:
        InputError: a layer is missing, or no tile of the map has an address and no tables are given.
    """
    mazes = {maze: map.cells(maze) for maze in MAZES}
    tables = tables or _tables(map, mazes)
    meta: dict[str, JsonValue] = {
        "world_name": tables["world"][0][1].strip(),
        "maze_width": map.width,
        "maze_height": map.height,
        "sq_tile_size": map.tile_width,
        "special_constraint": "",
    }
    return Matrix(meta, mazes, tables)


def tiled_of_matrix(matrix: Matrix) -> TiledMap:
    """Make a Tiled map of a matrix: five layers, and one tileset without a picture that says what its tiles mean."""
    meanings = {
        int(row[0]): ":".join(cell.strip() for cell in row[1:]) for name in TABLES for row in matrix.tables[name]
    }
    walls = set(matrix.mazes["collision"]) - {0}
    used = [*meanings, *walls] or [1]
    first = min(used)
    width, height = matrix.size
    layers = {LAYERS[name]: array("I", matrix.mazes[name]) for name in MAZES}
    blocks = Tileset(first, "blocks", max(used) - first + 1, 10, meanings)
    return TiledMap(width, height, TILE_PIXELS, TILE_PIXELS, layers, (blocks,))


def _tables(map: TiledMap, mazes: Mapping[str, array[int]]) -> dict[str, Rows]:
    """Make tables of what the tiles of each layer mean by their addresses."""
    meanings = {id: text for tileset in map.tilesets for id, text in tileset.addresses.items()}
    worlds = list(dict.fromkeys(text.split(":")[0].strip() for text in meanings.values()))
    if not worlds and (outside := [tileset.source for tileset in map.tilesets if tileset.source]):
        raise InputError(
            f"the tileset {outside[0]!r:.99} stands in a file of its own, which is not read: embed it in Tiled "
            "(Tilesets, Embed Tileset), or name a folder with special_blocks"
        )
    if len(worlds) != 1:
        raise InputError(
            f"the tiles' addresses should be in one world, and are in {len(worlds)} ({', '.join(worlds)!s:.99}): "
            f"give the tiles a property {ADDRESS!r}, or name a folder with special_blocks"
        )
    tables: dict[str, Rows] = {"world": (("0", f" {worlds[0]}"),)}
    for maze in MAZES[1:]:
        rows = []
        for id in sorted(set(mazes[maze]) & meanings.keys()):
            row = (str(id), *(f" {name.strip()}" for name in meanings[id].split(":")))
            if len(row) != COLUMNS[maze]:
                raise InputError(
                    f"the tile {id} of the layer {LAYERS[maze]!r} means {meanings[id]!r:.99}: "
                    f"{COLUMNS[maze] - 1} names are wanted there"
                )
            rows.append(row)
        tables[maze] = tuple(rows)
    return tables


def check_layer(name: str, cells: array[int], width: int, height: int) -> array[int]:
    """Return a layer's cells.

    Raises:
        InputError: there are too few or too many.
    """
    if len(cells) != width * height:
        raise InputError(f"the layer {name!r} has {len(cells):,} cells, where {width} x {height} are wanted")
    return cells


def check_map(orientation: object, infinite: object, width: int, height: int) -> None:
    """Refuse a map that is not orthogonal, is infinite or has a size that cannot be.

    Raises:
        InputError: with what is wrong and what to do in Tiled.
    """
    if orientation != "orthogonal":
        raise InputError(
            f"the map is {orientation!r:.40}: only orthogonal ones can be read (Map properties, Orientation)"
        )
    if infinite not in (None, False, 0, "0", "false"):
        raise InputError("the map is infinite: switch that off in Tiled (Map properties, Infinite)")
    check_size(width, height)
