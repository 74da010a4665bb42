"""A picture of a world of tiles as SVG."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from mindstream.town.inspect.layers import OUTDOORS, ROOMS, SHAPES, Layers, Name, layers_of
from mindstream.town.world.tiles import TileWorld

STYLE = Path(__file__).with_name("drawing.css")


def draw_map(world: TileWorld) -> str:
    """Draw a world as an `<svg class="town">`: ground, floors, walls, trees, objects and names.

    What an object is shows on hover. Colours are variables of the style sheet, for light and for dark.
    """
    layers = layers_of(world)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="town" viewBox="0 0 {world.width} {world.height}"'
        f' role="img" aria-label="{escape(world.name)}">',
        f"<style>{STYLE.read_text('utf-8')}</style><defs>",
        *(f'<path id="thing{number}" d="{shape[2]}"/>' for number, shape in enumerate(SHAPES)),
        f'</defs><rect class="meadow" width="{world.width}" height="{world.height}"/>',
        *(f'<path class="{_class(kind)}" d="{path}"/>' for kind, path in layers.grounds),
        *_things(world, layers),
        *map(_name, layers.names),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _class(kind: str) -> str:
    return f"floor {kind}" if kind in OUTDOORS or kind in ROOMS else kind


def _things(world: TileWorld, layers: Layers) -> Iterable[str]:
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
