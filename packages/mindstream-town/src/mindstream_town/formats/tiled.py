"""Maps of Tiled (mapeditor.org), `.tmx` and `.json`/`.tmj`: tile layers, and what the tiles of a blocks tileset mean.

A place layer holds tiles whose meaning stands in a matrix folder's tables, or in a property `address` of the tile, as
text: "the Ville:Hobbs Cafe" in the sector layer, "the Ville:<all>:piano" in the object layer. Read and written again,
tile layers, tilesets (by reference) and addresses are kept; object and image layers are not.
"""

from __future__ import annotations

import base64
import binascii
import json
import sys
import zlib
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from xml.etree.ElementTree import Element, SubElement, TreeBuilder, indent, tostring
from xml.parsers import expat

from pydantic import JsonValue

from mindstream.errors import InputError
from mindstream_town.formats.files import DEEPEST, expect_object, load_object, load_text, write_text
from mindstream_town.formats.matrix import COLUMNS, MAZES, TABLES, TILE_PIXELS, Matrix, Rows
from mindstream_town.world.tiles import check_size

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


WINDOW_BITS = {"": None, "zlib": zlib.MAX_WBITS, "gzip": zlib.MAX_WBITS | 16}
"""What zlib is told for each compression that can be read."""
LARGEST = (1 << 32) - 1


def read_cells(text: str, encoding: str, compression: str, wanted: int) -> array[int]:
    """Read the text of a layer that should have so many cells.

    Raises:
        InputError: it cannot be read, or unpacks to something larger.
    """
    if encoding == "csv":
        return _from_csv(text, wanted)
    if encoding != "base64" or compression not in WINDOW_BITS:
        raise InputError(
            f"cells as {encoding or 'XML elements'} {compression} cannot be read: "
            "choose CSV in Tiled (Map properties, Tile Layer Format)"
        )
    try:
        packed = base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error as error:
        raise InputError(f"the cells are no base64: {error}") from None
    return _from_bytes(_unpack(packed, compression, 4 * wanted))


def from_numbers(numbers: list[object]) -> array[int]:
    """Take cells that are numbers already.

    Raises:
        InputError: one is none.
    """
    for at, number in enumerate(numbers):
        if type(number) is not int or not 0 <= number <= LARGEST:
            raise InputError(f"cell {at + 1} is {number!r:.40}, where a whole number is wanted")
    return array("I", numbers)  # type: ignore[arg-type]


def _from_csv(text: str, wanted: int) -> array[int]:
    parts = text.split(",")
    if len(parts) > wanted + 1:
        raise InputError(f"there are {len(parts):,} cells, where {wanted:,} are wanted")
    cells = array("I")
    for at, part in enumerate(parts):
        number = part.strip()
        if not number and at == len(parts) - 1:
            break
        if not (number.isascii() and number.isdigit() and len(number) <= 10 and int(number) <= LARGEST):
            raise InputError(f"cell {at + 1} is {number!r:.40}, where a whole number is wanted")
        cells.append(int(number))
    return cells


def _unpack(packed: bytes, compression: str, most: int) -> bytes:
    bits = WINDOW_BITS[compression]
    if bits is None:
        return packed
    unpacker = zlib.decompressobj(bits)
    try:
        data = unpacker.decompress(packed, most + 1)
    except zlib.error as error:
        raise InputError(f"the cells cannot be unpacked: {error}") from None
    if len(data) > most:
        raise InputError(f"the cells unpack to more than the {most:,} bytes that are wanted")
    return data


def _from_bytes(data: bytes) -> array[int]:
    if len(data) % 4:
        raise InputError(f"the cells have {len(data):,} bytes, which is no multiple of four")
    cells = array("I", data)
    if sys.byteorder == "big":
        cells.byteswap()
    return cells


Object = dict[str, JsonValue]


def read_tiled_json(path: Path) -> TiledMap:
    """Read a map.

    Raises:
        InputError: it is none that can be read; the message begins with its path.
    """
    data = load_object(path)
    try:
        return _parse(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_tiled_json(map: TiledMap, path: Path) -> None:
    """Write a map as a new file.

    Raises:
        InputError: it is there already, or cannot be written.
    """
    layers = [
        {
            "data": list(cells),
            "height": map.height,
            "id": number,
            "name": name,
            "opacity": 1,
            "type": "tilelayer",
            "visible": True,
            "width": map.width,
            "x": 0,
            "y": 0,
        }
        for number, (name, cells) in enumerate(map.layers.items(), start=1)
    ]
    data = {
        "compressionlevel": -1,
        "height": map.height,
        "infinite": False,
        "layers": layers,
        "nextlayerid": len(layers) + 1,
        "nextobjectid": 1,
        "orientation": "orthogonal",
        "renderorder": "right-down",
        "tiledversion": "1.8.6",
        "tileheight": map.tile_height,
        "tilesets": [_tileset_data(each, map) for each in map.tilesets],
        "tilewidth": map.tile_width,
        "type": "map",
        "version": "1.8",
        "width": map.width,
    }
    write_text(path, json.dumps(data))


def _parse(data: Object) -> TiledMap:
    width, height = _number(data, "width"), _number(data, "height")
    check_map(data.get("orientation"), data.get("infinite"), width, height)
    layers: dict[str, array[int]] = {}
    for layer in _flat(_list(data, "layers")):
        if layer.get("type") == "tilelayer":
            name = _text(layer, "name")
            if name in layers:
                raise InputError(f"two layers are called {name!r:.60}")
            layers[name] = check_layer(name, _cells(layer, name, width * height), width, height)
    tilesets = tuple(_tileset(expect_object(each, "tilesets")) for each in _list(data, "tilesets"))
    return TiledMap(width, height, _number(data, "tilewidth"), _number(data, "tileheight"), layers, tilesets)


def _flat(layers: list[JsonValue]) -> list[Object]:
    """Return layers, those in groups too."""
    found: list[Object] = []
    for each in layers:
        layer = expect_object(each, "layers")
        found += _flat(_list(layer, "layers")) if layer.get("type") == "group" else [layer]
    return found


def _cells(layer: Object, name: str, wanted: int) -> array[int]:
    data = layer.get("data")
    try:
        if isinstance(data, str):
            return read_cells(data, str(layer.get("encoding", "")), str(layer.get("compression", "")), wanted)
        return from_numbers(list(data if isinstance(data, list) else []))
    except InputError as error:
        raise InputError(f"the layer {name!r:.60}: {error}") from None


def _tileset(data: Object) -> Tileset:
    first = _number(data, "firstgid")
    if isinstance(source := data.get("source"), str):
        return Tileset(first, "", 0, source=source)
    addresses = {}
    for each in _list(data, "tiles"):
        tile = expect_object(each, "tiles")
        for one in _list(tile, "properties"):
            property = expect_object(one, "properties")
            if property.get("name") == ADDRESS:
                addresses[first + _number(tile, "id")] = _text(property, "value")
    picture: dict[str, str | int] = {
        key: value
        for key, name in (("source", "image"), ("width", "imagewidth"), ("height", "imageheight"))
        if isinstance(value := data.get(name), str | int)
    }
    return Tileset(first, _text(data, "name"), _number(data, "tilecount"), _number(data, "columns"), addresses, picture)


def _tileset_data(tileset: Tileset, map: TiledMap) -> Object:
    if tileset.source:
        return {"firstgid": tileset.first, "source": tileset.source}
    data: Object = {
        "columns": tileset.columns,
        "firstgid": tileset.first,
        "margin": 0,
        "name": tileset.name,
        "spacing": 0,
        "tilecount": tileset.tiles,
        "tileheight": map.tile_height,
        "tilewidth": map.tile_width,
    }
    for key, name in (("source", "image"), ("width", "imagewidth"), ("height", "imageheight")):
        if key in tileset.picture:
            data[name] = tileset.picture[key]
    if tileset.addresses:
        data["tiles"] = [
            {"id": id - tileset.first, "properties": [{"name": ADDRESS, "type": "string", "value": text}]}
            for id, text in tileset.addresses.items()
        ]
    return data


def _number(data: Object, name: str) -> int:
    value = data.get(name)
    if type(value) is not int or value < 0:
        raise InputError(f"{name} should be a whole number, not {value!r:.40}")
    return value


def _text(data: Object, name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str):
        raise InputError(f"{name} should be a text, not {value!r:.40}")
    return value


def _list(data: Object, name: str) -> list[JsonValue]:
    value = data.get(name, [])
    if not isinstance(value, list):
        raise InputError(f"{name} should be a list, not {value!r:.40}")
    return value


def read_tmx(path: Path) -> TiledMap:
    """Read a map.

    Raises:
        InputError: it is none that can be read; the message begins with its path.
    """
    text = load_text(path)
    try:
        return _tiled_xml_parse(parse_xml(text))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_tmx(map: TiledMap, path: Path) -> None:
    """Write a map as a new file.

    Raises:
        InputError: it is there already, or cannot be written.
    """
    root = Element(
        "map",
        version="1.8",
        tiledversion="1.8.6",
        orientation="orthogonal",
        renderorder="right-down",
        width=str(map.width),
        height=str(map.height),
        tilewidth=str(map.tile_width),
        tileheight=str(map.tile_height),
        infinite="0",
        nextlayerid=str(len(map.layers) + 1),
        nextobjectid="1",
    )
    for tileset in map.tilesets:
        root.append(_tileset_element(tileset, map))
    for number, (name, cells) in enumerate(map.layers.items(), start=1):
        layer = SubElement(root, "layer", id=str(number), name=name, width=str(map.width), height=str(map.height))
        rows = (",".join([str(cell) for cell in cells[at : at + map.width]]) for at in range(0, len(cells), map.width))
        SubElement(layer, "data", encoding="csv").text = "\n" + ",\n".join(rows) + "\n"
    indent(root, " ")
    write_text(path, '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n")


def parse_xml(text: str) -> Element:
    """Read XML without entities of its own, at most DEEPEST deep.

    Raises:
        InputError: it is none, or declares an entity; with the line.
    """
    builder, parser, depth = TreeBuilder(), expat.ParserCreate(), 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise InputError(f"line {parser.CurrentLineNumber}: elements are nested deeper than {DEEPEST}")
        builder.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name)

    def refuse(*_: object) -> int:
        raise InputError(f"line {parser.CurrentLineNumber}: entities are not read")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, builder.data
    parser.EntityDeclHandler = parser.ExternalEntityRefHandler = refuse
    parser.buffer_text = True
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise InputError(f"line {error.lineno}: {expat.ErrorString(error.code)}") from None
    return builder.close()


def _tiled_xml_parse(root: Element) -> TiledMap:
    if root.tag != "map":
        raise InputError(f"a map is wanted, not <{root.tag:.40}>")
    width, height = _tiled_xml_number(root, "width"), _tiled_xml_number(root, "height")
    check_map(root.get("orientation"), root.get("infinite"), width, height)
    layers: dict[str, array[int]] = {}
    for layer in root.iter("layer"):
        name = layer.get("name", "")
        if name in layers:
            raise InputError(f"two layers are called {name!r:.60}")
        layers[name] = check_layer(name, _tiled_xml_cells(layer, name, width * height), width, height)
    tilesets = tuple(_tiled_xml_tileset(each) for each in root.iter("tileset"))
    return TiledMap(
        width, height, _tiled_xml_number(root, "tilewidth"), _tiled_xml_number(root, "tileheight"), layers, tilesets
    )


def _tiled_xml_cells(layer: Element, name: str, wanted: int) -> array[int]:
    data = layer.find("data")
    try:
        if data is None:
            raise InputError("it has no data")
        return read_cells(data.text or "", data.get("encoding", ""), data.get("compression", ""), wanted)
    except InputError as error:
        raise InputError(f"the layer {name!r:.60}: {error}") from None


def _tiled_xml_tileset(element: Element) -> Tileset:
    first = _tiled_xml_number(element, "firstgid")
    if source := element.get("source"):
        return Tileset(first, "", 0, source=source)
    addresses = {
        first + _tiled_xml_number(tile, "id"): property.get("value") or property.text or ""
        for tile in element.iter("tile")
        for property in tile.iter("property")
        if property.get("name") == ADDRESS
    }
    image = element.find("image")
    picture: dict[str, str | int] = {}
    if image is not None:
        picture = {"source": image.get("source", "")}
        picture |= {key: _tiled_xml_number(image, key) for key in ("width", "height") if image.get(key)}
    tiles, columns = _tiled_xml_number(element, "tilecount"), _tiled_xml_number(element, "columns")
    return Tileset(first, element.get("name", ""), tiles, columns, addresses, picture)


def _tileset_element(tileset: Tileset, map: TiledMap) -> Element:
    element = Element("tileset", firstgid=str(tileset.first))
    if tileset.source:
        element.set("source", tileset.source)
        return element
    sizes = {"tilewidth": map.tile_width, "tileheight": map.tile_height}
    for key, value in {"name": tileset.name, **sizes, "tilecount": tileset.tiles, "columns": tileset.columns}.items():
        element.set(key, str(value))
    if tileset.picture:
        SubElement(element, "image", {key: str(value) for key, value in tileset.picture.items()})
    for id, text in tileset.addresses.items():
        properties = SubElement(SubElement(element, "tile", id=str(id - tileset.first)), "properties")
        SubElement(properties, "property", name=ADDRESS, value=text)
    return element


def _tiled_xml_number(element: Element, name: str) -> int:
    text = element.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise InputError(f"<{element.tag}>: {name} should be a whole number, not {text!r:.40}")
    return int(text)
