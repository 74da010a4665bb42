"""A map from wherever it stands: a matrix folder, a Tiled file."""

from __future__ import annotations

from pathlib import Path

from mindstream.errors import InputError
from mindstream.town.formats.matrix import (
    Matrix,
    matrix_of_world,
    read_matrix,
    read_tables,
    world_of_matrix,
    write_matrix,
)
from mindstream.town.formats.tiled import TiledMap, matrix_of_tiled, tiled_of_matrix
from mindstream.town.formats.tiled_json import read_tiled_json, write_tiled_json
from mindstream.town.formats.tiled_xml import read_tmx, write_tmx
from mindstream.town.world.tiles import TileWorld

JSON_ENDINGS = (".json", ".tmj")
ASSETS = Path("static_dirs", "assets")
"""Where the authors' repository keeps its maps, beside its saved simulations."""
NEAR = 4
"""So many folders up a map is looked for."""


def read_tiled(path: Path) -> TiledMap:
    """Read a Tiled map, by the ending of its name.

    Raises:
        InputError: another ending, or no map that can be read.
    """
    if path.suffix not in (".tmx", *JSON_ENDINGS):
        raise InputError(f"{path}: a map of Tiled ends with .tmx, .json or .tmj")
    return read_tmx(path) if path.suffix == ".tmx" else read_tiled_json(path)


def write_tiled(map: TiledMap, path: Path) -> None:
    """Write a Tiled map as a new file, by the ending of its name.

    Raises:
        InputError: another ending, or it cannot be written.
    """
    if path.suffix not in (".tmx", *JSON_ENDINGS):
        raise InputError(f"{path}: a map of Tiled ends with .tmx, .json or .tmj")
    (write_tmx if path.suffix == ".tmx" else write_tiled_json)(map, path)


def load_matrix(path: Path, tables: Path | None = None) -> Matrix:
    """Read a map as ids: a folder with `maze_meta_info.json` (or one that has it in `matrix`), else a Tiled file.

    Args:
        path: the folder or file.
        tables: a `special_blocks` folder that says what a Tiled map's tiles mean; None: the map says so itself.

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
    """Read a map as a world; what does not fit names file, row and column.

    Args:
        path: as for `load_matrix`.
        tables: as for `load_matrix`.
        skip: ids that mean nothing though no table has them.

    Raises:
        InputError: it cannot be read.
    """
    matrix = load_matrix(path, tables)
    try:
        return world_of_matrix(matrix, skip)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def find_map(folder: Path, name: str) -> Path:
    """Return the map of a saved simulation: beside it or around it, also where the authors' repository has it.

    Raises:
        InputError: it is not there.
    """
    around = [folder.resolve(), *folder.resolve().parents][:NEAR]
    for place in (inner for each in around for inner in (each / name, each / ASSETS / name)):
        if (place / "matrix").is_dir() or (place / "maze_meta_info.json").is_file():
            return place
    raise InputError(f"the map {name!r:.99} is neither beside {folder} nor around it: name it by --map DIR")


def save_map(world: TileWorld, path: Path) -> None:
    """Write a world as a new Tiled file (.tmx, .json, .tmj), else as a new matrix folder.

    Raises:
        InputError: it is there already, or cannot be written.
    """
    matrix = matrix_of_world(world)
    if path.suffix in (".tmx", *JSON_ENDINGS):
        write_tiled(tiled_of_matrix(matrix), path)
    else:
        write_matrix(matrix, path)
