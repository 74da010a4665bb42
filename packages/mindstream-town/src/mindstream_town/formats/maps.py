"""Read and write maps: matrix folders, Tiled files, and drawings in town files.

From a list of places without a map, a map is drawn: houses and squares in rows, along streets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt
from pathlib import Path

from mindstream.errors import InputError, prefixed
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
from mindstream_town.world.tree import ARENA, OBJECT, SECTOR, Address, Spot

ASSETS = Path("static_dirs", "assets")
"""Path of the maps' folder in the folder `environment/frontend_server` of the repository of Park 2023."""
NEAR = 4
"""Number of folders to search for a map: the given folder and its next three parents."""


def load_matrix(path: Path, tables: Path | None = None) -> Matrix:
    """Read a map as a matrix of ids. The map is a Tiled file, or a folder with `maze_meta_info.json` in it or in its
    subfolder `matrix`.

    Args:
        path: the folder or file.
        tables: `special_blocks` folder with the meaning of a Tiled map's tiles; None: tiles have a property `address`.

    Raises:
        InputError: the map cannot be read.
    """
    if path.is_dir():
        inner = path / "matrix"
        return read_matrix(inner if inner.is_dir() else path)
    map, meanings = read_tiled(path), read_tables(tables) if tables else None
    with prefixed(f"{path}:"):
        return matrix_of_tiled(map, meanings)


def load_map(path: Path, tables: Path | None = None, skip: frozenset[int] = frozenset()) -> TileWorld:
    """Read a map as a world; errors name file, row and column.

    Args:
        path: a folder with `maze_meta_info.json`, or a Tiled file.
        tables: `special_blocks` folder with the meaning of a Tiled map's tiles; None: tiles have a property `address`.
        skip: ids without a row in the tables, which are ignored.

    Raises:
        InputError: the map cannot be read.
    """
    matrix = load_matrix(path, tables)
    with prefixed(f"{path}:"):
        return world_of_matrix(matrix, skip)


def find_map(folder: Path, name: str) -> Path:
    """Return the folder of a saved simulation's map. It is searched for by name in the simulation's folder and its next
    three parents, and in `static_dirs/assets` of each of these.

    Raises:
        InputError: the map is not found.
    """
    around = [folder.resolve(), *folder.resolve().parents][:NEAR]
    for place in (inner for each in around for inner in (each / name, each / ASSETS / name)):
        if (place / "matrix").is_dir() or (place / "maze_meta_info.json").is_file():
            return place
    raise InputError(f"the map {name!r:.99} was not found in {folder} or its parent folders: name it with --map PATH")


def save_map(world: TileWorld, path: Path) -> None:
    """Write a world as a new Tiled file if the path ends with .tmx, .json or .tmj; else as a new matrix folder.

    Raises:
        InputError: the file exists, or the folder is not empty; the path cannot be written; or a name contains a comma
            or a quotation mark.
    """
    matrix = matrix_of_world(world)
    if is_tiled(path):
        write_tiled(tiled_of_matrix(matrix), path)
    else:
        write_matrix(matrix, path)


@dataclass(frozen=True)
class Drawing:
    """Two drawings of the same size as lines of characters, and the meaning of each character.

    Attributes:
        rows: drawing of walls, ground and places.
        things: drawing of objects and spawn points; empty: none.
        wall: characters for walls and other obstacles, such as hedges and water.
        ground: character for tiles outside of places; in `things`, this character and a blank mean that nothing is
            there.
        places: address of the place, by character.
        objects: name of the object, by character. An object belongs to the arena (room) that `rows` shows at the
            object's tile.
        spawns: name of the spawn point, by character.
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
        faults: a list to which faults of tiles are added; faulty tiles stay empty. None: faults of tiles raise
            InputError.

    Raises:
        InputError: the size or the legend is invalid, rows are missing or differ in length, a character has no meaning,
            an object is outside of a room, or a spawn point is on a wall. For faulty tiles, the message has one line
            for each faulty pair of characters (in `rows` and in `things`), with row and column of the first such tile.
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
        raise InputError(f"the character {mark!r} has no meaning: add it to [map.places]")
    place = drawing.places.get(mark)
    if thing in drawing.objects:
        if place is None or place.level < ARENA:
            where = f"in {str(place)!r}, which is not a room" if place else "outside of all places"
            raise InputError(
                f"the object {drawing.objects[thing]!r} is drawn {where}: draw it inside a room of [map.places]"
            )
        return place.child(drawing.objects[thing])
    if thing not in drawing.spawns and thing not in (drawing.ground, " "):
        raise InputError(f"the character {thing!r} has no meaning: add it to [map.objects] or [map.spawns]")
    if thing in drawing.spawns and mark in drawing.wall:
        raise InputError(f"the spawn point {drawing.spawns[thing]!r} is drawn on a wall: move it to a free tile")
    return place


def _check_rows(name: str, rows: tuple[str, ...], width: int, height: int) -> None:
    if len(rows) != height:
        raise InputError(f"{name}: expected {height} row{'s' * (height != 1)}, found {len(rows)}")
    faults = [
        f"{name}: row {number}: expected {width} characters, found {len(row)}"
        for number, row in enumerate(rows, start=1)
        if len(row) != width
    ]
    if faults:
        raise InputError("\n".join(faults))


def _check_legend(drawing: Drawing) -> None:
    if drawing.ground in drawing.wall:
        raise InputError(f"ground: {drawing.ground!r} is also a character for walls; choose another one")
    taken: dict[str, str] = {**dict.fromkeys(drawing.wall, "wall"), drawing.ground: "ground"}
    for table, marks in (("places", drawing.places), ("objects", drawing.objects), ("spawns", drawing.spawns)):
        if table != "spawns" and len(set(marks.values())) < len(marks):
            twice = next(value for value in marks.values() if list(marks.values()).count(value) > 1)
            raise InputError(f"{table}: two characters mean {str(twice)!r}; keep one")
        for mark in marks:
            if len(mark) != 1:
                raise InputError(f"{table}: expected a single character, found {mark!r:.40}")
            other = taken.get(mark)
            if other in ("wall", "ground") or {other, table} == {"objects", "spawns"} or mark == " ":
                raise InputError(
                    f"{table}: {mark!r} is already used for {other or 'empty cells'}; choose another character"
                )
            taken[mark] = table


BED = "bed"
"""Name of the object that is the bed of residents who have no key `bed`."""
FURNITURE = (BED, "stove", "table", "washbasin")
"""Objects of a home for which no objects are listed."""
ROOM, GROUNDS = "room", "grounds"
"""Name of the only room of a house without listed rooms, and of the area of a square without listed rooms."""
HEIGHT, NARROWEST = 4, 4
"""Height and minimum width of rooms, in tiles."""
STREET, WALL, GROUND, BLANK = 2, "#", ".", " "
FIRST_MARK = 0x100
"""Code point of the first character that represents a place or an object in the drawing."""

Rooms = dict[Address, list[str]]


def draw_places(
    places: Mapping[Address, Sequence[str]], homes: Iterable[Address], walled: Collection[Address]
) -> Drawing:
    """Draw a map of places.

    Args:
        places: the objects of each place. A place is a house, a square, or a room of a house or square.
        homes: places where residents live. A home without listed objects gets FURNITURE. Any other home gets a bed if
            its house has none.
        walled: further places with walls. Homes and places with several rooms always have walls; others are open
            squares.

    Raises:
        InputError: there are neither places nor homes.
    """
    lived_in = [home for home in dict.fromkeys(homes) if home.level >= SECTOR]
    houses: dict[Address, Rooms] = {}
    every: dict[Address, Sequence[str]] = dict(places) | {home: places.get(home, ()) for home in lived_in}
    closed = {each.upto(SECTOR) for each in (*lived_in, *walled)}
    for place in sorted(every, key=lambda each: -each.level):  # rooms before the houses around them
        if place.level < SECTOR:
            continue
        sector = place.upto(SECTOR)
        rooms = houses.setdefault(sector, {})
        if place.level == SECTOR and (every[place] or not rooms):
            room = next(iter(rooms), sector.child(ROOM if sector in closed else GROUNDS))
        else:
            room = next(iter(rooms)) if place.level == SECTOR else place.upto(ARENA)
        things = [place.last] if place.level == OBJECT else every[place]
        rooms.setdefault(room, []).extend(each for each in things if each not in rooms[room])
    for home in lived_in:
        rooms = houses[home.upto(SECTOR)]
        room = home.upto(ARENA) if home.level >= ARENA else next(iter(rooms))
        if not rooms[room]:
            rooms[room] += FURNITURE
        elif not any(BED in things for things in rooms.values()):
            rooms[room].append(BED)
    if not houses:
        raise InputError("the town has no place: give residents a home, or list places")
    order = dict.fromkeys(each.upto(SECTOR) for each in every if each.level >= SECTOR)
    return _draw([(houses[each], each in closed or len(houses[each]) > 1) for each in order])


def _draw(houses: Sequence[tuple[Rooms, bool]]) -> Drawing:
    """Draw houses in rows; a street runs below each row."""
    place_marks: dict[Address, str] = {}
    object_marks: dict[str, str] = {}
    blocks = [_draw_house(rooms, closed, place_marks, object_marks) for rooms, closed in houses]
    widest = max(len(block[0][0]) for block in blocks)
    area = sum(len(block[0][0]) + 1 for block in blocks) * (HEIGHT + 2 + STREET)
    width = max(widest, isqrt(2 * area))
    rows, things = list[str](), list[str]()
    line: list[tuple[list[str], list[str]]] = []
    for number, block in enumerate(blocks):
        line.append(block)
        ahead = len(blocks[number + 1][0][0]) if number + 1 < len(blocks) else width
        if sum(len(each[0][0]) + 1 for each in line) + ahead > width:
            for y in range(HEIGHT + 2):
                rows.append(GROUND.join(each[0][y] for each in line))
                things.append(BLANK.join(each[1][y] for each in line))
            rows += [""] * STREET
            things += [""] * STREET
            line = []
    full = max(map(len, rows)) + 2
    return Drawing(
        rows=(GROUND * full, *(f"{GROUND}{row}".ljust(full, GROUND) for row in rows)),
        things=(BLANK * full, *(f"{BLANK}{row}".ljust(full) for row in things)),
        wall=WALL,
        ground=GROUND,
        places={mark: place for place, mark in place_marks.items()},
        objects={mark: thing for thing, mark in object_marks.items()},
    )


def _draw_house(
    rooms: Rooms, closed: bool, place_marks: dict[Address, str], object_marks: dict[str, str]
) -> tuple[list[str], list[str]]:
    """Draw the rooms of a house side by side, each with a door to the street; an open square has no walls."""
    edge = WALL if closed else GROUND
    rows = [edge] * (HEIGHT + 2)
    things = [BLANK] * (HEIGHT + 2)
    for room, objects in rooms.items():
        mark = place_marks.setdefault(room, chr(FIRST_MARK + len(place_marks)))
        for each in objects:
            object_marks.setdefault(each, chr(FIRST_MARK + len(object_marks)))
        width = max(NARROWEST, len(objects) | 1)
        upper, lower = objects[: (len(objects) + 1) // 2], objects[(len(objects) + 1) // 2 :]
        inside = [upper, [], lower, []]
        bottom = edge * (width // 2) + GROUND + edge * (width - width // 2 - 1)
        for y, drawn in enumerate([edge * width, *[mark * width] * HEIGHT, bottom]):
            rows[y] += drawn + edge
        for y, items in enumerate([[], *inside, []]):
            things[y] += BLANK.join(object_marks[each] for each in items).ljust(width) + BLANK
    return rows, things
