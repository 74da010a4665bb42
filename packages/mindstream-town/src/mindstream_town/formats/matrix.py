"""The matrix folder of Park 2023: five mazes (layers of ids), and five tables with the meaning of the ids.

The files are `maze_meta_info.json`, `maze/*_maze.csv` for MAZES (one line each, row-major) and
`special_blocks/*_blocks.csv` for TABLES. CSV files that are read and written again are equal byte for byte.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pydantic import JsonValue

from mindstream.errors import InputError, prefixed
from mindstream.json_values import JsonObject
from mindstream_town.formats.files import load_object, load_text, make_new_folder, write_text
from mindstream_town.world.tiles import TileWorld, build_tiles, check_size
from mindstream_town.world.tree import ALL, ARENA, OBJECT, SECTOR, Address, Spot

MAZES = ("collision", "sector", "arena", "game_object", "spawning_location")
TABLES = ("world", "sector", "arena", "game_object", "spawning_location")
COLUMNS = MappingProxyType({"world": 2, "sector": 3, "arena": 4, "game_object": 4, "spawning_location": 5})
"""Number of cells per row of each table; the first cell is the id."""
WALL_ID, WORLD_ID = 32125, 32134
"""Ids of walls and of the world in the map of Park 2023; its published code relies on the id of walls."""
TILE_PIXELS = 32
MOST_ID = (1 << 29) - 1
Rows = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Matrix:
    """A map whose tiles are stored as ids. Each table row is a list of the file's cells, with leading blanks kept.

    Attributes:
        meta: content of `maze_meta_info.json`, including unknown keys.
        mazes: ids of each maze of MAZES, row-major; 0 means nothing.
        tables: rows of each table of TABLES.
    """

    meta: Mapping[str, JsonValue]
    mazes: Mapping[str, array[int]]
    tables: Mapping[str, Rows]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in tiles."""
        return size_of(self.meta, "maze_meta_info.json")


def meta_of(name: str, width: int, height: int, tile: int = TILE_PIXELS) -> JsonObject:
    """Return the content of a `maze_meta_info.json`; `width` and `height` in tiles, `tile`: size of a tile in
    pixels."""
    return {
        "world_name": name,
        "maze_width": width,
        "maze_height": height,
        "sq_tile_size": tile,
        "special_constraint": "",
    }


def size_of(meta: Mapping[str, JsonValue], where: str) -> tuple[int, int]:
    """Return width and height from the content of a `maze_meta_info.json`.

    Raises:
        InputError: one of the two is missing, not a whole number, below 1, or too large.
    """
    width, height = meta.get("maze_width"), meta.get("maze_height")
    if type(width) is not int or type(height) is not int:
        raise InputError(
            f"{where}: maze_width and maze_height must be whole numbers, found {width!r:.40} and {height!r:.40}"
        )
    with prefixed(f"{where}:"):
        check_size(width, height)
    return width, height


def read_matrix(folder: Path) -> Matrix:
    """Read a matrix folder.

    Raises:
        InputError: a file is missing, or has too few, too many or invalid cells; the message has file, row and column.
    """
    meta = load_object(folder / "maze_meta_info.json")
    width, height = size_of(meta, str(folder / "maze_meta_info.json"))
    mazes = {name: _read_maze(folder / "maze" / f"{name}_maze.csv", width, height) for name in MAZES}
    return Matrix(meta, mazes, read_tables(folder / "special_blocks"))


def read_tables(folder: Path) -> dict[str, Rows]:
    """Read the tables of a `special_blocks` folder.

    Raises:
        InputError: a file is missing, or a row has a wrong number of cells.
    """
    return {name: _read_table(folder / f"{name}_blocks.csv", COLUMNS[name]) for name in TABLES}


def write_matrix(matrix: Matrix, folder: Path) -> None:
    """Write a matrix folder, which must be new or empty.

    Raises:
        InputError: the folder is not empty, or cannot be written.
    """
    folder = make_new_folder(folder)
    write_text(folder / "maze_meta_info.json", json.dumps(dict(matrix.meta), indent=1))
    for name, ids in matrix.mazes.items():
        write_text(folder / "maze" / f"{name}_maze.csv", ", ".join(map(str, ids)))
    for name, rows in matrix.tables.items():
        write_text(folder / "special_blocks" / f"{name}_blocks.csv", "\n".join(",".join(row) for row in rows))


def world_of_matrix(matrix: Matrix, skip: frozenset[int] = frozenset()) -> TileWorld:
    """Build a world from a matrix.

    Args:
        matrix: a map as ids.
        skip: ids without a row in the tables, which are ignored.

    Raises:
        InputError: world_blocks.csv has not exactly one row; or there is an unknown or duplicate id, an arena outside
            its sector, or an object outside an arena. The message names the table, or the row and column of the maze.
    """
    names = {name: _names(matrix.tables[name], name) for name in TABLES}
    if len(names["world"]) != 1:
        raise InputError(f"world_blocks.csv: expected one row, found {len(names['world'])}")
    world = next(iter(names["world"].values()))
    size = matrix.size
    layers = [matrix.mazes[name] for name in MAZES[1:]]
    found: dict[tuple[int, ...], Address | None] = {}
    narrowest: list[Address | None] = []
    spawns: dict[Spot, str] = {}
    for cell, (sector, arena, thing, spawn) in enumerate(zip(*layers, strict=True)):
        key = (sector, arena, thing, spawn)
        if key not in found:
            with prefixed(f"row {cell // size[0] + 1}, column {cell % size[0] + 1}:"):
                found[key] = _narrowest(world, dict(zip(MAZES[1:], key, strict=True)), names, skip)
        narrowest.append(found[key])
        if spawn and spawn not in skip:
            spawns[(cell % size[0], cell // size[0])] = names["spawning_location"][spawn].last
    walls = bytes(1 if id else 0 for id in matrix.mazes["collision"])
    return build_tiles(world, size, walls, narrowest, spawns)


def matrix_of_world(world: TileWorld) -> Matrix:
    """Convert a world into a matrix with ids that the published code of Park 2023 accepts.

    Raises:
        InputError: a name contains a comma or a quotation mark, which the tables cannot represent.
    """
    rows: dict[str, list[tuple[str, ...]]] = {name: [] for name in TABLES}
    ids: dict[tuple[str, ...], int] = {}

    def number(table: str, *names: str) -> int:
        if (table, *names) not in ids:
            if bad := [name for name in names if "," in name or '"' in name]:
                raise InputError(
                    f"{bad[0]!r} cannot be written to {table}_blocks.csv: it contains a comma or a quotation mark"
                )
            ids[table, *names] = WORLD_ID + len(ids)
            rows[table].append((str(ids[table, *names]), *(f" {name}" for name in names)))
        return ids[table, *names]

    number("world", world.name)
    per_place = []
    for place in world.places:
        names = place.names
        per_place.append(
            (
                number("sector", *names[:SECTOR]) if len(names) >= SECTOR else 0,
                number("arena", *names[:ARENA]) if len(names) >= ARENA else 0,
                number("game_object", world.name, ALL, place.last) if len(names) == OBJECT else 0,
            )
        )
    mazes = {"collision": array("i", [WALL_ID if wall else 0 for wall in world.walls])}
    for level, name in enumerate(MAZES[1:4]):
        mazes[name] = array("i", [per_place[place][level] for place in world.here])
    mazes["spawning_location"] = spawns = array("i", bytes(4 * len(world.walls)))
    for (x, y), name in world.spawns.items():
        sector, arena = (*world.address_at((x, y)).upto(ARENA).names[1:], ALL, ALL)[:2]
        spawns[y * world.width + x] = number("spawning_location", world.name, sector, arena, name)
    return Matrix(
        meta_of(world.name, world.width, world.height), mazes, {name: tuple(lines) for name, lines in rows.items()}
    )


def _narrowest(
    world: Address, ids: Mapping[str, int], names: Mapping[str, Mapping[int, Address]], skip: frozenset[int]
) -> Address | None:
    """Return the narrowest place at a tile: the object, else the arena, else the sector; None: no place.

    Raises:
        InputError: an id is unknown, an arena is outside its sector, or an object is outside an arena.
    """
    meant: dict[str, Address | None] = {}
    for name, id in ids.items():
        if id and id not in skip and id not in names[name]:
            raise InputError(
                f"the id {id} in the layer {name} has no meaning: add a row to {name}_blocks.csv, or make the cell 0;"
                " for a Tiled map without this file, add a property `address` to the tile"
            )
        meant[name] = names[name].get(id) if id not in skip else None
    sector, arena, thing = meant["sector"], meant["arena"], meant["game_object"]
    if arena is not None and sector != arena.parent:
        raise InputError(f"the arena {str(arena)!r} is drawn in {str(sector or world)!r}, outside of its sector")
    if thing is not None and arena is None:
        raise InputError(f"the object {thing.last!r} is drawn outside of an arena")
    return arena.child(thing.last) if arena is not None and thing is not None else arena or sector


def _names(rows: Rows, table: str) -> dict[int, Address]:
    """Return the address of each id in a table."""
    names: dict[int, Address] = {}
    known: set[Address] = set()
    for number, row in enumerate(rows, start=1):
        with prefixed(f"{table}_blocks.csv: row {number}:"):
            id = _id(row[0])
            address = Address(tuple(cell.strip() for cell in row[1:]))
            if id in names:
                raise InputError(f"the id {id} occurs twice")
            if address in known:
                raise InputError(f"{str(address)!r} occurs twice")
        known.add(address)
        names[id] = address
    return names


def _read_maze(path: Path, width: int, height: int) -> array[int]:
    cells = load_text(path).rstrip().split(",")
    if len(cells) != width * height:
        raise InputError(f"{path}: expected {width} x {height} = {width * height:,} cells, found {len(cells):,}")
    ids = array("i")
    for cell, text in enumerate(cells):
        with prefixed(f"{path}: row {cell // width + 1}, column {cell % width + 1}:"):
            ids.append(_id(text))
    return ids


def _read_table(path: Path, columns: int) -> Rows:
    rows = []
    text = load_text(path, 4_000_000).rstrip("\n")
    for number, line in enumerate(text.split("\n") if text.strip() else (), start=1):
        row = tuple(line.rstrip("\r").split(","))
        if len(row) != columns or '"' in line:
            raise InputError(
                f"{path}: row {number}: expected {columns} cells without quotation marks, found {line!r:.99}"
            )
        rows.append(row)
    return tuple(rows)


def _id(text: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= MOST_ID):
        raise InputError(f"expected an id, a whole number from 0 to {MOST_ID}, found {text!r:.40}")
    return int(text)
