"""Read and write maps of Tiled (mapeditor.org; `.tmx`, `.json`, `.tmj`): tile layers and the meaning of their tiles.

The tables of a matrix folder define the meaning of a tile, or a property `address` of the tile does: "the Ville:Hobbs
Cafe" in the sector layer, "the Ville:<all>:piano" in the object layer. Tile layers, references to tilesets and
addresses survive reading and writing; object layers, image layers and pictures do not.
"""

from __future__ import annotations

import base64
import json
import zlib
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated
from xml.etree.ElementTree import Element, ParseError, SubElement, fromstring, indent, tostring

import numpy as np
from pydantic import Field, JsonValue, ValidationError

from mindstream.errors import InputError
from mindstream.frozen import Frozen
from mindstream.json_values import JsonObject
from mindstream_town.formats.files import load_object, load_text, named_once, write_text
from mindstream_town.formats.matrix import COLUMNS, MAZES, TABLES, TILE_PIXELS, Matrix, Rows, meta_of
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
"""The name that the layer of each maze has in the map of Park 2023. A layer with the maze's own name ("arena") is
accepted, too."""
ADDRESS = "address"
"""The tile property that contains the address of its place or object."""
TILE = 0x1FFFFFFF
"""Mask of the tile's number in a cell; the three highest bits are flips."""
WINDOW_BITS = {"zlib": zlib.MAX_WBITS, "gzip": zlib.MAX_WBITS | 16}
"""The argument `wbits` of zlib, by name of the compression."""
Count = Annotated[int, Field(ge=0)]


class Property(Frozen):
    """A property of a tile."""

    name: str
    value: JsonValue = ""


class Tile(Frozen):
    """A tile with properties."""

    id: Count
    properties: tuple[Property, ...] = ()


class Tileset(Frozen):
    """A set of tiles, numbered from `firstgid`; `source`: file of the tileset, "" if it is embedded."""

    firstgid: Count
    name: str = ""
    tilecount: Count = 0
    columns: Count = 1
    source: str = ""
    tiles: tuple[Tile, ...] = ()

    def addresses(self) -> dict[int, str]:
        """Return the address of each tile that has one, by the tile's number in the map."""
        return {
            self.firstgid + tile.id: str(each.value)
            for tile in self.tiles
            for each in tile.properties
            if each.name == ADDRESS
        }


class _Layer(Frozen):
    type: str = ""
    name: str = ""
    data: str | list[Count] = Field(default_factory=list)
    encoding: str = ""
    compression: str = ""
    layers: tuple[_Layer, ...] = ()


class _File(Frozen):
    orientation: str = ""
    infinite: bool = False
    width: Count
    height: Count
    tilewidth: Count
    tileheight: Count
    layers: tuple[_Layer, ...] = ()
    tilesets: tuple[Tileset, ...] = ()


@dataclass(frozen=True)
class TiledMap:
    """A map of orthogonal tiles. The cells of a layer are row-major and include the bits of flips."""

    width: int
    height: int
    tile_width: int
    tile_height: int
    layers: Mapping[str, array[int]]
    tilesets: tuple[Tileset, ...] = ()

    def cells(self, maze: str) -> array[int]:
        """Return the tile numbers of a layer, without the bits for flipped tiles.

        Args:
            maze: the maze of the layer: a key of LAYERS, such as `arena`.

        Raises:
            InputError: the map has no such layer.
        """
        for name in (LAYERS[maze], maze):
            if name in self.layers:
                return array("i", [cell & TILE for cell in self.layers[name]])
        raise InputError(f"the map has no layer {LAYERS[maze]!r} or {maze!r}; it has {', '.join(self.layers)!s:.300}")


def matrix_of_tiled(map: TiledMap, tables: Mapping[str, Rows] | None = None) -> Matrix:
    """Convert a Tiled map into a matrix.

    Args:
        map: the map.
        tables: the meanings of the tiles (see `read_tables`); None: the property `address` of each tile.

    Raises:
        InputError: a layer is missing. Without `tables`: the tiles have no addresses, addresses in several worlds, or
            an invalid address; or the tiles are in an external tileset.
    """
    mazes = {maze: map.cells(maze) for maze in MAZES}
    tables = tables or _tables(map, mazes)
    meta = meta_of(tables["world"][0][1].strip(), map.width, map.height, map.tile_width)
    return Matrix(meta, mazes, tables)


def tiled_of_matrix(matrix: Matrix) -> TiledMap:
    """Convert a matrix into a Tiled map of five layers and one tileset, which has no picture."""
    meanings = {
        int(row[0]): ":".join(cell.strip() for cell in row[1:]) for name in TABLES for row in matrix.tables[name]
    }
    used = [*meanings, *set(matrix.mazes["collision"]) - {0}] or [1]
    first = min(used)
    tiles = tuple(
        Tile(id=id - first, properties=(Property(name=ADDRESS, value=text),)) for id, text in meanings.items()
    )
    blocks = Tileset(firstgid=first, name="blocks", tilecount=max(used) - first + 1, columns=10, tiles=tiles)
    layers = {LAYERS[name]: array("I", matrix.mazes[name]) for name in MAZES}
    return TiledMap(*matrix.size, TILE_PIXELS, TILE_PIXELS, layers, (blocks,))


def _tables(map: TiledMap, mazes: Mapping[str, array[int]]) -> dict[str, Rows]:
    """Return a map's tables: of the world, and for each other layer the numbers and addresses of its tiles."""
    meanings = {id: text for tileset in map.tilesets for id, text in tileset.addresses().items()}
    worlds = list(dict.fromkeys(text.split(":")[0].strip() for text in meanings.values()))
    if not worlds and (outside := [tileset.source for tileset in map.tilesets if tileset.source]):
        raise InputError(
            f"the tileset {outside[0]!r:.99} is in an external file, which cannot be read: embed it in Tiled "
            "(Tilesets, Embed Tileset), or pass the folder special_blocks with the meaning of the tiles (in a town "
            "file: tables)"
        )
    if len(worlds) != 1:
        raise InputError(
            f"all addresses of tiles must be in one world, found {', '.join(worlds)[:99] or 'no address'}: "
            f"give the tiles a property {ADDRESS!r}, or pass the folder special_blocks with the meaning of the tiles "
            "(in a town file: tables)"
        )
    tables: dict[str, Rows] = {"world": (("0", f" {worlds[0]}"),)}
    for maze in MAZES[1:]:
        rows = []
        for id in sorted(set(mazes[maze]) & meanings.keys()):
            row = (str(id), *(f" {name.strip()}" for name in meanings[id].split(":")))
            if len(row) != COLUMNS[maze]:
                raise InputError(
                    f"the tile {id} of the layer {LAYERS[maze]!r} has the address {meanings[id]!r:.99}: "
                    f"expected {COLUMNS[maze] - 1} names separated by colons"
                )
            rows.append(row)
        tables[maze] = tuple(rows)
    return tables


def read_tiled(path: Path) -> TiledMap:
    """Read a Tiled map.

    Raises:
        InputError: the file has another suffix, or is not a supported map; the message begins with the file's path.
    """
    if not is_tiled(path):
        raise InputError(f"{path}: expected a Tiled map with the suffix .tmx, .json or .tmj")
    with named_once(path):
        return _parse(_from_xml(load_text(path)) if path.suffix == ".tmx" else load_object(path))


def is_tiled(path: Path) -> bool:
    """Return whether a path has the suffix of a Tiled map."""
    return path.suffix in (".tmx", ".json", ".tmj")


def _parse(data: Mapping[str, JsonValue]) -> TiledMap:
    try:
        file = _File.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}; found {first['input']!r:.40}") from None
    if file.orientation != "orthogonal":
        raise InputError(
            f"the map is {file.orientation!r:.40}: change it to orthogonal in Tiled (Map properties, Orientation)"
        )
    if file.infinite:
        raise InputError("the map is infinite: turn this off in Tiled (Map properties, Infinite)")
    check_size(file.width, file.height)
    layers: dict[str, array[int]] = {}
    for layer in _flat(file.layers):
        if layer.name in layers:
            raise InputError(f"two layers have the name {layer.name!r:.60}: rename one")
        layers[layer.name] = cells = _cells(layer, file.width * file.height)
        if len(cells) != file.width * file.height:
            raise InputError(
                f"the layer {layer.name!r}: expected {file.width} x {file.height} cells, found {len(cells):,}"
            )
    return TiledMap(file.width, file.height, file.tilewidth, file.tileheight, layers, file.tilesets)


def _flat(layers: Iterable[_Layer]) -> Iterable[_Layer]:
    """Yield the tile layers, including those inside groups."""
    for each in layers:
        if each.type == "group":
            yield from _flat(each.layers)
        elif each.type == "tilelayer":
            yield each


def _cells(layer: _Layer, wanted: int) -> array[int]:
    """Return the cells of a layer; stop decompressing soon after the wanted number of cells. Raise InputError if they
    cannot be decoded."""
    data = layer.data
    try:
        if isinstance(data, list):
            return array("I", data)
        if layer.encoding == "csv":
            return array("I", map(int, data.rstrip(", \n").split(",")[: wanted + 1]))
        if layer.encoding != "base64" or layer.compression not in ("", *WINDOW_BITS):
            raise ValueError(
                f"cells stored as {' '.join(filter(None, (layer.encoding or 'XML elements', layer.compression)))}"
                " are not supported: "
                "choose CSV in Tiled (Map properties, Tile Layer Format)"
            )
        packed = base64.b64decode("".join(data.split()), validate=True)
        if layer.compression:
            packed = zlib.decompressobj(WINDOW_BITS[layer.compression]).decompress(packed, 4 * wanted + 4)
        return array("I", np.frombuffer(packed, "<u4").tolist())
    except (ValueError, OverflowError, zlib.error) as error:
        raise InputError(f"the layer {layer.name!r:.60}: {error}") from None


def _from_xml(text: str) -> JsonObject:
    """Return an XML map in the form of a JSON map. A DOCTYPE is refused, because it can declare entities."""
    if "<!DOCTYPE" in text:
        raise InputError("the map has a DOCTYPE, which is refused: its entities could expand to any size")
    try:
        root = fromstring(text)
    except ParseError as error:
        raise InputError(f"the file is not valid XML: {error}") from None
    if root.tag != "map":
        raise InputError(f"expected a Tiled map with the root element <map>, found <{root.tag:.40}>")
    layers: list[JsonValue] = []
    for layer in root.iter("layer"):
        data = layer.find("data")
        cells = {} if data is None else {**data.attrib, "data": data.text or ""}
        layers.append({**layer.attrib, **cells, "type": "tilelayer"})
    tilesets: list[JsonValue] = [
        {
            **tileset.attrib,
            "tiles": [
                {
                    "id": tile.get("id"),
                    "properties": [
                        {"name": each.get("name", ""), "value": each.get("value") or each.text or ""}
                        for each in tile.iter("property")
                    ],
                }
                for tile in tileset.iter("tile")
            ],
        }
        for tileset in root.iter("tileset")
    ]
    return {**root.attrib, "layers": layers, "tilesets": tilesets}


def write_tiled(map: TiledMap, path: Path) -> None:
    """Write a Tiled map as a new file, in the format of its suffix.

    Raises:
        InputError: the file has another suffix, exists already, or cannot be written.
    """
    if not is_tiled(path):
        raise InputError(f"{path}: expected a Tiled map with the suffix .tmx, .json or .tmj")
    head: dict[str, str | int] = {
        "version": "1.8",
        "tiledversion": "1.8.6",
        "orientation": "orthogonal",
        "renderorder": "right-down",
        "width": map.width,
        "height": map.height,
        "tilewidth": map.tile_width,
        "tileheight": map.tile_height,
        "nextlayerid": len(map.layers) + 1,
        "nextobjectid": 1,
    }
    size = {"width": map.width, "height": map.height}
    look = {"tilewidth": map.tile_width, "tileheight": map.tile_height}
    if path.suffix != ".tmx":
        shown = {"type": "tilelayer", "visible": True, "opacity": 1, "x": 0, "y": 0, **size}
        layers = [
            {"id": number, "name": name, "data": list(cells), **shown}
            for number, (name, cells) in enumerate(map.layers.items(), start=1)
        ]
        tilesets = [_outer(each, look) | each.model_dump(include={"tiles"}) for each in map.tilesets]
        data = {**head, "type": "map", "infinite": False, "layers": layers, "tilesets": tilesets}
        write_text(path, json.dumps(data))
        return
    root = Element("map", {key: str(value) for key, value in head.items()}, infinite="0")
    for tileset in map.tilesets:
        element = SubElement(root, "tileset", {key: str(value) for key, value in _outer(tileset, look).items()})
        for tile in tileset.tiles:
            properties = SubElement(SubElement(element, "tile", id=str(tile.id)), "properties")
            for each in tile.properties:
                SubElement(properties, "property", name=each.name, value=str(each.value))
    for number, (name, cells) in enumerate(map.layers.items(), start=1):
        layer = SubElement(root, "layer", id=str(number), name=name, width=str(map.width), height=str(map.height))
        SubElement(layer, "data", encoding="csv").text = ",".join([str(cell) for cell in cells])
    indent(root, " ")
    write_text(path, '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n")


def _outer(tileset: Tileset, look: Mapping[str, int]) -> dict[str, str | int]:
    """Return the attributes of a tileset; for a tileset in an external file, only its first id and the file."""
    if tileset.source:
        return {"firstgid": tileset.firstgid, "source": tileset.source}
    return {**tileset.model_dump(exclude={"tiles", "source"}), **look}
