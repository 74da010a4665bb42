"""Draw a world of tiles as SVG path data, in units of tiles.

A resident on tile (x, y) is drawn at (x + 0.5, y + 0.5). `draw_map` returns an SVG; the web page draws the same layers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from html import escape
from itertools import groupby, pairwise
from pathlib import Path

from mindstream import chance
from mindstream_town.world.tiles import TileWorld
from mindstream_town.world.tree import ARENA, OBJECT, SECTOR, Address, Spot

FLOORS = (
    ("green", ("park", "garden", "yard", "meadow", "field", "orchard")),
    ("paved", ("square", "plaza", "terrace", "market place")),
    ("tiled", ("bathroom", "washroom", "toilet")),
    ("kitchen", ("kitchen",)),
    ("sleep", ("bedroom", "'s room", "main room", "dorm")),
    ("shop", ("market", "store", "pharmacy", "shop")),
    ("treat", ("cafe", "pub", "bar", "restaurant", "tavern")),
    ("learn", ("class", "library", "college", "school", "office", "study", "studio")),
    ("hall", ("",)),
)
"""Kinds of floor with their words. The first kind with a word in the arena's name applies, else the first with a word
in the sector's name, else `hall`."""
OUTDOORS = ("green", "paved")
ROOMS = tuple(kind for kind, _ in FLOORS if kind not in OUTDOORS)
SHAPES = (
    ("water", ("pond", "fountain", "lake", "river"), "M-.3 0q.1-.2.2 0t.2 0t.2 0"),
    (
        "plant",
        ("tree", "flower", "vegetable", "plant", "rose", "garden", "hedge", "herb"),
        "M0 .35v-.35q-.3 0-.3-.3q.3 0 .3.3q0-.3.3-.3q0 .3-.3.3",
    ),
    ("cloth", ("bed",), "M-.3-.35h.6v.2h-.6zM-.35.05h.7"),
    ("cloth", ("sofa", "chair", "seat", "bench", "couch", "stool", "swing"), "M-.25.3v-.55h.5v.55M-.25.05h.5"),
    ("steel", ("stove", "cooking", "oven", "toaster"), "M-.15-.15h.01M.15-.15h.01M-.15.15h.01M.15.15h.01"),
    ("steel", ("refrigerator", "fridge"), "M-.2-.35h.4v.7h-.4zM-.2-.1h.4"),
    ("steel", ("shower",), "M-.2-.2a.2.2 0 0 1 .4 0zM-.12 0v.2M0 .05v.25M.12 0v.2"),
    ("steel", ("sink", "basin", "toilet", "bath"), "M-.25-.1a.25.25 0 0 0 .5 0zM0-.35v.15"),
    ("wood", ("blackboard", "notice", "board"), "M-.35-.25h.7v.4h-.7zM-.2-.1h.3M-.2.03h.2"),
    (
        "wood",
        ("shelf", "shelves", "closet", "wardrobe", "cupboard", "bookcase"),
        "M-.3-.3h.6v.6h-.6zM-.3 0h.6M-.1-.3v.6M.1-.3v.6",
    ),
    ("wood", ("piano",), "M-.35-.2h.7v.4h-.7zM-.15-.2v.25M.05-.2v.25M.25-.2v.25"),
    ("wood", ("guitar", "harp", "violin"), "M-.2.2a.15.15 0 1 0 .3 0a.15.15 0 1 0-.3 0M.05.1l.2-.4"),
    ("felt", ("pool table", "game", "chess"), "M-.1-.1h.01M.15 0h.01M-.05.12h.01"),
    ("wood", ("easel", "canvas"), "M-.25.35L0-.35L.25.35M-.2.05h.4"),
    (
        "steel",
        ("computer", "console", "television", "screen", "camera", "microphone"),
        "M-.3-.25h.6v.4h-.6zM0 .15v.15M-.15.3h.3",
    ),
    ("wood", ("table", "desk", "counter", "podium", "lectern"), "M-.3-.15h.6M-.2-.15v.4M.2-.15v.4"),
    ("wood", ("",), "M-.1 0h.2M0-.1v.2"),
)
"""Drawings of objects by words in their names: material, words, and strokes in a box around (0, 0)."""
GROWN = ("water", "plant")
"""Materials that are drawn with rounded outlines."""
NARROW = 9
"""Maximum width of places whose name is written small, in tiles."""
A_TREE = 0.16
"""Probability of a tree on a free, inaccessible tile that has no tree next to it."""


@dataclass(frozen=True)
class Thing:
    """An object of the drawing.

    Attributes:
        place: index of the object's address in `TileWorld.places`.
        stuff: material.
        outline: outlines of its groups of connected tiles, as path data.
        shape: index in `SHAPES` of the drawing at the centre of each group.
        middles: centres of the groups.
    """

    place: int
    stuff: str
    outline: str
    shape: int
    middles: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Name:
    """A sector's name, broken into lines that fit the sector's width. `x`, `y`: the middle of the first line's
    baseline."""

    x: float
    y: float
    size: float
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Layers:
    """The layers of the drawing from bottom to top: grounds (kind, path data), objects, names."""

    grounds: tuple[tuple[str, str], ...]
    things: tuple[Thing, ...]
    names: tuple[Name, ...]


def layers_of(world: TileWorld) -> Layers:
    """Return the drawing of a world. Trees are drawn only on inaccessible tiles, and hedges only along them."""
    floors = _floors(world)
    ways = {spot for spot in _spots(world) if world.walkable(spot) and not world.arena_of(spot)}
    walls = _walls(world, floors)
    grounds = (
        *_trees(world, {spot for spots in (ways, walls, *floors.values()) for spot in spots} - floors["green"]),
        ("ways", _soft_outline(ways)),
        *((kind, _soft_outline(floors[kind])) for kind in OUTDOORS if floors[kind]),
        ("hedges", _hedges(world, floors["green"] - walls)),
        *((kind, _outline(floors[kind])) for kind in ROOMS if floors[kind]),
        ("walls", _outline(walls)),
    )
    return Layers(grounds, tuple(_things(world)), tuple(_names(world)))


def _spots(world: TileWorld) -> Iterable[Spot]:
    return ((x, y) for y in range(world.height) for x in range(world.width))


def _floors(world: TileWorld) -> dict[str, set[Spot]]:
    """Return the tiles of each kind of floor."""
    floors: dict[str, set[Spot]] = {kind: set() for kind, _ in FLOORS}
    for address in world.places:
        if address.level in (SECTOR, ARENA):
            kind = _floor(address)
            here = (spot for spot in world.tiles(address) if world.address_at(spot).upto(ARENA) == address)
            floors[kind].update(here)
    return floors


def _floor(address: Address) -> str:
    for name in reversed(address.names[1:ARENA]):
        for kind, words in FLOORS[:-1]:
            if any(word in name.casefold() for word in words):
                return kind
    return FLOORS[-1][0]


def _walls(world: TileWorld, floors: dict[str, set[Spot]]) -> set[Spot]:
    """Return the inaccessible tiles in or next to rooms, which are drawn as walls."""
    rooms = {spot for kind, spots in floors.items() if kind not in OUTDOORS for spot in spots}
    near = {(x + i, y + j) for x, y in rooms for i in (-1, 0, 1) for j in (-1, 0, 1)}
    inside = ((x, y) for x, y in near if 0 <= x < world.width and 0 <= y < world.height)
    green = {spot for kind in OUTDOORS for spot in floors[kind]}
    return {
        spot
        for spot in inside
        if spot not in green and not world.walkable(spot) and world.address_at(spot).level < OBJECT
    }


def _hedges(world: TileWorld, green: Collection[Spot]) -> str:
    """Return SVG path data: a line along each edge between a walkable tile of a green place and an inaccessible tile
    outside of it."""
    lines = []
    for x, y in sorted(green):
        for i, j, line in (
            (0, -1, f"M{x} {y}h1"),
            (1, 0, f"M{x + 1} {y}v1"),
            (0, 1, f"M{x} {y + 1}h1"),
            (-1, 0, f"M{x} {y}v1"),
        ):
            if world.walkable((x, y)) and (x + i, y + j) not in green and not world.walkable((x + i, y + j)):
                lines.append(line)
    return "".join(lines)


def _trees(world: TileWorld, taken: Collection[Spot]) -> list[tuple[str, str]]:
    """Place trees on inaccessible tiles, and return the layers of the trees, each with its SVG path; [] without trees.

    The same world always gets the same trees.
    """
    planted: set[Spot] = set()
    for spot in _spots(world):
        x, y = spot
        is_free = not world.walkable(spot) and spot not in taken and world.address_at(spot).level < OBJECT
        is_wood = is_free and chance.fraction("tree", world.name, x, y) < A_TREE
        if is_wood and planted.isdisjoint({(x - 1, y), (x - 1, y - 1), (x, y - 1), (x + 1, y - 1)}):
            planted.add(spot)
    marks = "".join(f"M{x + 0.5:g} {y + 0.5:g}h.01" for x, y in sorted(planted))
    return [("shade", marks), ("trees", marks)] if marks else []


def _things(world: TileWorld) -> Iterable[Thing]:
    """Yield each object with its connected groups of tiles."""
    for place, address in enumerate(world.places):
        if address.level < OBJECT:
            continue
        name = address.last.casefold()
        shape = next(n for n, (_, words, _) in enumerate(SHAPES) if any(word in name for word in words))
        heaps, stuff = _heaps(world.tiles(address)), SHAPES[shape][0]
        stroke = _soft_stroke if stuff in GROWN else _stroke
        outline = "".join(stroke(_loops(heap)[0]) for heap in heaps)
        yield Thing(place, stuff, outline, shape, tuple(_middle(heap) for heap in heaps))


def _middle(heap: Collection[Spot]) -> tuple[float, float]:
    across, down = [x for x, _ in heap], [y for _, y in heap]
    return (min(across) + max(across) + 1) / 2, (min(down) + max(down) + 1) / 2


def _heaps(tiles: Iterable[Spot]) -> list[set[Spot]]:
    """Return the groups of tiles that are connected by sides."""
    left = dict.fromkeys(tiles)
    heaps = []
    while left:
        border = [next(iter(left))]
        heap: set[Spot] = set()
        while border:
            x, y = spot = border.pop()
            if spot in left:
                del left[spot]
                heap.add(spot)
                border += [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)]
        heaps.append(heap)
    return heaps


def _names(world: TileWorld) -> Iterable[Name]:
    for address in world.places:
        if address.level == SECTOR and (tiles := world.tiles(address)):
            left, right = min(x for x, _ in tiles), max(x for x, _ in tiles) + 1
            size = 1.2 if right - left > NARROW else 0.8
            lines = _lines(address.last, max(14, (right - left) * 2.0 / size))
            top = min(y for _, y in tiles) - 1.4 - size * (len(lines) - 1)
            yield Name((left + right) / 2, top, size, tuple(lines))


def _lines(text: str, longest: float) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + len(word) < longest:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _loops(tiles: Collection[Spot]) -> list[list[Spot]]:
    """Return the closed outlines of a set of tiles, including outlines of holes.

    An outline is a list of all tile corners along it. The last corner repeats the first.
    """
    here = tiles if isinstance(tiles, set) else set(tiles)
    edges: dict[Spot, list[Spot]] = {}
    for x, y in sorted(here):
        sides = (
            ((x, y - 1), (x, y), (x + 1, y)),
            ((x + 1, y), (x + 1, y), (x + 1, y + 1)),
            ((x, y + 1), (x + 1, y + 1), (x, y + 1)),
            ((x - 1, y), (x, y + 1), (x, y)),
        )
        for beside, start, end in sides:
            if beside not in here:
                edges.setdefault(start, []).append(end)
    loops = []
    while edges:
        loop = [next(iter(edges))]
        while loop[-1] in edges:
            ends = edges[loop[-1]]
            end = ends.pop()
            if not ends:
                del edges[loop[-1]]
            loop.append(end)
        loops.append(loop)
    return loops


def _outline(tiles: Collection[Spot]) -> str:
    """Return the outlines of tiles as SVG path data."""
    return "".join(map(_stroke, _loops(tiles)))


def _stroke(loop: list[Spot]) -> str:
    moves = [(x - i, y - j) for (i, j), (x, y) in pairwise(loop)]
    runs = ((move, sum(1 for _ in same)) for move, same in groupby(moves))
    return f"M{loop[0][0]} {loop[0][1]}{''.join(f'h{dx * n}' if dx else f'v{dy * n}' for (dx, dy), n in runs)}z"


def _soft_outline(tiles: Collection[Spot]) -> str:
    """Return smoothed outlines of tiles as SVG path data."""
    return "".join(map(_soft_stroke, _loops(tiles)))


def _soft_stroke(loop: list[Spot]) -> str:
    """Return SVG path data of a loop, drawn through the middles of its sides, so that corners are cut."""
    middles = [(x + i, y + j) for (i, j), (x, y) in pairwise(loop)]
    around = zip([middles[-1], *middles], middles, [*middles[1:], middles[0]], strict=False)
    bends = [at for last, at, to in around if (at[0] - last[0], at[1] - last[1]) != (to[0] - at[0], to[1] - at[1])]
    return f"M{'L'.join(f'{x / 2:g} {y / 2:g}' for x, y in bends)}z"


STYLE = Path(__file__).with_name("drawing.css")


def draw_map(world: TileWorld) -> str:
    """Draw a world as an `<svg class="town">`: ground, floors, walls, trees, objects and names.

    Objects have their names as titles. Colours are CSS variables, for light and dark mode.
    """
    layers = layers_of(world)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="town" viewBox="0 0 {world.width} {world.height}"'
        f' role="img" aria-label="{escape(world.name)}">',
        f"<style>{STYLE.read_text('utf-8')}</style><defs>",
        *(f'<path id="thing{number}" d="{shape[2]}"/>' for number, shape in enumerate(SHAPES)),
        f'</defs><rect class="meadow" width="{world.width}" height="{world.height}"/>',
        *(f'<path class="{_class(kind)}" d="{path}"/>' for kind, path in layers.grounds),
        *_drawing_things(world, layers),
        *map(_name, layers.names),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _class(kind: str) -> str:
    return f"floor {kind}" if kind in OUTDOORS or kind in ROOMS else kind


def _drawing_things(world: TileWorld, layers: Layers) -> Iterable[str]:
    for thing in layers.things:
        names = world.places[thing.place].names[:0:-1]
        yield f'<g class="thing {thing.stuff}"><title>{escape(", ".join(names))}</title>'
        yield f'<path d="{thing.outline}"/>'
        yield from (f'<use href="#thing{thing.shape}" x="{x:g}" y="{y:g}"/>' for x, y in thing.middles)
        yield "</g>"


def _name(name: Name) -> str:
    spans = "".join(
        f'<tspan x="{name.x:g}" dy="{name.size * bool(number):g}">{escape(line)}</tspan>'
        for number, line in enumerate(name.lines)
    )
    return f'<text y="{name.y:g}" font-size="{name.size:g}">{spans}</text>'
