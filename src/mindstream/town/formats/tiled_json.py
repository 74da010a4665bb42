"""Tiled's `.json` (`.tmj`), read and written."""

from __future__ import annotations

import json
from array import array
from pathlib import Path

from pydantic import JsonValue

from mindstream.errors import InputError
from mindstream.town.formats.files import expect_object, load_object, write_text
from mindstream.town.formats.tiled import ADDRESS, TiledMap, Tileset, check_layer, check_map
from mindstream.town.formats.tiled_cells import from_numbers, read_cells

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
