"""Tiled's `.tmx`, read and written. Entities are refused: with them a small file could unpack into a huge one."""

from __future__ import annotations

from array import array
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, TreeBuilder, indent, tostring
from xml.parsers import expat

from mindstream.errors import InputError
from mindstream.town.formats.files import DEEPEST, load_text, write_text
from mindstream.town.formats.tiled import ADDRESS, TiledMap, Tileset, check_layer, check_map
from mindstream.town.formats.tiled_cells import read_cells


def read_tmx(path: Path) -> TiledMap:
    """Read a map.

    Raises:
        InputError: it is none that can be read; the message begins with its path.
    """
    text = load_text(path)
    try:
        return _parse(parse_xml(text))
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


def _parse(root: Element) -> TiledMap:
    if root.tag != "map":
        raise InputError(f"a map is wanted, not <{root.tag:.40}>")
    width, height = _number(root, "width"), _number(root, "height")
    check_map(root.get("orientation"), root.get("infinite"), width, height)
    layers: dict[str, array[int]] = {}
    for layer in root.iter("layer"):
        name = layer.get("name", "")
        if name in layers:
            raise InputError(f"two layers are called {name!r:.60}")
        layers[name] = check_layer(name, _cells(layer, name, width * height), width, height)
    tilesets = tuple(_tileset(each) for each in root.iter("tileset"))
    return TiledMap(width, height, _number(root, "tilewidth"), _number(root, "tileheight"), layers, tilesets)


def _cells(layer: Element, name: str, wanted: int) -> array[int]:
    data = layer.find("data")
    try:
        if data is None:
            raise InputError("it has no data")
        return read_cells(data.text or "", data.get("encoding", ""), data.get("compression", ""), wanted)
    except InputError as error:
        raise InputError(f"the layer {name!r:.60}: {error}") from None


def _tileset(element: Element) -> Tileset:
    first = _number(element, "firstgid")
    if source := element.get("source"):
        return Tileset(first, "", 0, source=source)
    addresses = {
        first + _number(tile, "id"): property.get("value") or property.text or ""
        for tile in element.iter("tile")
        for property in tile.iter("property")
        if property.get("name") == ADDRESS
    }
    image = element.find("image")
    picture: dict[str, str | int] = {}
    if image is not None:
        picture = {"source": image.get("source", "")}
        picture |= {key: _number(image, key) for key in ("width", "height") if image.get(key)}
    tiles, columns = _number(element, "tilecount"), _number(element, "columns")
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


def _number(element: Element, name: str) -> int:
    text = element.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise InputError(f"<{element.tag}>: {name} should be a whole number, not {text!r:.40}")
    return int(text)
