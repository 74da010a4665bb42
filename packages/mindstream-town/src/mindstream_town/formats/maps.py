"""Maps: matrix folders, Tiled files, and drawings in town files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mindstream.errors import InputError
from mindstream_town.formats.matrix import (
    Matrix,
    matrix_of_world,
    read_matrix,
    read_tables,
    world_of_matrix,
    write_matrix,
)
from mindstream_town.formats.tiled import is_tiled, matrix_of_tiled, read_tiled, tiled_of_matrix, write_tiled
from mindstream_town.world.tiles import TileWorld, build_tiles, check_size
from mindstream_town.world.tree import ARENA, Address, Spot

ASSETS = Path("static_dirs", "assets")
"""Folder of maps in the authors' repository."""
NEAR = 4
"""Number of parent folders to search for a map."""


def load_matrix(path: Path, tables: Path | None = None) -> Matrix:
    """Read a map as ids: a folder with `maze_meta_info.json` (or one that has it in `matrix`), else a Tiled file.

    Args:
        path: the folder or file.
        tables: a `special_blocks` folder with the meaning of a Tiled map's tiles; None: the tiles have addresses.

    Raises:
        InputError: it cannot be read.
    """
    if path.is_dir():
        inner = path / "matrix"
        return read_matrix(inner if inner.is_dir() else path)
    map, meanings = read_tiled(path), read_tables(tables) if tables else None
    try:
        return matrix_of_tiled(map, meanings)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def load_map(path: Path, tables: Path | None = None, skip: frozenset[int] = frozenset()) -> TileWorld:
    """Read a map as a world; errors name file, row and column.

    Args:
        path: as for `load_matrix`.
        tables: as for `load_matrix`.
        skip: ids without a meaning that are ignored.

    Raises:
        InputError: it cannot be read.
    """
    matrix = load_matrix(path, tables)
    try:
        return world_of_matrix(matrix, skip)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def find_map(folder: Path, name: str) -> Path:
    """Return the map of a saved simulation: near its folder, or where the authors' repository has it.

    Raises:
        InputError: it is not found.
    """
    around = [folder.resolve(), *folder.resolve().parents][:NEAR]
    for place in (inner for each in around for inner in (each / name, each / ASSETS / name)):
        if (place / "matrix").is_dir() or (place / "maze_meta_info.json").is_file():
            return place
    raise InputError(f"the map {name!r:.99} is neither beside {folder} nor around it: name it by --map DIR")


def save_map(world: TileWorld, path: Path) -> None:
    """Write a world as a new Tiled file (.tmx, .json, .tmj), else as a new matrix folder.

    Raises:
        InputError: it exists, or cannot be written.
    """
    matrix = matrix_of_world(world)
    if is_tiled(path):
        write_tiled(tiled_of_matrix(matrix), path)
    else:
        write_matrix(matrix, path)


@dataclass(frozen=True)
class Drawing:
    """Two drawings of one size, and the meaning of their characters.

    Attributes:
        rows: walls, ground and places.
        things: objects and spawn points; empty: none.
        wall: characters of walls and other obstacles, such as hedges and water.
        ground: the character outside places; in `things` it, or a blank, means nothing.
        places: the address of each place's character.
        objects: the name of each object's character; an object belongs to the arena below it.
        spawns: the name of each spawn point's character.
    """

    rows: tuple[str, ...]
    things: tuple[str, ...] = ()
    wall: str = "#"
    ground: str = "."
    places: dict[str, Address] = field(default_factory=dict)
    objects: dict[str, str] = field(default_factory=dict)
    spawns: dict[str, str] = field(default_factory=dict)


def world_of_drawing(world: Address, drawing: Drawing, faults: list[str] | None = None) -> TileWorld:
    """Build a world from a drawing.

    Args:
        faults: receives the faults of single cells, which are left empty; None: they are raised.

    Raises:
        InputError: rows differ in length, a character has no or two meanings, or an object is outside of a room; one
            line for each cell, with row and column.
    """
    _check_legend(drawing)
    width, height = len(drawing.rows[0]) if drawing.rows else 0, len(drawing.rows)
    check_size(width, height)
    _check_rows("rows", drawing.rows, width, height)
    if drawing.things:
        _check_rows("things", drawing.things, width, height)
    narrowest: list[Address | None] = []
    spawns: dict[Spot, str] = {}
    made: dict[tuple[str, str], Address | None] = {}
    found = list[str]()
    for y, row in enumerate(drawing.rows):
        things = drawing.things[y] if drawing.things else " " * width
        for x, key in enumerate(zip(row, things, strict=True)):
            if key not in made:
                try:
                    made[key] = _narrowest(drawing, *key)
                except InputError as error:
                    found.append(f"row {y + 1}, column {x + 1}: {error}")
                    made[key] = None
            narrowest.append(made[key])
            if key[1] in drawing.spawns:
                spawns[(x, y)] = drawing.spawns[key[1]]
    if found and faults is None:
        raise InputError("\n".join(found))
    (faults if faults is not None else []).extend(found)
    walls = bytes(mark in drawing.wall for row in drawing.rows for mark in row)
    return build_tiles(world, (width, height), walls, narrowest, spawns)


def _narrowest(drawing: Drawing, mark: str, thing: str) -> Address | None:
    if mark not in drawing.places and mark not in drawing.wall + drawing.ground:
        raise InputError(f"{mark!r} stands for no place; give it one in [map.places]")
    place = drawing.places.get(mark)
    if thing in drawing.objects:
        if place is None or place.level < ARENA:
            where = f"in {str(place)!r}, which is no room" if place else "on the street"
            raise InputError(
                f"the object {drawing.objects[thing]!r} stands {where}: draw it inside a room of [map.places]"
            )
        return place.child(drawing.objects[thing])
    if thing not in drawing.spawns and thing not in (drawing.ground, " "):
        raise InputError(f"{thing!r} stands for no thing; give it one in [map.objects] or [map.spawns]")
    if thing in drawing.spawns and mark in drawing.wall:
        raise InputError(f"the spawn point {drawing.spawns[thing]!r} is in a wall")
    return place


def _check_rows(name: str, rows: tuple[str, ...], width: int, height: int) -> None:
    if len(rows) != height:
        raise InputError(f"{name}: {len(rows)} rows, where {height} are expected")
    faults = [
        f"{name}: row {number} has {len(row)} characters, where {width} are expected"
        for number, row in enumerate(rows, start=1)
        if len(row) != width
    ]
    if faults:
        raise InputError("\n".join(faults))


def _check_legend(drawing: Drawing) -> None:
    if drawing.ground in drawing.wall:
        raise InputError(f"ground: {drawing.ground!r} stands for wall already")
    taken: dict[str, str] = {**dict.fromkeys(drawing.wall, "wall"), drawing.ground: "ground"}
    for table, marks in (("places", drawing.places), ("objects", drawing.objects), ("spawns", drawing.spawns)):
        if table != "spawns" and len(set(marks.values())) < len(marks):
            twice = next(value for value in marks.values() if list(marks.values()).count(value) > 1)
            raise InputError(f"{table}: two characters stand for {str(twice)!r}")
        for mark in marks:
            if len(mark) != 1:
                raise InputError(f"{table}: {mark!r:.40} should be one character")
            other = taken.get(mark)
            if other in ("wall", "ground") or {other, table} == {"objects", "spawns"} or mark == " ":
                raise InputError(f"{table}: {mark!r} stands for {other or 'nothing'} already")
            taken[mark] = table
